"""Docs that drift are worse than none."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

ROOT = Path(__file__).resolve().parents[2]


def test_the_architecture_shows_the_layers_of_the_contract() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    shown = re.search(r"<!-- layers -->\n(.*)<!-- /layers -->", text, re.DOTALL)
    assert shown
    assert [line.strip() for line in shown[1].strip().splitlines()] == [re.sub(r"[()]", "", line) for line in contract]


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")), ids=lambda p: p.name
)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text())
    missing = [t for t in targets if not t.startswith("http") and not (page.parent / t).exists()]
    assert missing == []


def test_every_command_has_help_with_an_example() -> None:
    from controller.cli.app import app

    def walk(command, path):
        for name, sub in getattr(command, "commands", {}).items():
            yield from walk(sub, [*path, name])
        if not getattr(command, "commands", None):
            yield " ".join(path), command.help or ""

    lacking = [name for name, text in walk(get_command(app), ["tidegate"]) if "Example" not in text]
    assert lacking == []


def test_the_readme_names_only_commands_that_exist() -> None:
    from controller.cli.app import app

    known = get_command(app).commands  # type: ignore[attr-defined]
    text = (ROOT / "README.md").read_text() + (ROOT / "CHANGELOG.md").read_text()
    named = set(re.findall(r"`(?:\.venv/bin/)?tidegate ([a-z]+)", text))
    assert named
    assert named <= set(known)


def test_nothing_of_a_registry_or_a_machine_is_in_the_tree() -> None:
    import subprocess

    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    hosts = ["pypi" + ".org", "python" + "hosted", "/wo" + "rk/", "/ro" + "ot/"]
    found = []
    for name in files:
        data = (ROOT / name).read_bytes()
        if b"\0" not in data[:4096]:
            found += [(name, host) for host in hosts if host.encode() in data]
    assert found == []
