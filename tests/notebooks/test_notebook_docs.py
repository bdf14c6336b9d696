"""The reference of the notebooks names every notebook, parameter, function and chart source that there is."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

from dashboard import notebook as tg
from dashboard.notebook.sources import KINDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "notebooks.md").read_text()
BOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def code(path: Path) -> str:
    return "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code")


def test_every_notebook_is_named() -> None:
    assert re.findall(r"^\| `(\d\d_\w+)`", PAGE, re.M) == [path.stem for path in BOOKS]


def test_parameters_and_their_defaults_are_those_of_the_notebooks() -> None:
    there = {name for path in BOOKS for name in re.findall(r'tg\.setting\("(\w+)"', code(path))}
    shown = set(re.findall(r"^\| `([A-Z_]+)`", PAGE, re.M))
    assert shown == there
    for name, default in (("SOURCE", "builtin:demo"), ("OUT", "tuned-policy.yaml"), ("GPUS_PER_NODE", "8")):
        assert re.search(rf"^\| `{name}` .*`{default}`", PAGE, re.M)
        assert any(re.search(rf'"{name}", "?{default}"?\)', code(path)) for path in BOOKS)


def test_every_function_is_named() -> None:
    functions = {name for name in tg.__all__ if name[0].islower()} - {"chart", "setting"}
    assert functions <= set(re.findall(r"`tg\.(\w+)", PAGE))


def test_methods_that_are_named_exist() -> None:
    for kind, after in ((tg.Learner, "`tg.learner("), (tg.Recorded, "`tg.recorded("), (tg.Draft, "`tg.policy(")):
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| {after}"))
        named = re.findall(r"`\.(\w+)\(", row)
        assert named
        assert all(hasattr(kind, name) for name in named), named


def test_the_message_of_a_wrong_source_names_what_the_page_names() -> None:
    for word in ("builtin:demo", ".parquet", ".csv", "t_s", "time", "wanted_mean", "postgresql://USER@HOST/DATABASE"):
        assert word in KINDS
        assert word in PAGE
