# tidegate: `make demo` shows the product, `make test` runs every test. Both set up what they need.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
UV := $(VENV)/bin/uv
RUN := $(VENV)/bin
UV_VERSION := 0.13.9

.PHONY: help demo test lint format lock clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "make %-8s %s\n", $$1, $$2}'

# The stamp is newer than everything the environment is made of, so an unchanged checkout starts at once.
$(VENV)/.installed-run: requirements/run.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "tidegate needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(UV) || { $(PYTHON) -m venv $(VENV) && $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION); }
	@VIRTUAL_ENV=$(abspath $(VENV)) $(UV) pip install --quiet --require-hashes -r requirements/run.lock
	@VIRTUAL_ENV=$(abspath $(VENV)) $(UV) pip install --quiet --no-deps -e .
	@touch $@

$(VENV)/.installed-dev: requirements/dev.lock $(VENV)/.installed-run
	@VIRTUAL_ENV=$(abspath $(VENV)) $(UV) pip install --quiet --require-hashes -r requirements/dev.lock
	@touch $@

demo: $(VENV)/.installed-run ## the whole product on a bundled trace, at http://127.0.0.1:8080
	@exec $(RUN)/tidegate demo

test: $(VENV)/.installed-dev ## install what the tests need, then run all of them
	@tests/prepare.sh
	@$(MAKE) --no-print-directory lint
	@$(RUN)/pytest -n 2 --dist loadgroup

lint: $(VENV)/.installed-dev ## style, types, import rules
	@$(RUN)/ruff format --check .
	@$(RUN)/ruff check .
	@$(RUN)/mypy
	@$(RUN)/lint-imports

format: $(VENV)/.installed-dev ## put the code into shape
	@$(RUN)/ruff format .
	@$(RUN)/ruff check --fix .

lock: $(VENV)/.installed-run ## resolve the dependencies again (hashes, all platforms)
	@VIRTUAL_ENV=$(abspath $(VENV)) $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade pyproject.toml -o requirements/run.lock
	@VIRTUAL_ENV=$(abspath $(VENV)) $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade pyproject.toml --group dev -o requirements/dev.lock

clean: ## remove the environment and caches (never the demo's store)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
