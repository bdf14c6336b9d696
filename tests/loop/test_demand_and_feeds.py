"""What the loop remembers of demand, and who learns from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from controller.core.advice import HeadroomSource
from controller.core.forecast import TOTAL, Forecasts
from controller.core.policy import Learning, LearningMode, Mode, Policy, Pool, PoolLimits, Team
from controller.core.snapshot import PoolObservation, Snapshot, Workload, WorkloadState
from controller.loop import DemandRecorder, FixedPolicy, ForecastError
from controller.loop.feeds import RecordedForecasts
from controller.loop.learned import LearnedAdvice
from forecaster.series import Panel

POLICY = Policy("p", Mode.ENFORCE, "UTC", (Pool("h", (), PoolLimits(0, 800)),), (Team("a", ("a",)), Team("b", ("b",))))
DAY = 86_400


def a_snapshot(at_s: int, **gpus: int) -> Snapshot:
    work = tuple(
        Workload(name, name, "h", 1, amount * 1000, WorkloadState.PENDING, at_s) for name, amount in gpus.items()
    )
    return Snapshot("c", at_s, (PoolObservation("h", 8, 600),), workloads=work)


def test_what_was_seen_at_a_moment_stands_for_the_step_that_ends_there() -> None:
    demand = DemandRecorder("UTC")
    demand.observe(a_snapshot(600, a=3), POLICY)
    demand.observe(a_snapshot(900, a=4, b=2), POLICY)
    panel = demand.panel("h")
    assert panel.names == ("a", "b", TOTAL)
    assert (panel.time(0), panel.rows) == (300, 2)
    assert panel.values.tolist() == [[3.0, 0.0, 3.0], [4.0, 2.0, 6.0]]
    # A decision at 900 may use every row that begins before 900: the newest of them is what it has just seen.
    assert panel.until(panel.row(900)).rows == 2


def test_demand_of_nobody_counts_in_the_total_and_a_moment_nobody_saw_is_unknown() -> None:
    demand = DemandRecorder("UTC")
    demand.observe(a_snapshot(600, a=3, stranger=5), POLICY)
    demand.observe(a_snapshot(1200, a=1), POLICY)
    values = demand.panel("h").values
    assert values[0].tolist() == [3.0, 0.0, 8.0]
    assert np.isnan(values[1]).all()


def test_of_several_ticks_in_a_step_the_highest_counts() -> None:
    demand = DemandRecorder("UTC")
    for at, gpus in ((360, 3), (420, 9), (600, 4)):
        demand.observe(a_snapshot(at, a=gpus), POLICY)
    assert demand.panel("h").values[:, 0].tolist() == [9.0]


@dataclass
class Column:
    pool: str
    team: str
    at_s: list[int]
    mean: list[int]


def test_what_the_store_kept_joins_what_is_observed_and_order_does_not_matter() -> None:
    demand = DemandRecorder("UTC")
    demand.observe(a_snapshot(1200, a=7), POLICY)
    demand.load([Column("h", "a", [600, 900], [1000, 2500]), Column("h", TOTAL, [600, 900], [1000, 2500])])
    assert demand.panel("h").values[:, 0].tolist() == [1.0, 2.5, 7.0]


def test_only_so_much_is_kept() -> None:
    demand = DemandRecorder("UTC", keep_s=10 * 300)
    for step in range(1, 100):
        demand.put(step * 300, "h", "a", step * 1000)
        demand.put(step * 300, "h", TOTAL, step * 1000)
    panel = demand.panel("h")
    assert 10 <= panel.rows <= 20
    assert panel.values[-1, 0] == 99
    assert panel.time(panel.rows - 1) == 98 * 300


def a_rhythm(days: float, peak: int = 80) -> DemandRecorder:
    """A square working day: 9 to 17 at the peak, an eighth of it otherwise."""
    demand = DemandRecorder("UTC")
    for step in range(1, int(days * 288)):
        at = step * 300
        gpus = peak if 9 <= at % DAY / 3600 < 17 else peak // 8
        for team in ("a", TOTAL):
            demand.put(at, "h", team, gpus * 1000)
    return demand


def test_forecasts_come_for_every_team_and_the_total_and_know_nothing_later() -> None:
    demand = a_rhythm(5.5)
    now = 5 * DAY + 8 * 3600
    feed = RecordedForecasts(demand, lambda _: 1800, experts=("last_value", "seasonal"))
    feed.fit(now)
    forecasts = feed.forecasts(now)
    assert {series.team for series in forecasts.series} == {"a", TOTAL}
    poisoned = a_rhythm(5.5)
    for step in range(now // 300 + 1, int(5.5 * 288)):
        for team in ("a", TOTAL):
            poisoned.put(step * 300, "h", team, 10**9)
    again = RecordedForecasts(poisoned, lambda _: 1800, experts=("last_value", "seasonal"))
    again.fit(now)
    assert again.forecasts(now) == forecasts


def test_a_pool_that_cannot_be_fitted_says_which() -> None:
    class Torn(DemandRecorder):
        def panel(self, pool: str) -> Panel:
            raise ValueError("singular")

    demand = Torn("UTC")
    demand.put(300, "h", TOTAL, 1000)
    with pytest.raises(ForecastError, match="h: singular"):
        RecordedForecasts(demand, lambda _: 600).fit(600)


def test_too_short_a_past_says_nothing() -> None:
    demand = a_rhythm(0.25)
    advisor = LearnedAdvice("c", demand, FixedPolicy(POLICY), lambda _: 600, lambda _: None)
    advisor.tune(DAY // 4)
    assert advisor.advice(DAY // 4, Forecasts()).pools == ()


def test_the_tuned_rule_is_the_one_an_exhaustive_look_finds_best() -> None:
    """Constant demand of 16 GPUs on nodes of 8: two nodes, no buffer and no hold cost nothing; all else idles."""
    demand = DemandRecorder("UTC")
    for step in range(1, 3 * 288):
        demand.put(step * 300, "h", TOTAL, 16_000)
    off = FixedPolicy(replace(POLICY, learning=Learning(LearningMode.OFF)))
    advisor = LearnedAdvice("c", demand, off, lambda _: 600, lambda _: None)
    advisor.tune(3 * DAY)
    (advice,) = advisor.advice(3 * DAY, Forecasts()).pools
    assert advice.source is HeadroomSource.RULE
    assert math.ceil(16 * (1000 + advice.rule.buffer_permille) / 1000 / 8) == 2
