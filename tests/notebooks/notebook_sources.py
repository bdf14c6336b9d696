"""Small histories for the notebooks' tests, each built so that what must come out can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from controller.core.advice import Advice
from controller.core.decide import decide
from controller.core.forecast import TOTAL, Forecasts
from controller.core.policy import Bounds, Mode, Policy, Pool, PoolLimits, Team
from controller.core.quantities import MILLI, Amount
from controller.core.snapshot import Node, PoolObservation, Snapshot, Workload, WorkloadState
from controller.store import LearningDay, LearningEvent, LearningOutcome, LearningTick, TickRecord, open_store
from dashboard.notebook.history import History
from forecaster.series import Array, Panel

STEP_S, DAY_S, DAY_ROWS = 300, 86_400, 288
MONDAY_S = 1_790_553_600
"""2026-09-28 00:00 UTC, a Monday."""
CLUSTER, POOL = "east", "h100"
TEAMS = ("dev", "vision")


def office(days: int, low: float, high: float, begin_h: int = 8, end_h: int = 18) -> Array:
    """``high`` GPUs in office hours, else ``low``: the same each day."""
    hour = np.arange(days * DAY_ROWS) % DAY_ROWS / 12
    return np.where((hour >= begin_h) & (hour < end_h), float(high), float(low))


def wavy(days: int, mean: float, swing: float, seed: int = 7) -> Array:
    """A daily wave with noise, never below zero."""
    rows = np.arange(days * DAY_ROWS)
    noise = np.random.default_rng(seed).normal(0, 0.03 * mean, len(rows))
    return np.maximum(mean + swing * np.sin(2 * np.pi * (rows / DAY_ROWS - 0.3)) + noise, 0)


def a_history(teams: dict[str, Array], zone: str = "UTC", judge_from: int | None = None, **given: object) -> History:
    """Teams by name: demand by 5-minute step from a Monday's midnight on."""
    values = np.stack(list(teams.values()), axis=1)
    panel = Panel(tuple(teams), MONDAY_S, STEP_S, zone, values).with_total()
    history = History("test", "test", "test", panel, judge_from or int(len(values) * 0.62))
    return replace(history, **given)  # type: ignore[arg-type]


def write_parquet(path: Path, teams: dict[str, Array]) -> Path:
    """A Parquet file as a newcomer has one: time, team, wanted_mean."""
    frame = pd.DataFrame(_rows(teams), columns=["time", "team", "wanted_mean"])
    frame.to_parquet(path)
    return path


def _rows(teams: dict[str, Array]) -> list[tuple[str, str, float]]:
    return [
        (f"{pd.Timestamp(MONDAY_S + i * STEP_S, unit='s'):%Y-%m-%d %H:%M}", name, float(value))
        for name, values in teams.items()
        for i, value in enumerate(values)
    ]


def a_policy(teams: tuple[str, ...] = TEAMS, most: int = 64) -> Policy:
    floor = Amount(milli_gpus=8 * MILLI)
    members = tuple(Team(name, (name,), bounds=Bounds(floor=floor)) for name in teams)
    pool = Pool(POOL, (("gpu", POOL),), PoolLimits(0, most), gpus_per_node=8)
    return Policy("production", Mode.ENFORCE, "Europe/Berlin", (pool,), members)


def write_store(path: Path, teams: dict[str, Array], ticks: int = 12) -> Path:
    """A store as a loop leaves it: demand on the grid, and the newest ticks with what ran and waited.

    In each tick one node of 8 GPUs is up, ``dev`` runs on 6 of them, and 4 more of its GPUs wait.
    """
    rows = len(next(iter(teams.values())))
    end_s = MONDAY_S + rows * STEP_S
    total = sum(teams.values())
    with open_store(str(path)) as store:
        store.load_demand(
            CLUSTER,
            [
                (MONDAY_S + (i + 1) * STEP_S, POOL, name, round(float(value) * MILLI), round(float(value) * MILLI))
                for name, values in {**teams, TOTAL: total}.items()
                for i, value in enumerate(values)
            ],
        )
        for i in range(ticks):
            at_s = end_s - (ticks - 1 - i) * STEP_S
            snapshot = _snapshot(at_s)
            policy = a_policy(tuple(teams))
            decision = decide(snapshot, Forecasts(()), policy, at_s)
            record = TickRecord.of(
                snapshot=snapshot,
                forecasts=Forecasts(()),
                policy=policy,
                advice=Advice(),
                decision=decision,
                wall_at_s=at_s,
            )
            store.append(record, decision, Forecasts(()))
    return path


def _snapshot(at_s: int) -> Snapshot:
    node = Node("node-0", POOL, 8, 8 * MILLI, at_s - 7200, at_s - 7000, at_s - 6900)
    running = Workload(
        "train", "dev", POOL, 1, 6 * MILLI, WorkloadState.RUNNING, at_s - 600, at_s - 600, nodes=("node-0",)
    )
    waiting = Workload("patient", "dev", POOL, 1, 4 * MILLI, WorkloadState.PENDING, at_s - 60)
    return Snapshot(CLUSTER, at_s, (PoolObservation(POOL, 8, 600, target_nodes=1),), (node,), (running, waiting))


CLIPS = ("OVER_CEILING", "STEP")


def a_tick(at_s: int, **given: object) -> LearningTick:
    """A learner that wants three nodes like the rule, and does not act."""
    values: dict[str, object] = {
        "cluster": CLUSTER,
        "tick_id": f"t{at_s}",
        "at_s": at_s,
        "pool": POOL,
        "ceiling": "full",
        "rung": "advise",
        "acting": "rule",
        "demand_milli_gpus": 20_500,
        "lead_s": 600,
        "quantiles": ((500, 20_000), (900, 30_000)),
        "rule_nodes": 3,
        "candidates": (("bold", 5), ("shy", 2), ("rule", 3), ("other", 2)),
        "learner_nodes": 3,
        "target_nodes": 3,
        "implied_permille": 870,
        "move": "raise",
        "clipped": (),
        "model": "",
        "inputs": b"{}",
    }
    return LearningTick.of(**(values | given))  # type: ignore[arg-type]


def write_learning(path: Path, end_s: int) -> Path:
    """What a learner left behind: two shadow days, two verdicts and a promotion, and the three ticks before ``end_s``.

    The rule asks for 3 nodes of 8 GPUs in each tick, the learner for 4, 2 and nothing; in the first one it acts.
    """
    midnight = end_s // DAY_S * DAY_S - 7200  # Berlin, two hours ahead of UTC
    days = [
        LearningDay(CLUSTER, POOL, midnight - DAY_S * back, name, cost, 10_000 - cost, 288)
        for back, costs in (
            (2, {"rule": 10_000, "bold": 14_000, "hedge": 7_500}),
            (1, {"rule": 10_000, "hedge": 11_000}),
        )
        for name, cost in costs.items()
    ]
    facts = (("acting", "hedge"), ("best", "hedge"), ("days", 2), ("mean_milli", 1500), ("standard_error_milli", 250))
    few = (
        ("acting", "rule"),
        ("best", "hedge"),
        ("days", 1),
        ("mean_milli", 2500),
        ("standard_error_milli", "unknown"),
    )
    events = [
        LearningEvent(CLUSTER, POOL, midnight - DAY_S, "gate", "shadow", "rule", "TOO_FEW_DAYS", few, "Too few days."),
        LearningEvent(CLUSTER, POOL, midnight, "gate", "advise", "rule", "SAVES", facts, "It saves."),
        LearningEvent(CLUSTER, POOL, midnight, "promotion", "advise", "rule", "GOOD_DAYS", (), "Up to advise."),
    ]
    ticks = [a_tick(end_s - 900, learner_nodes=4, rung="raise-only", acting="hedge", target_nodes=4, clipped=CLIPS)]
    ticks += [a_tick(end_s - 600, learner_nodes=2), a_tick(end_s - 300, learner_nodes=None)]
    outcome = LearningOutcome(
        CLUSTER, f"t{end_s - 900}", POOL, end_s - 900, rule_cost_milli=2000, cost_milli=1500, regret_milli=250
    )
    with open_store(str(path)) as store:
        store.append_learning(ticks, [outcome], days, events)
    return path
