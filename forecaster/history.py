"""Where history comes from: a trace folder, CSV, rows of the store, or Prometheus. All become a ``Panel``.

Timestamps keep the local wall clock of the source where it states no offset: rhythm is in local time.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from controller.core.errors import InputError
from forecaster.series import Panel

STEP_S = 300
EPOCH_MONDAY_S = 4 * 86_400
"""1970-01-05, a Monday: the origin of traces that do not say when they began."""
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
COLUMNS = ("t_s", "team", "wanted_mean")
MOST = 1e9
"""Thirty years of seconds, a thousand million GPUs: beyond it a number is a mistake, and arithmetic on it a trap."""


def read_meta(folder: Path) -> dict[str, Any]:
    """A trace's ``trace.json``; a trace without one has no gaps and an unknown start."""
    path = folder / "trace.json"
    if not path.exists():
        return {}
    try:
        meta = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError.one("(file)", "not JSON", f"a JSON object ({error})", source=str(path)) from error
    if not isinstance(meta, dict):
        raise InputError.one("(file)", type(meta).__name__, "a JSON object", source=str(path))
    return meta


def origin_of(meta: dict[str, Any]) -> int:
    """Epoch seconds of a trace's start: its ``t0``, else a Monday (or the weekday it names) at midnight."""
    match = re.match(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?)?", str(meta.get("t0", "")))
    if match:
        return int(datetime.fromisoformat(match[0]).replace(tzinfo=UTC).timestamp())
    named = next((i for i, day in enumerate(WEEKDAYS) if str(meta.get("weekday_of_t0")).startswith(day)), 0)
    return EPOCH_MONDAY_S + named * 86_400


def panel_from_parquet(path: Path) -> Panel:
    """Read ``demand_5min.parquet`` of a trace folder, with the gaps that its ``trace.json`` names masked."""
    folder = path if path.is_dir() else path.parent
    file = path / "demand_5min.parquet" if path.is_dir() else path
    try:
        frame = pd.read_parquet(file)
    except (OSError, ValueError) as error:
        why = "no such file" if not file.exists() else f"not readable as Parquet ({type(error).__name__})"
        raise InputError.one("(file)", "", why, source=str(file)) from error
    meta = read_meta(folder)
    panel = panel_from_frame(frame, origin_of(meta), str(file))
    for prefix, windows in _gaps(meta, str(folder / "trace.json")):
        panel = panel.masked(windows, prefix)
    return panel


def _gaps(meta: dict[str, Any], source: str) -> list[tuple[str, list[tuple[int, int]]]]:
    """The gaps of a trace by team prefix, each with its windows in seconds."""
    gaps = meta.get("gaps_s") or []
    try:
        by_prefix = gaps.items() if isinstance(gaps, dict) else [("", gaps)]
        found = [(str(prefix), [(int(a), int(b)) for a, b in windows]) for prefix, windows in by_prefix]
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None or any(a >= b for _, windows in found for a, b in windows):
        allowed = "a list of [from, to] in seconds with from before to, or an object: team prefix → such a list"
        raise InputError.one("gaps_s", str(gaps)[:60], allowed, source=source)
    return found


def panel_from_csv(path: Path, origin_s: int = EPOCH_MONDAY_S) -> Panel:
    """Read a CSV with columns t_s, team, wanted_mean."""
    try:
        frame = pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise InputError.one("(file)", "", f"not readable as CSV ({type(error).__name__})", source=str(path)) from error
    return panel_from_frame(frame, origin_s, str(path))


def panel_from_frame(frame: pd.DataFrame, origin_s: int, source: str, step_s: int = STEP_S) -> Panel:
    """Pivot long rows (t_s, team, wanted_mean) into a panel; refuses what cannot be demand."""
    check_columns(frame, COLUMNS, source)
    check_values(frame, ("t_s",), ("wanted_mean",), source)
    bad = np.flatnonzero((frame["wanted_mean"] < 0).to_numpy(dtype=bool, na_value=False))
    if len(bad):
        value = frame["wanted_mean"].iloc[int(bad[0])]
        raise InputError.one(f"wanted_mean, row {bad[0]}", value, "0 or more GPUs", source=source)
    twice = np.flatnonzero(frame.duplicated(["t_s", "team"]).to_numpy())
    if len(twice):
        at, team = frame["t_s"].iloc[int(twice[0])], frame["team"].iloc[int(twice[0])]
        raise InputError.one(f"t_s, row {twice[0]}", f"{at} {team}", "each time once a team", source=source)
    if frame.empty:
        raise InputError.one("(file)", "no rows", "at least one row", source=source)
    wide = frame.pivot(index="t_s", columns="team", values="wanted_mean").sort_index()
    first, last = int(wide.index[0]), int(wide.index[-1])
    grid = np.arange(first - first % step_s, last + 1, step_s)
    if not np.isin(wide.index.to_numpy(), grid).all():
        raise InputError.one("t_s", "uneven", f"multiples of {step_s} seconds", source=source)
    wide = wide.reindex(grid)
    names = tuple(str(name) for name in wide.columns)
    return Panel(names, origin_s + int(grid[0]), step_s, "UTC", wide.to_numpy(dtype=np.float64))


def check_columns(frame: pd.DataFrame, needed: Iterable[str], source: str) -> None:
    """Refuse a table that lacks columns, naming the first missing one and those there are."""
    missing = [column for column in needed if column not in frame.columns]
    if missing:
        has = ", ".join(map(str, frame.columns))
        raise InputError.one(f"column {missing[0]}", "missing", f"required; the file has {has}", source=source)


def check_values(frame: pd.DataFrame, known: Iterable[str], perhaps: Iterable[str], source: str) -> None:
    """Refuse columns that are no finite numbers (those in ``perhaps`` may be unknown), and rows without a team."""
    if frame.empty:  # its columns have no type yet
        return
    for column in (*known, *perhaps):
        if not pd.api.types.is_numeric_dtype(frame[column]):
            raise InputError.one(f"column {column}", frame[column].dtype, "numbers", source=source)
        values = frame[column].to_numpy(dtype=np.float64, na_value=np.nan)
        unknown = np.isnan(values) if column in tuple(known) else np.zeros(len(values), dtype=bool)
        bad = np.flatnonzero(np.isinf(values) | unknown | (np.abs(values) > MOST))
        if len(bad):
            allowed = f"a number between -{MOST:g} and {MOST:g}"
            raise InputError.one(f"{column}, row {bad[0]}", values[bad[0]], allowed, source=source)
    nobody = np.flatnonzero(frame["team"].isna().to_numpy())
    if len(nobody):
        raise InputError.one(f"team, row {nobody[0]}", "missing", "a team in every row", source=source)


def panel_from_rows(rows: Iterable[tuple[int, str, float]], timezone: str, step_s: int = STEP_S) -> Panel | None:
    """Rows ``(at_s, team, GPUs)`` as the store keeps them; several in one step are averaged. None without rows."""
    frame = pd.DataFrame(rows, columns=["at_s", "team", "gpus"])
    if frame.empty:
        return None
    frame["t_s"] = frame["at_s"] // step_s * step_s
    wide = frame.pivot_table(index="t_s", columns="team", values="gpus", aggfunc="mean").sort_index()
    grid = np.arange(int(wide.index[0]), int(wide.index[-1]) + 1, step_s)
    wide = wide.reindex(grid)
    return Panel(tuple(map(str, wide.columns)), int(grid[0]), step_s, timezone, wide.to_numpy(dtype=np.float64))


def panel_from_prometheus(
    url: str,
    query: str,
    start: datetime,
    stop: datetime,
    *,
    label: str = "team",
    step_s: int = STEP_S,
    timeout_s: float = 30,
) -> Panel:
    """Ask Prometheus' range-query API; each series' ``label`` names its team.

    Raises InputError when it cannot be reached, refuses the query, or answers with something else.
    """
    span = {"query": query, "start": start.timestamp(), "end": stop.timestamp(), "step": step_s}
    target = f"{url.rstrip('/')}/api/v1/query_range?{urllib.parse.urlencode(span)}"
    if not target.startswith(("http://", "https://")):
        raise InputError.one("prometheus url", url, "a URL that begins with http:// or https://")
    try:
        with urllib.request.urlopen(target, timeout=timeout_s) as answer:  # noqa: S310 - scheme checked above
            body = json.loads(answer.read())
    except urllib.error.HTTPError as error:
        said = error.read(300).decode(errors="replace")
        raise InputError.one("prometheus query", query, f"refused with HTTP {error.code}: {said}") from error
    except (OSError, ValueError) as error:
        raise InputError.one("prometheus url", url, f"cannot be read: {error}") from error
    rows = _samples(body, label, query)
    panel = panel_from_rows(rows, "UTC", step_s)
    if panel is None:
        raise InputError.one("prometheus query", query, f"no series between {start} and {stop}")
    return panel


def _samples(body: Any, label: str, query: str) -> list[tuple[int, str, float]]:
    try:
        series = body["data"]["result"]
        return [
            (int(float(at)), str(one["metric"][label]), float(value))
            for one in series
            for at, value in one["values"]
            if value not in ("NaN", "+Inf", "-Inf")
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError.one("prometheus query", query, f"series with the label {label!r} ({error!r})") from error


def day_text(panel: Panel, row: int) -> str:
    """The date of a row, for tables."""
    return (datetime.fromtimestamp(0, UTC) + timedelta(seconds=panel.time(row))).strftime("%a %Y-%m-%d")
