"""The four ways of sharing, on small scenes worked out by hand and on slices of real traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from controller.backtest import shares
from controller.backtest.scene import Fleet, Scene, load_scene, partition_policy
from controller.core.errors import InputError
from controller.core.policy import Bounds, Lending, Mode, Policy, Pool, PoolLimits, Team
from controller.core.quantities import PPM, Amount
from controller.loop import DemandRecorder, FixedPolicy, Loop
from controller.loop.feeds import RecordedForecasts
from controller.worlds.simulated import SimulatedWorld
from controller.worlds.simulated.trace import builtin_folder, load_input
from forecaster.history import panel_from_parquet
from forecaster.series import Panel

STEP = 300


def a_scene(fleet: Fleet, policy: Policy, **gpus: list[float]) -> Scene:
    """A scene from a series: GPUs by team and step."""
    teams = tuple(sorted(gpus))
    values = np.array([gpus[team] for team in teams], dtype=np.float64).T
    panel = Panel(teams, 0, STEP, "UTC", values)
    gaps = frozenset(int(row) for row in np.flatnonzero(np.isnan(values).any(axis=1)))
    return Scene(fleet, policy, teams, (), 0, len(values) * STEP, (), panel, gaps)


TWO = Fleet((("a", 8), ("b", 8)))


def test_four_ways_on_six_steps_come_out_as_by_hand() -> None:
    """Two teams with 8 GPUs each, steps of 5 minutes.

    a:  4  4  4  8  8  4    b: 12 12 16  8  8  8
    static: b waits for 4, 4, 8                                = 16 GPU-steps = 16/12 GPU-h
    pooled: at most 16 held; only at step 2 (20 wanted) 4 wait = 4 GPU-steps
    borrowing: b holds 12 from the start. Step 2: 16 are held, b's 4 more wait. Step 3: b drops to 8, a gets its 8. = 4
    tidegate: the same 4; nothing is to be recalled, b's demand falls by itself.
    """
    scene = a_scene(TWO, partition_policy(TWO, Path("x")), a=[4, 4, 4, 8, 8, 4], b=[12, 12, 16, 8, 8, 8])
    found = shares.compare_scene(scene)
    waits = {name: outcome.wait_gpu_h * 12 for name, outcome in found.items()}
    assert waits == pytest.approx({"static_partition": 16, "quota_borrowing": 4, "tidegate": 4, "pooled_bound": 4})
    removed = {name: outcome.avoidable_wait_removed for name, outcome in found.items()}
    assert removed == {"static_partition": 0.0, "quota_borrowing": 1.0, "tidegate": 1.0, "pooled_bound": 1.0}
    assert found["tidegate"].evictions == 0
    # b wanted 64 GPU-steps and waited for 16 of them; a waited for none: Jain ((1 + .75)² / (2 · (1 + .75²))).
    static = found["static_partition"]
    assert static.worst_team_wait_share == pytest.approx(16 / 64)
    assert static.jain == pytest.approx(1.75**2 / (2 * (1 + 0.75**2)))


def test_when_an_owner_comes_back_tidegate_recalls_and_plain_quotas_let_it_wait() -> None:
    """b borrows all of a's 8 from step 0 on. At step 2 a wants 6 of them back for two steps.

    tidegate evicts 6 units of b that began 10 minutes ago: 6 · 10 min = 1 GPU-h lost, a never waits, b waits for 6 a
    step. Plain quotas: a waits for 6 a step, 2 steps, 10 minutes below its floor. Static: b waits for 8 always.
    """
    scene = a_scene(TWO, partition_policy(TWO, Path("x")), a=[0, 0, 6, 6], b=[16, 16, 16, 16])
    found = shares.compare_scene(scene)
    mine, quotas = found["tidegate"], found["quota_borrowing"]
    assert (mine.evictions, mine.lost_gpu_h, mine.below_floor_min) == (6, pytest.approx(1.0), 0)
    assert (quotas.evictions, quotas.lost_gpu_h, quotas.below_floor_min) == (0, 0.0, 10)
    assert mine.wait_gpu_h == quotas.wait_gpu_h == pytest.approx(12 / 12)
    assert found["static_partition"].wait_gpu_h == pytest.approx(32 / 12)
    assert mine.above_ceiling_min == quotas.above_ceiling_min == 0


def test_gpus_that_are_recalled_for_an_owner_are_not_taken_by_another_borrower() -> None:
    """c borrows 16 in all; then a (owner) and b (over its floor) want more at the same moment: a gets all it is due."""
    fleet = Fleet((("a", 8), ("b", 8), ("c", 8)))
    policy = partition_policy(fleet, Path("x"))
    scene = a_scene(fleet, policy, a=[2, 2, 8, 8], b=[6, 6, 14, 14], c=[16, 16, 16, 16])
    mine = shares.run_tidegate(scene).outcome()
    assert mine.below_floor_min == 0


def test_a_gap_changes_nothing_and_counts_nothing() -> None:
    nan = float("nan")
    policy = partition_policy(TWO, Path("x"))
    whole = shares.compare_scene(a_scene(TWO, policy, a=[4, 4, 4], b=[12, 12, 12]))
    torn = shares.compare_scene(a_scene(TWO, policy, a=[4, nan, nan, 4, 4], b=[12, nan, nan, 12, 12]))
    for name, outcome in whole.items():
        assert torn[name].wait_gpu_h == pytest.approx(outcome.wait_gpu_h), name
        assert torn[name].evictions == 0


def test_where_nobody_ever_waits_there_is_nothing_to_remove() -> None:
    found = shares.compare_scene(a_scene(TWO, partition_policy(TWO, Path("x")), a=[4], b=[8]))
    assert {outcome.avoidable_wait_removed for outcome in found.values()} == {None}
    assert {outcome.jain for outcome in found.values()} == {1.0}


def test_helios_over_two_bad_days_waits_no_longer_than_one_pool_and_is_never_below_a_floor(shared_traces: Path) -> None:
    """The days on which the pool as a whole was short; the static figure is checked against plain numpy."""
    scene = load_scene(shared_traces / "helios_earth")
    assert scene.series is not None
    first = 15 * 288
    rows = slice(first, first + 2 * 288)
    begin = scene.series.time(first)
    panel = replace(scene.series, origin_s=begin, values=scene.series.values[rows])
    cut = replace(scene, series=panel, begin_s=begin, end_s=begin + 2 * 86_400)
    found = shares.compare_scene(cut)
    demand = np.round(panel.values)
    mine = np.array([scene.fleet.partitions[name] for name in panel.names])
    assert found["static_partition"].wait_gpu_h == pytest.approx(np.maximum(demand - mine, 0).sum() / 12)
    total = np.maximum(demand.sum(axis=1) - scene.fleet.gpus, 0).sum() / 12
    assert total > 0
    assert found["pooled_bound"].wait_gpu_h == pytest.approx(total)
    removed = found["tidegate"].avoidable_wait_removed
    assert removed is not None
    assert removed >= 0.95
    assert (found["tidegate"].below_floor_min, found["tidegate"].above_ceiling_min) == (0, 0)


def serving_first(*, aware: bool) -> Policy:
    """Serving is due every GPU; training borrows what is left over and is recalled with ten minutes' notice."""
    teams = (
        Team("inference", ("inference",), priority=100, bounds=Bounds(Amount(ppm=PPM))),
        *(Team(name, (name,)) for name in ("language", "speech", "vision")),
    )
    pool = Pool("fleet", (), PoolLimits(232, 232))
    return Policy("p", Mode.ENFORCE, "UTC", (pool,), teams, Lending(notice_s=600, forecast_aware=aware))


def a_monday(*, aware: bool) -> shares.Tally:
    """36 hours of the bundled trace from Sunday noon: real training jobs, and LLM serving that rises on Monday.

    232 GPUs hold the serving peak and not the training beside it. The forecaster knows the demand before, no more.
    """
    policy = serving_first(aware=aware)
    folder = builtin_folder("builtin:demo")
    given = load_input(folder, policy)
    panel = panel_from_parquet(folder).select(["inference"])
    first = panel.row(given.begin_s)
    series = replace(panel, origin_s=given.begin_s, values=panel.values[first : first + 36 * 12])
    teams = ("inference", "language", "speech", "vision")
    end_s = given.begin_s + 36 * 3600
    fleet = Fleet((("", 8),) * 29)
    scene = Scene(fleet, policy, teams, (), given.begin_s, end_s, tuple(job for _, job in given.jobs), series)

    def loop_of(world: SimulatedWorld, rules: Policy) -> Loop:
        demand = DemandRecorder("UTC")
        for at, pool, team, mean, _ in given.history:
            demand.put(at, pool, team, mean)
        feed = RecordedForecasts(demand, lambda _: 600, experts=("last_value", "seasonal"))
        return Loop(world, FixedPolicy(rules), forecaster=feed, demand=demand)

    return shares.run_tidegate(scene, loop_of)


def test_recall_ahead_of_the_morning_peak_spares_evictions_that_recall_at_the_peak_needs() -> None:
    """Aware of the forecast, what serving will want is not lent to new work: fewer evictions, less waiting."""
    aware, blind = a_monday(aware=True), a_monday(aware=False)
    assert 0 < aware.evictions < blind.evictions
    assert aware.waited["inference"] < blind.waited["inference"]
    assert aware.below_s < blind.below_s


def test_a_trace_without_partitions_needs_a_policy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"team partitions in nodes\.csv, or a policy"):
        load_scene(tmp_path)
