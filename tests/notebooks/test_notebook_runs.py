"""Each notebook as a newcomer opens it: it runs through, on the bundled trace, on a file and on a store."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from notebook_sources import wavy, write_parquet, write_store

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LIMIT_S = 120
"""For one cell; a whole notebook on this little data takes some ten seconds."""
SMALL = {"DAYS": "3", "LEADS": "15m", "WEIGHTS": "3,9"}
FOR_ONE = {"03_what_if_another_policy": {"DAYS": "0.25"}}
DEMAND = {"dev": wavy(4, 20, 14), "vision": wavy(4, 10, 5, seed=8)}


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def client(path: Path, source: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> NotebookClient:
    """A notebook in a kernel of its own that sees nothing of the user's own Jupyter."""
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(folder / name.lower()))
    for name, value in (SMALL | FOR_ONE.get(path.stem, {}) | {"SOURCE": source}).items():
        monkeypatch.setenv(f"TIDEGATE_NOTEBOOK_{name}", value)
    here = {"metadata": {"path": str(folder)}}
    return NotebookClient(read(path), timeout=LIMIT_S, kernel_name="python3", resources=here)


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("sources")
    return {
        "the bundled trace": "builtin:demo",
        "a file": str(write_parquet(folder / "demand.parquet", DEMAND)),
        "a store": str(write_store(folder / "store.sqlite", DEMAND)),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "source"),
    [
        pytest.param(path, source, id=f"{path.stem} on {source}")
        for path in NOTEBOOKS
        for source in ("the bundled trace", "a file", "a store")
        if source != "a file" or path.name[:2] in ("01", "02")  # once opened, a file is like a store that knows less
    ],
)
def test_a_notebook_runs_from_the_first_cell_to_the_last_on(
    path: Path, source: str, sources: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = client(path, sources[source], tmp_path, monkeypatch).execute()
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    charts = [cell for cell in cells if "tg.chart." in cell.source]
    assert charts
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "stream", f"{cell.source}\nprinted: {output.text}"
    for cell in charts:
        kinds = {kind for output in cell.outputs for kind in output.get("data", {})}
        assert "application/vnd.plotly.v1+json" in kinds, f"no chart from: {cell.source}"


def test_all_five_are_there() -> None:
    assert [path.name[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04", "05"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    book = read(path)
    nbformat.validate(book)
    for cell in book.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
    assert set(book.metadata) == {"kernelspec", "language_info"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_has_one_import_line_and_explains_itself(path: Path) -> None:
    book = read(path)
    code = "\n".join(cell.source for cell in book.cells if cell.cell_type == "code")
    assert re.findall(r"^\s*(?:import|from)\b.*", code, re.M) == ["from dashboard import notebook as tg"]
    assert book.cells[0].source.startswith(f"# {path.name[:2]} · ")
    for before, cell in pairwise(book.cells):
        if "tg.chart." in cell.source:
            assert "markdown" in (before.cell_type, cell.cell_type), f"a chart without a word before it: {cell.source}"


def test_a_refused_value_is_one_line_and_what_is_below_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = client(NOTEBOOKS[0], "no/such/file.parquet", tmp_path, monkeypatch)
    with pytest.raises(CellExecutionError):
        running.execute()
    outputs = [cell.outputs for cell in running.nb.cells if cell.cell_type == "code"]
    (refused,) = outputs[1]
    assert refused.output_type == "error"
    assert len(refused.traceback) == 1
    assert refused.traceback[0].startswith("not possible: SOURCE: no/such/file.parquet: builtin:demo; a trace folder;")
    assert not any(outputs[2:])
