"""The tree tells the architecture; these tests make sure that the machine which checks it would notice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cloud", "controller", "dashboard", "forecaster", "nodeagent")


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--config", "pyproject.toml"]
    environment = {"PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "data"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_tree_keeps_its_import_rules(copy: Path) -> None:
    result = lint(copy)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("controller/core/shares.py", "import controller.loop", "A module imports only from layers below its own"),
        ("controller/core/shares.py", "import time", "The core is pure"),
        ("controller/core/lending.py", "import numpy", "The core is pure"),
        ("controller/loop/tick.py", "import controller.backtest", "A module imports only from layers below its own"),
        ("controller/store/__init__.py", "import controller.worlds", "A module imports only from layers below its own"),
        ("dashboard/app.py", "import plotly", "Plotly stays in dashboard.figures"),
        ("dashboard/app.py", "import sqlalchemy", "SQLAlchemy stays in the store"),
        ("controller/loop/tick.py", "import sklearn", "scikit-learn and statsmodels stay"),
    ],
)
def test_a_planted_violation_is_caught(copy: Path, module: str, line: str, contract: str) -> None:
    planted = copy / module
    planted.write_text(planted.read_text() + f"\n{line}\n")
    result = lint(copy)
    assert result.returncode == 1, result.stdout
    broken = [row for row in result.stdout.splitlines() if row.endswith("BROKEN")]
    assert any(contract in row for row in broken), result.stdout
