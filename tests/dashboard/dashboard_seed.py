"""Fills a store as a loop would: snapshots decided by the core and recorded, tick after tick."""

from __future__ import annotations

from pathlib import Path

from controller.core.actions import action_id
from controller.core.advice import Advice
from controller.core.decide import decide
from controller.core.forecast import TOTAL, Forecasts, SeriesForecast, WindowForecast
from controller.core.policy import Bounds, Learning, LearningMode, Mode, Policy, Pool, PoolLimits, Team
from controller.core.quantities import MILLI, PPM, Amount
from controller.core.snapshot import Node, PoolObservation, Snapshot, Workload, WorkloadState
from controller.store import TickRecord, open_store

BEGIN_S = 1_767_600_000 - 1_767_600_000 % 300
STEP_S = 300
CLUSTER = "seeded"


def names(teams: int) -> list[str]:
    return [f"team-{i:03}" for i in range(teams)]


def policy_for(teams: int, learning: str = "full") -> Policy:
    nodes = max(4, teams)
    pool = Pool("h100", (("gpu", "h100"),), PoolLimits(min_gpus=8, max_gpus=8 * nodes))
    each = Amount(ppm=PPM // teams)
    members = tuple(Team(name, (name,), priority=10, bounds=Bounds(floor=each)) for name in names(teams))
    return Policy("seeded", Mode.ENFORCE, "Europe/Berlin", (pool,), members, learning=Learning(LearningMode(learning)))


def snapshot_at(tick: int, teams: int, waiting: int = 1) -> Snapshot:
    """Team 0 fills the pool; so many of the next teams wait for a node's GPUs, which are due to them."""
    now = BEGIN_S + tick * STEP_S
    nodes = tuple(
        Node(f"node-{i:03}", "h100", 8, 8 * MILLI, BEGIN_S - 7200, BEGIN_S - 7000, BEGIN_S - 6900)
        for i in range(max(4, teams))
    )
    works = [
        Workload(
            f"greedy-{i}",
            "team-000",
            "h100",
            1,
            8 * MILLI,
            WorkloadState.RUNNING,
            BEGIN_S,
            BEGIN_S,
            nodes=(f"node-{i:03}",),
        )
        for i in range(len(nodes))
    ]
    for i in range(waiting):
        name, since = "patient" if i == 0 else f"patient-{i}", BEGIN_S - 1200 - 60 * i
        works.append(Workload(name, f"team-{i + 1:03}", "h100", 1, 8 * MILLI, WorkloadState.PENDING, since))
    pool = PoolObservation("h100", 8, 600, target_nodes=len(nodes), micro_usd_per_node_hour=32_000_000)
    return Snapshot(CLUSTER, now, (pool,), nodes, tuple(works))


def forecasts_at(tick: int, teams: int) -> Forecasts:
    now = BEGIN_S + tick * STEP_S
    levels = (100, 500, 900, 980)
    quantiles = tuple((20 + 2 * i + tick % 5) * MILLI for i in range(4))
    windows = (WindowForecast(600, 1500, levels, quantiles), WindowForecast(600, 4200, levels, quantiles))
    return Forecasts(
        tuple(SeriesForecast("h100", name, now, windows, "mixture") for name in (TOTAL, *names(teams)[:3]))
    )


def append(store_path: Path, tick: int, teams: int, waiting: int = 1, learning: str = "full") -> str:
    """Record one tick; returns its id."""
    seen = snapshot_at(tick, teams, waiting)
    return record(store_path, seen, policy_for(teams, learning), forecasts_at(tick, teams))


def record(store_path: Path, seen: Snapshot, policy: Policy | None = None, forecasts: Forecasts | None = None) -> str:
    """Decide and record what was seen, by default with three teams and no forecasts; returns the tick's id."""
    policy, forecasts = policy or policy_for(3), forecasts or Forecasts()
    decision = decide(seen, forecasts, policy, seen.taken_at_s)
    row = TickRecord.of(
        snapshot=seen,
        forecasts=forecasts,
        policy=policy,
        advice=Advice(),
        decision=decision,
        wall_at_s=seen.taken_at_s + 1_000_000,
    )
    with open_store(str(store_path)) as store:
        store.append(row, decision, forecasts)
        store.outcomes(row.id, [(action_id(action), "applied", "") for action in decision.actions])
    return row.id


def fill(path: Path, teams: int, ticks: int) -> None:
    for tick in range(ticks):
        append(path, tick, teams)
