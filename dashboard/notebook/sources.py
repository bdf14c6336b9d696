"""From what an analyst has (a trace folder, a Parquet or CSV file, a store) to a ``History``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from controller.backtest.traces import TRAIN, load_trace
from controller.core.errors import InputError
from controller.core.forecast import TOTAL
from controller.core.quantities import DAY_S, HOUR_S, MILLI
from controller.resources.codec import read_policy
from controller.resources.parse import load_policy, read_text
from controller.resources.policy_text import policy_text
from controller.store import Store, open_store
from controller.worlds.simulated.trace import BUILTIN, builtin_folder
from dashboard.notebook.history import History
from forecaster.history import (
    origin_of,
    panel_from_csv,
    panel_from_frame,
    panel_from_parquet,
    panel_from_rows,
    read_meta,
)
from forecaster.series import Panel

KINDS = (
    "builtin:demo; a trace folder; a .parquet or .csv file with the columns t_s (seconds, every 300) or time, team,"
    " wanted_mean; or a store: a .sqlite file, sqlite:///PATH or postgresql://USER@HOST/DATABASE"
)
SQLITE = b"SQLite format 3\0"
TOO_MANY_POINTS = 10**6


def open_history(
    source: str, *, team: str = "*", days: float = 0, zone: str = "", cluster: str = "", pool: str = ""
) -> History:
    """Open a history, whatever holds it.

    ``team``: globs, separated by commas; ``days``: the last so many days (0: all); ``zone``: the time zone of charts,
    where the source's own is not wanted; ``cluster`` and ``pool``: which of a store's, where it holds several (of
    several pools the busiest is taken). Raises ``InputError``, which names what is allowed.
    """
    found = _found(source, cluster, pool)
    patterns = [part.strip() for part in team.split(",") if part.strip()]
    if patterns not in ([], ["*"]):
        found = _selected(found, patterns)
    if zone:
        found = _moved(found, zone)
    if not np.isfinite(found.total).any():
        raise InputError.one("SOURCE", source, "a history in which the demand of all its teams is known at some time")
    return found.last_days(days)


def _found(source: str, cluster: str, pool: str) -> History:
    path = Path(source)
    if source.startswith(BUILTIN):
        return _from_folder(source, builtin_folder(source))
    if "://" in source:
        return _from_store(source, cluster, pool)
    if not source or not path.exists():
        raise InputError.one("SOURCE", source, f"{KINDS} (no such file or folder)")
    if path.is_dir():
        return _from_folder(source, path)
    if path.suffix.lower() in (".parquet", ".csv"):
        return _from_file(path)
    with path.open("rb") as file:
        if file.read(len(SQLITE)) == SQLITE:
            return _from_store(source, cluster, pool)
    raise InputError.one("SOURCE", source, KINDS)


def _from_folder(source: str, folder: Path) -> History:
    trace = load_trace(str(folder))
    panel, file = trace.panel, folder / "policy.yaml"
    text = read_text(file) if file.exists() else ""
    if text and panel.timezone == "UTC":
        # A trace's clock is read as logged; the policy beside it says where the people are.
        panel = replace(panel, timezone=load_policy(file).timezone)
    return History(
        folder.name,
        source,
        "trace folder",
        panel.with_total(),
        trace.judge_from,
        folder=folder,
        supply=_running(folder, panel),
        policy_text=text,
        policy_origin=str(file) if text else "",
    )


def _running(folder: Path, panel: Panel) -> pd.DataFrame | None:
    """What ran beside what was wanted, where a trace recorded both; how many GPUs were ready it does not say."""
    frame = pd.read_parquet(folder / "demand_5min.parquet")
    if "running_mean" not in frame or frame["running_mean"].isna().all():
        return None
    sums = frame.groupby("t_s")[["wanted_mean", "running_mean"]].sum(min_count=1)
    at_s = origin_of(read_meta(folder)) + sums.index.to_numpy(dtype=np.int64)
    known = set((panel.origin_s + np.flatnonzero(np.isfinite(panel.total())) * panel.step_s).tolist())
    held = sums["running_mean"].to_numpy(dtype=np.float64)
    waiting = np.maximum(sums["wanted_mean"].to_numpy(dtype=np.float64) - held, 0.0)
    found = pd.DataFrame({"ready": np.nan, "held": held, "waiting": waiting}, index=at_s)
    return found[[at in known for at in at_s.tolist()]]


def _from_file(path: Path) -> History:
    if path.suffix.lower() == ".csv":
        columns = pd.read_csv(path, nrows=0).columns
        panel = _timed(pd.read_csv(path), str(path)) if _has_time(columns) else panel_from_csv(path)
    else:
        frame = _parquet(path)
        panel = _timed(frame, str(path)) if _has_time(frame.columns) else panel_from_parquet(path)
    judge_from = max(1, int(panel.rows * TRAIN))
    return History(path.stem, str(path), "file", panel.with_total(), judge_from)


def _parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        why = f"a readable Parquet file ({type(error).__name__})"
        raise InputError.one("SOURCE", path, why) from error


def _has_time(columns: Any) -> bool:
    return "time" in columns and "t_s" not in columns


def _timed(frame: pd.DataFrame, source: str) -> Panel:
    """Rows with a column ``time``: with an offset it is an instant, without one it is read as it is written."""
    try:
        stamps = pd.to_datetime(frame["time"], utc=True)
    except (ValueError, TypeError) as error:
        raise InputError.one("column time", str(error)[:80], "times such as 2026-03-01 09:05", source=source) from error
    at_s = (stamps - pd.Timestamp(0, tz="UTC")) // pd.Timedelta(seconds=1)
    origin = int(at_s.min()) // DAY_S * DAY_S
    return panel_from_frame(frame.assign(t_s=at_s - origin), origin, source)


def _from_store(url: str, cluster: str, pool: str) -> History:
    with open_store(url) as store:
        chosen = _one_of("CLUSTER", cluster, store.clusters(), url)
        series = store.demand_history(chosen)
        record = store.resume(chosen)
        policy = None if record is None else read_policy(record.policy_bytes)
        zone = "UTC" if policy is None else policy.timezone
        totals = {one.pool: float(np.mean(one.mean)) for one in series if one.team == TOTAL}
        busiest = max(totals, key=lambda name: totals[name], default="")
        named = _one_of("POOL", pool or busiest, tuple(sorted(totals)), url)
        # A value seen at an instant stands for the step that ends there: known then, and not before.
        rows = (
            (at - 1, one.team, mean / MILLI)
            for one in series
            if one.pool == named
            for at, mean in zip(one.at_s, one.mean, strict=True)
        )
        panel = panel_from_rows(rows, zone)
        if panel is None:
            raise InputError.one("SOURCE", url, "a store with demand; this one has none of that pool")
        panel = _total_last(panel)
        others = tuple(name for name in sorted(totals) if name != named)
        return History(
            f"{chosen}/{named}",
            _shown(url),
            "store",
            panel,
            max(1, int(panel.rows * TRAIN)),
            supply=_supply(store, chosen, named),
            team_waiting=_waiting(store, chosen, named, panel.names),
            policy_text="" if policy is None else policy_text(policy),
            policy_origin="" if record is None else f"decision {record.id}",
            remarks=(f"other pools in this store: {', '.join(others)}",) if others else (),
            cluster=chosen,
            pool=named,
            address=url,
        )


def _one_of(name: str, given: str, there: tuple[str, ...], url: str) -> str:
    """The one that was named, or the only one there is."""
    if given in there:
        return given
    if not given and len(there) == 1:
        return there[0]
    allowed = f"one of {', '.join(there)}" if there else "a store in which a loop has recorded something"
    raise InputError.one(name, given, allowed, source=_shown(url))


def _shown(url: str) -> str:
    """A store's address without a password."""
    return url.split("@")[-1] if "@" in url else url


def _total_last(panel: Panel) -> Panel:
    order = [i for i, name in enumerate(panel.names) if name != TOTAL]
    if TOTAL not in panel.names:
        return panel.with_total()
    order.append(panel.names.index(TOTAL))
    return replace(panel, names=tuple(panel.names[i] for i in order), values=panel.values[:, order])


def _supply(store: Store, cluster: str, pool: str) -> pd.DataFrame | None:
    columns = store.pool_series(cluster, pool, max_points=TOO_MANY_POINTS)
    if not len(columns):
        return None
    ready, held, wanted = (
        np.array(columns[name], dtype=np.float64) / MILLI
        for name in ("supply_milli_gpus", "held_milli_gpus", "demand_milli_gpus")
    )
    waiting = np.maximum(wanted - held, 0.0)
    return pd.DataFrame({"ready": ready, "held": held, "waiting": waiting}, index=columns.at_s)


def _waiting(store: Store, cluster: str, pool: str, teams: tuple[str, ...]) -> dict[str, float]:
    """GPU-hours that each team's work waited, over all that the store holds of it."""
    found = {}
    for team in teams:
        columns = store.team_series(cluster, pool, team, max_points=TOO_MANY_POINTS) if team != TOTAL else None
        if columns is None or len(columns) < 2:
            continue
        at, pending = np.array(columns.at_s), np.array(columns["pending"], dtype=np.float64)
        step = float(np.median(np.diff(at)))
        found[team] = float(pending.sum()) / MILLI * step / HOUR_S
    return found


def _selected(history: History, patterns: list[str]) -> History:
    """Some teams; the total is then theirs. What is known of the whole pool alone (its supply) no longer fits."""
    teams = Panel(history.teams, history.panel.origin_s, history.panel.step_s, history.zone, history.team_values)
    panel = teams.select(patterns).with_total()
    if set(panel.names) == set(history.panel.names):
        return history
    waiting = history.team_waiting and {k: v for k, v in history.team_waiting.items() if k in panel.names}
    known = np.flatnonzero(np.isfinite(panel.values[:, -1]))
    first = int(known[0]) if len(known) else 0
    panel = replace(panel, origin_s=panel.time(first), values=panel.values[first:])
    judge_from = history.judge_from - first
    if not 0 < judge_from < panel.rows:
        judge_from = max(1, int(panel.rows * TRAIN))
    return replace(history, panel=panel, supply=None, team_waiting=waiting, judge_from=judge_from)


def _moved(history: History, zone: str) -> History:
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise InputError.one("ZONE", zone, "an IANA time zone such as Europe/Berlin") from None
    return replace(history, panel=replace(history.panel, timezone=zone))
