"""From a trace folder to what a simulated world runs: jobs as gangs, and services for teams known only by demand.

A trace is input from outside: what is missing or impossible in it is refused with its column and row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from controller.core.errors import InputError
from controller.core.policy import Policy, Team
from controller.core.quantities import MILLI, ceil_div
from controller.worlds.simulated.jobs import Job, gang_shape
from controller.worlds.simulated.world import Service

if TYPE_CHECKING:
    import pandas as pd

BUILTIN = "builtin:"
JOB_COLUMNS = ("job_id", "team", "submit_s", "duration_s", "gpus")
DEMAND_COLUMNS = ("t_s", "team", "wanted_mean", "wanted_max")
STEP_S = 300
HistoryRow = tuple[int, str, str, int, int]


@dataclass(frozen=True, slots=True)
class TraceInput:
    """Input of a simulated world from ``begin_s`` (epoch seconds) on, and demand as it was before (for forecasts).

    ``history`` rows are ``(at_s, pool, team, mean, max)`` in milli-GPUs; team "" is the pool's total.
    """

    name: str
    origin_s: int
    begin_s: int
    end_s: int
    jobs: tuple[tuple[str, Job], ...]
    services: tuple[Service, ...]
    history: tuple[HistoryRow, ...]


def builtin_folder(name: str) -> Path:
    """The folder of a trace that ships with tidegate (``builtin:demo``)."""
    root = Path(__file__).resolve().parents[2] / "data" / "traces"
    folder = root / name.removeprefix(BUILTIN)
    if not folder.is_dir() or folder.parent != root:
        there = ", ".join(sorted(f"{BUILTIN}{path.name}" for path in root.iterdir() if path.is_dir()))
        raise InputError.one("--trace", name, f"a folder, or one of {there}")
    return folder


def load_input(
    folder: Path,
    policy: Policy,
    *,
    begin_after_s: int | None = None,
    replica_milli_gpus: int = MILLI,
    checkpoint_s: int | None = 1800,
) -> TraceInput:
    """Read a trace for a world under ``policy``; its teams' namespaces carry the names of the trace's teams.

    ``begin_after_s`` seconds into the trace the world begins (default: what ``trace.json`` says, else its start).
    ``checkpoint_s`` is how often preemptible teams' jobs save.
    """
    from forecaster.history import origin_of, read_meta

    folder = folder if folder.is_dir() else folder.parent
    if not folder.is_dir():
        raise InputError.one("--trace", folder, "a folder in the layout of a trace")
    meta = read_meta(folder)
    origin = origin_of(meta)
    after = int(meta.get("begin_s", 0)) if begin_after_s is None else begin_after_s
    demand = _demand(folder / "demand_5min.parquet")
    jobs = _jobs(folder / "jobs.parquet")
    if demand is None and jobs is None:
        raise InputError.one("--trace", folder, "a folder with jobs.parquet or demand_5min.parquet")
    served = set(demand["team"]) if demand is not None else set()
    working = set(jobs["team"]) if jobs is not None else set()
    owners = _owners(policy, served | working, folder)
    gangs = [] if jobs is None else list(_gangs(jobs, policy, owners, origin, origin + after, checkpoint_s))
    services: tuple[Service, ...] = ()
    if demand is not None:
        services = _services(demand, served - working, owners, policy, origin, after, replica_milli_gpus)
    end = max(
        [job.submit_s for _, job in gangs[-1:]] + [s.steps[-1][0] + STEP_S for s in services if s.steps], default=0
    )
    if end <= origin + after:
        raise InputError.one("--begin", after, "a moment before the end of the trace")
    history = () if demand is None else tuple(_history(demand, owners, policy, origin, after))
    return TraceInput(folder.name, origin, origin + after, end, tuple(gangs), services, history)


def _read(path: Path, columns: tuple[str, ...]) -> pd.DataFrame | None:
    import pandas as pd

    from forecaster.history import check_columns

    if not path.exists():
        return None
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError.one("(file)", type(error).__name__, "a Parquet file", source=str(path)) from error
    check_columns(frame, columns, str(path))
    return frame


def _jobs(path: Path) -> pd.DataFrame | None:
    from forecaster.history import check_values

    frame = _read(path, JOB_COLUMNS)
    if frame is None:
        return None
    check_values(frame, ("submit_s", "gpus"), ("duration_s",), str(path))
    if "end_s" in frame:
        # A pod that was never scheduled has no duration: it is wanted until it was deleted.
        frame["duration_s"] = frame["duration_s"].fillna(frame["end_s"] - frame["submit_s"])
    frame = frame.reset_index(drop=True)
    for column, least, allowed in (
        ("submit_s", None, "a number of seconds"),
        ("duration_s", 0, "0 or more seconds"),
        ("gpus", 0, "0 or more GPUs"),
    ):
        values = frame[column]
        bad = values.isna() & (column != "duration_s") if least is None else values < least
        if column == "gpus":
            bad = bad | values.isna()
        if bad.any():
            row = int(bad.to_numpy().argmax())
            raise InputError.one(f"{column}, row {row}", values.iloc[row], allowed, source=str(path))
    frame = frame[frame["duration_s"].notna() & (frame["gpus"] > 0)]
    return frame.sort_values(["submit_s", "job_id"], kind="stable")


def _demand(path: Path) -> pd.DataFrame | None:
    from forecaster.history import check_values

    frame = _read(path, DEMAND_COLUMNS)
    if frame is None:
        return None
    check_values(frame, ("t_s",), ("wanted_mean", "wanted_max"), str(path))
    bad = (frame["wanted_max"] < 0) | (frame["wanted_mean"] < 0)
    if bad.any():
        row = int(bad.to_numpy().argmax())
        raise InputError.one(
            f"wanted_max, row {row}", frame["wanted_max"].iloc[row], "0 or more GPUs", source=str(path)
        )
    return frame.sort_values(["t_s", "team"], kind="stable")


def _owners(policy: Policy, names: set[str], folder: Path) -> dict[str, Team]:
    """The policy's team of each team of the trace (as a namespace); a trace nobody owns is a mistake."""
    found = {name: team for name in sorted(names) if (team := policy.team_of(name)) is not None}
    if not found:
        shown = ", ".join(sorted(names)[:12])
        raise InputError.one(
            "--policy", policy.name, f"teams with namespaces of the trace: {shown}", source=str(folder)
        )
    return found


def _pool_of(team: Team | None, policy: Policy) -> str:
    return next((pool.name for pool in policy.pools if team is None or team.in_pool(pool.name)), policy.pools[0].name)


def _gangs(
    frame: pd.DataFrame, policy: Policy, owners: dict[str, Team], origin: int, begin: int, checkpoint_s: int | None
) -> Iterator[tuple[str, Job]]:
    """Jobs that arrive from ``begin`` on, and what is left then of those that came before."""
    per_node = {pool.name: pool.gpus_per_node for pool in policy.pools}
    twins: dict[str, int] = {}
    for row in frame.itertuples(index=False):
        wanted: Any = row
        submit, duration = origin + int(wanted.submit_s), max(1, round(wanted.duration_s))
        if submit < begin:
            submit, duration = begin, submit + duration - begin
        if duration <= 0:
            continue
        team = owners.get(wanted.team)
        pool = _pool_of(team, policy)
        name = str(wanted.job_id)
        twins[name] = twins.get(name, 0) + 1
        pods, each = gang_shape(round(wanted.gpus * MILLI), per_node[pool])
        preemptible = bool(team and team.preemptible)
        yield (
            pool,
            Job(
                name=name if twins[name] == 1 else f"{name}~{twins[name]}",
                team=str(wanted.team),
                submit_s=submit,
                duration_s=duration,
                pods=pods,
                milli_gpus_per_pod=each,
                priority=team.priority if team else 0,
                preemptible=preemptible,
                checkpoint_s=checkpoint_s if preemptible else None,
                owner=team.name if team else "",
            ),
        )


def _services(
    frame: pd.DataFrame,
    names: set[str],
    owners: dict[str, Team],
    policy: Policy,
    origin: int,
    after: int,
    replica_milli_gpus: int,
) -> tuple[Service, ...]:
    services = []
    for name in sorted(names):
        rows = frame[(frame["team"] == name) & frame["wanted_max"].notna() & (frame["t_s"] >= after)]
        team = owners.get(name)
        steps: list[tuple[int, int]] = []
        for at, wanted in zip(rows["t_s"].tolist(), rows["wanted_max"].tolist(), strict=True):
            steps.append((origin + int(at), ceil_div(round(wanted * MILLI), replica_milli_gpus)))
        priority, owner = (team.priority, team.name) if team else (0, "")
        services.append(Service(name, _pool_of(team, policy), replica_milli_gpus, tuple(steps), priority, owner))
    return tuple(services)


def _history(
    frame: pd.DataFrame, owners: dict[str, Team], policy: Policy, origin: int, after: int
) -> Iterator[HistoryRow]:
    """Demand before the beginning: each team's, and per pool the total of all."""
    past = frame[(frame["t_s"] < after) & frame["wanted_mean"].notna()]
    totals: dict[tuple[int, str], list[int]] = {}
    columns = (past["t_s"].tolist(), past["team"].tolist(), past["wanted_mean"].tolist(), past["wanted_max"].tolist())
    for at, name, mean, peak in zip(*columns, strict=True):
        team = owners.get(name)
        pool = _pool_of(team, policy)
        mean_milli, peak_milli = round(mean * MILLI), round(peak * MILLI)
        if team is not None:
            yield origin + int(at), pool, team.name, mean_milli, peak_milli
        total = totals.setdefault((origin + int(at), pool), [0, 0])
        total[0] += mean_milli
        total[1] += peak_milli
    for (at_s, pool), (mean_milli, peak_milli) in totals.items():
        yield at_s, pool, "", mean_milli, peak_milli
