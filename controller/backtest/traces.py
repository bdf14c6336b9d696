"""Traces as the benchmark uses them: selected, scaled, and cut into a part to learn from and a part to be judged on."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from controller.core.errors import InputError
from controller.worlds.simulated.trace import BUILTIN, builtin_folder
from forecaster.history import panel_from_parquet, read_meta
from forecaster.series import Panel

TRAIN = 0.62


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace: its teams' demand, and from which row it is judged. ``has_jobs``: there is a jobs.parquet beside it."""

    name: str
    folder: Path
    panel: Panel
    judge_from: int
    has_jobs: bool

    @property
    def total(self) -> Panel:
        """The total of the selected teams, as a panel of one column."""
        values = self.panel.total()[:, None]
        return Panel(("",), self.panel.origin_s, self.panel.step_s, self.panel.timezone, values)


def trace_folder(path: str) -> Path:
    """The folder that a --trace argument names: a folder, a file in one, or ``builtin:NAME``."""
    if path.startswith(BUILTIN):
        return builtin_folder(path)
    folder = Path(path)
    if not folder.exists():
        raise InputError.one(
            "--trace", path, "a folder in the layout of docs/reference/traces.md (no such file or folder)"
        )
    return folder if folder.is_dir() else folder.parent


def load_trace(path: str, *, teams: Sequence[str] = (), train: float = TRAIN, scale: float | None = None) -> Trace:
    """Load a trace. ``scale`` rescales demand so that the mean total of the training part is so many GPUs."""
    folder = trace_folder(path)
    if not (folder / "demand_5min.parquet").exists():
        raise InputError.one("--trace", path, "a folder with demand_5min.parquet; this one has none")
    panel = panel_from_parquet(folder)
    if teams:
        panel = panel.select(teams)
    panel = _known_part(panel)
    trace = Trace(folder.name, folder, panel, _judge_from(folder, panel, train), (folder / "jobs.parquet").exists())
    return _scaled(trace, scale) if scale is not None else trace


def _known_part(panel: Panel) -> Panel:
    """Drop rows before the selected teams' first known demand: a team that joins later was not zero before."""
    known = np.flatnonzero(~np.isnan(panel.total()))
    if not len(known):
        raise InputError.one("--team", " ".join(panel.names), "teams whose demand is known at the same time")
    first = int(known[0])
    return replace(panel, origin_s=panel.time(first), values=panel.values[first:])


def _judge_from(folder: Path, panel: Panel, train: float) -> int:
    from forecaster.history import origin_of

    meta = read_meta(folder)
    if "judge_from_s" in meta:
        row = panel.row(origin_of(meta) + int(meta["judge_from_s"]))
    elif 0 < train < 1:
        row = int(panel.rows * train)
    else:
        raise InputError.one("--train", train, "a share between 0 and 1, both excluded")
    if not 0 < row < panel.rows:
        allowed = f"a moment inside the trace, which has {panel.rows * panel.step_s} seconds"
        raise InputError.one(
            "judge_from_s", meta.get("judge_from_s", train), allowed, source=str(folder / "trace.json")
        )
    return row


def _scaled(trace: Trace, scale: float) -> Trace:
    if not 0 < scale < float("inf"):
        raise InputError.one("--scale", scale, "GPUs, more than 0")
    mean = float(np.nanmean(trace.total.values[: trace.judge_from]))
    if not mean > 0:
        raise InputError.one("--scale", scale, "a trace whose training part has demand")
    return replace(trace, panel=trace.panel.scaled(scale / mean))


@dataclass(frozen=True, slots=True)
class Partition:
    """GPUs that a team has of its own (nodes.csv, scope team), or of the whole cluster."""

    name: str
    nodes: int
    gpus_per_node: int


def _count(text: str) -> int:
    if (value := int(text)) < 0:
        raise ValueError("a number of nodes or GPUs is 0 or more")
    return value


def partitions(folder: Path, scope: str = "team") -> tuple[Partition, ...]:
    """Read ``nodes.csv``; rows of another scope are left out."""
    path = folder / "nodes.csv"
    if not path.exists():
        return ()
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = []
    for i, row in enumerate(rows):
        if row.get("scope") != scope:
            continue
        try:
            found.append(
                Partition(row.get("name") or row["gpu_type"], _count(row["nodes"]), _count(row["gpus_per_node"]))
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError.one(
                f"row {i + 1}", str(row), "columns scope, name, nodes, gpus_per_node", source=str(path)
            ) from error
    return tuple(found)
