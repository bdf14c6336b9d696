"""The monitors: Page's sum against a published table and an exact chain, shares and days counted by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf, isnan, nan, sqrt
from statistics import NormalDist, stdev
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core.errors import InputError
from controller.learning.monitors import Cusum, Fidelity, Monitors, Tally, Watch

HOUR_S, DAY_S = 3600, 86_400
T0_S = 20_000 * DAY_S
MONTGOMERY = [
    # x and C+ of Montgomery, Introduction to Statistical Quality Control, 6th ed., tables 9.1 and 9.2:
    # target 10, s.d. 1, K = 0.5; from the 21st on the mean is 11, and the 29th is the first above H = 5.
    *[(9.45, 0), (7.99, 0), (9.29, 0), (11.66, 1.16), (12.16, 2.82), (10.18, 2.50), (8.04, 0.04), (11.46, 1.00)],
    *[(9.20, 0), (10.34, 0), (9.03, 0), (11.47, 0.97), (10.51, 0.98), (9.40, 0), (10.08, 0), (9.37, 0)],
    *[(10.62, 0.12), (10.31, 0), (8.52, 0), (10.84, 0.34), (10.90, 0.74), (9.33, 0), (12.29, 1.79), (11.50, 2.79)],
    *[(10.60, 2.89), (11.08, 3.47), (10.38, 3.35), (11.62, 4.47), (11.31, 5.28), (10.52, 5.30)],
]


def known_spread(total: float) -> Cusum:
    """A sum whose spread is one: 56 periods with a population variance of 55/56."""
    return Cusum(sum=total, n=56, variance=55 / 56)


class TestCusum:
    def test_is_that_of_the_textbook(self) -> None:
        total = 0.0
        for x, expected in MONTGOMERY:
            total = known_spread(total).observe(x - 10, 0.0).sum
            assert total == pytest.approx(expected, abs=1e-9)

    def test_measures_each_day_by_the_spread_of_the_days_before_it(self) -> None:
        """-2 -1 0 1 2: s^2 = 10/4. Then 5 counts 5/sqrt(2.5) - 0.5 = 2.66; s^2 of all six is then 35/6 (mean 5/6)."""
        cusum = Cusum()
        for regret in (-2, -1, 0, 1, 2):
            cusum = cusum.observe(regret, 10.0)
        assert (cusum.sum, cusum.n) == (0.0, 5)
        cusum = cusum.observe(5, 10.0)
        assert cusum.sum == pytest.approx(5 / sqrt(2.5) - 0.5)
        squares = 4 + 1 + 0 + 1 + 4 + 25 - 6 * (5 / 6) ** 2
        assert cusum.spread == pytest.approx(sqrt(squares / 5))
        assert cusum.observe(1, 10.0).sum == pytest.approx(5 / sqrt(2.5) - 0.5 + 1 / sqrt(squares / 5) - 0.5)

    def test_spread_is_the_sample_standard_deviation_of_the_first_eight_weeks(self) -> None:
        regrets = np.random.default_rng(3).normal(2, 7, 56).tolist()
        cusum = Cusum()
        for k, regret in enumerate(regrets, 1):
            cusum = cusum.observe(regret, 0.0)
            if k > 1:
                assert cusum.spread == pytest.approx(stdev(regrets[:k]))

    def test_forgets_how_a_pool_was_that_has_grown(self) -> None:
        """Regrets of 1 up and down for a year, then of 10: after half a year more the spread is that of the new."""
        cusum = Cusum()
        for k in range(365):
            cusum = cusum.observe((-1) ** k, 0.0)
        assert cusum.spread == pytest.approx(1, rel=0.05)
        for k in range(180):
            cusum = cusum.observe(10 * (-1) ** k, 0.0)
        assert cusum.spread == pytest.approx(10, rel=0.05)

    def test_does_not_count_the_first_five_days(self) -> None:
        cusum = Cusum()
        for k in range(5):
            cusum = cusum.observe(100.0 + k, 10.0)
            assert cusum.sum == 0.0
        assert cusum.observe(100.0, 10.0).sum > 0

    def test_takes_no_spread_below_a_hundredth_of_the_rules_cost(self) -> None:
        """A copy of the rule at 200 a day that then costs 1 more: half a spread of 2, so nothing; 3 more: 1.0."""
        copy = Cusum()
        for _ in range(20):
            copy = copy.observe(0.0, 200.0)
        assert copy.spread == pytest.approx(2.0)
        assert copy.observe(1.0, 200.0).sum == 0.0
        assert copy.observe(3.0, 200.0).sum == pytest.approx(1.0)

    def test_counts_one_day_as_ten_standard_deviations_at_most(self) -> None:
        assert known_spread(0.0).observe(1e9, 0.0).sum == 9.5
        assert Cusum(sum=10.0, n=56, variance=55 / 56).observe(-1e9, 0.0).sum == 0.0

    def test_can_be_lived_down_however_long_it_went_wrong(self) -> None:
        """At ten it stops, so that ten days as good as the rule bring it from there to the limit of five."""
        cusum = known_spread(0.0)
        for _ in range(100):
            cusum = known_spread(cusum.sum).observe(3.0, 0.0)
        assert cusum.sum == 10.0
        for _ in range(10):
            assert cusum.sum > 5.0
            cusum = known_spread(cusum.sum).observe(0.0, 0.0)
        assert cusum.sum == 5.0

    @pytest.mark.parametrize(("regret", "then"), [(0.0, 0.0), (1e-6, 9.5), (-1e-6, 0.0)])
    def test_without_any_spread_knows_only_the_sign(self, regret: float, then: float) -> None:
        assert Cusum(n=9).observe(regret, 0.0).sum == then

    @pytest.mark.parametrize("bad", [(nan, 1.0), (inf, 1.0), (-inf, 1.0), (1.0, nan), (1.0, inf), (1e200, 1.0)])
    def test_is_no_number_for_the_day_that_has_none_and_learns_nothing_from_it(self, bad: tuple[float, float]) -> None:
        before = replace(known_spread(3.0), mean_rule_cost=10.0)
        after = before.observe(*bad)
        assert isnan(after.sum)
        assert replace(after, sum=3.0) == before
        assert after.observe(2.0, 10.0).sum == pytest.approx(1.5)

    def test_restarted_keeps_the_spread(self) -> None:
        assert known_spread(7.0).restarted() == known_spread(0.0)

    def test_alarms_without_cause_as_often_as_the_exact_chain_says(self) -> None:
        """Brook and Evans 1972: the sum on a grid is a Markov chain; its share absorbed by day 100, and 3,000 runs."""
        cells, width = 200, 5 / 199.5
        middle = np.arange(cells) * width
        normal = NormalDist()
        chain = np.empty((cells, cells))
        for i in range(cells):
            edges = np.array([normal.cdf(m + width / 2 + 0.5 - middle[i]) for m in middle])
            chain[i] = np.diff(edges, prepend=0.0)
        alive = np.zeros(cells)
        alive[0] = 1.0
        for _ in range(100):
            alive = alive @ chain
        exact = 1 - alive.sum()
        rng = np.random.default_rng(11)
        alarmed = 0
        for _ in range(3000):
            total = 0.0
            for regret in rng.normal(size=100):
                total = known_spread(total).observe(regret, 0.0).sum
                if total > 5:
                    alarmed += 1
                    break
        assert exact == pytest.approx(1 - np.exp(-100 / 930), abs=0.01)
        assert alarmed / 3000 == pytest.approx(exact, abs=3 * sqrt(exact * (1 - exact) / 3000))

    @pytest.mark.parametrize(
        ("kind", "worse", "days", "low", "high"),
        [("normal", 0.0, 90, 0.08, 0.14), ("exponential", -1.0, 90, 0.45, 0.6), ("normal", 1.0, 21, 0.9, 0.96)],
    )
    def test_with_a_spread_that_it_has_to_learn_alarms_as_the_reference_says(
        self, kind: str, worse: float, days: int, low: float, high: float
    ) -> None:
        """Two weeks in shadow, then as good as the rule for 90 days, or a standard deviation worse for three weeks.

        Exponential regrets less one have mean nought and s.d. one, like the normal ones.
        """
        rng = np.random.default_rng(20_261_207)
        alarmed = 0
        for _ in range(600):
            cusum = Cusum()
            drawn = rng.normal(size=14 + days) if kind == "normal" else rng.exponential(size=14 + days)
            for regret in drawn[:14] + min(worse, 0.0):
                cusum = cusum.observe(regret, 0.0)
            cusum = cusum.restarted()
            for regret in drawn[14:] + worse:
                cusum = cusum.observe(regret, 0.0)
                if cusum.sum > 5:
                    alarmed += 1
                    break
        assert low <= alarmed / 600 <= high


class TestTally:
    def test_counts_what_held_in_its_window(self) -> None:
        """Three hours: what began in the hours 0 to 2 counts at 2:59, and no longer at 3:00."""
        tally = Tally(3 * HOUR_S)
        for minute, held in ((0, True), (59, False), (60, True), (179, True)):
            tally = tally.observe(T0_S + 60 * minute, held)
        assert (tally.times, tally.of) == (3, 4)
        tally = tally.observe(T0_S + 3 * HOUR_S, False)
        assert (tally.times, tally.of) == (2, 3)

    def test_takes_late_ones_in_and_forgets_all_after_a_long_silence(self) -> None:
        tally = Tally(DAY_S).observe(T0_S + HOUR_S, True).observe(T0_S, True)
        assert (tally.times, tally.of) == (2, 2)
        tally = tally.observe(T0_S + 9 * DAY_S, False)
        assert (tally.times, tally.of) == (0, 1)

    def test_of_a_clock_that_was_ahead_is_not_stuck_in_the_future(self) -> None:
        tally = Tally(DAY_S).observe(T0_S + 5000 * DAY_S, True).observe(T0_S, False)
        assert (tally.times, tally.of) == (0, 1)

    def test_stays_small(self) -> None:
        tally = Tally(3 * DAY_S)
        for k in range(10 * 288):
            tally = tally.observe(T0_S + 300 * k, True)
        assert len(tally.buckets) == 72
        assert tally.of == 3 * 288


class TestFidelity:
    def test_is_the_sum_of_what_the_days_are_apart(self) -> None:
        """|105 - 100| + |96 - 100| over 200; the two do not cancel out."""
        fidelity = Fidelity().observe(T0_S, 105, 100).observe(T0_S + DAY_S, 96, 100)
        assert fidelity.ratio == pytest.approx(9 / 200)

    def test_is_about_seven_days_and_a_day_counts_as_it_was_told_last(self) -> None:
        fidelity = Fidelity()
        for k in range(8):
            fidelity = fidelity.observe(T0_S + k * DAY_S, 200 if k == 0 else 101, 100)
        assert fidelity.ratio == pytest.approx(0.01)
        assert fidelity.observe(T0_S + 7 * DAY_S, 108, 100).ratio == pytest.approx((6 + 8) / 700)

    @pytest.mark.parametrize("shift_s", [-HOUR_S, HOUR_S])
    def test_is_about_seven_days_also_when_clocks_change(self, shift_s: int) -> None:
        fidelity = Fidelity()
        for k in range(9):
            fidelity = fidelity.observe(T0_S + k * DAY_S + (shift_s if k >= 4 else 0), 100, 100)
        assert len(fidelity.days) == 7

    def test_of_a_clock_that_was_ahead_is_not_stuck_in_the_future(self) -> None:
        assert Fidelity().observe(T0_S + 5000 * DAY_S, 9, 1).observe(T0_S, 1, 1).ratio == 0.0

    @pytest.mark.parametrize(
        ("days", "ratio"),
        [([], None), ([(0.0, 0.0)], 0.0), ([(1.0, 0.0)], inf), ([(nan, 1.0)], nan), ([(1.0, inf)], nan)],
    )
    def test_has_these_answers_at_its_edges(self, days: list[tuple[float, float]], ratio: float | None) -> None:
        fidelity = Fidelity()
        for k, (live, again) in enumerate(days):
            fidelity = fidelity.observe(T0_S + k * DAY_S, live, again)
        assert fidelity.ratio == (pytest.approx(ratio, nan_ok=True) if ratio is not None else None)


class TestWatch:
    def test_knows_nothing_before_it_saw_anything(self) -> None:
        assert Watch().read(None) == Monitors(None)
        assert Watch().read(5.0, inputs_finite=False) == Monitors(5.0, inputs_finite=False)

    def test_says_how_often_the_forecast_held_once_a_day_of_forecasts_came_due(self) -> None:
        watch = Watch()
        for k in range(288):
            assert watch.read(0).coverage is None
            watch = watch.forecast_due(T0_S + 300 * k, actual=10.0, quantile=9.0 if k % 4 == 0 else 10.0)
        assert watch.read(0).coverage == 0.75

    def test_does_not_judge_a_forecast_of_demand_that_nobody_knows_and_fails_one_that_is_no_number(self) -> None:
        watch = Watch().forecast_due(T0_S, nan, 9.0)
        assert watch == Watch()
        watch = Watch().forecast_due(T0_S, 9.0, nan)
        assert (watch.coverage.times, watch.coverage.of) == (0, 1)

    def test_says_in_how_many_of_the_last_days_ticks_the_shield_changed_the_target(self) -> None:
        watch = Watch()
        assert watch.read(0).clipped_share is None
        watch = watch.ticked(T0_S, clipped=True)
        assert watch.read(0).clipped_share == 0.01
        for k in range(1, 288):
            watch = watch.ticked(T0_S + 300 * k, clipped=k < 3)
        assert watch.read(0).clipped_share == 3 / 288
        watch = watch.ticked(T0_S + DAY_S, clipped=False)
        assert watch.read(0).clipped_share == 0.0

    def test_hands_on_cost_fidelity_and_verdict(self) -> None:
        watch = Watch().day_over(1.0, 50.0)
        assert watch.read(0).cost_cusum == 0.0
        assert isnan(Watch().day_over(nan, 50.0).read(0).cost_cusum or 0.0)
        assert watch.replayed(T0_S, 11.0, 10.0).read(0).infidelity == pytest.approx(0.1)
        alarmed = replace(watch, cusum=replace(watch.cusum, sum=8.0))
        assert alarmed.read(0).cost_cusum == 8.0
        assert alarmed.cost_alarmed() == watch

    @pytest.mark.parametrize(
        "kept",
        [
            {},
            [],
            {**Watch().to_plain(), "cusum": {}},
            {**Watch().to_plain(), "cusum": {**Watch().to_plain()["cusum"], "variance": None}},
            {**Watch().to_plain(), "cusum": {**Watch().to_plain()["cusum"], "n": inf}},
            {**Watch().to_plain(), "coverage": [[1, 2]]},
            {**Watch().to_plain(), "clipping": 7},
            {**Watch().to_plain(), "fidelity": [["monday", 1, 1]]},
        ],
    )
    def test_that_is_none_is_refused_by_name(self, kept: Any) -> None:
        with pytest.raises(InputError, match="watch"):
            Watch.from_plain(kept)


NUMBER = st.floats() | st.floats(-10, 10)
MOMENT = st.integers(T0_S - 20 * DAY_S, T0_S + 20 * DAY_S)
SEEN = st.one_of(
    st.tuples(st.just("forecast_due"), MOMENT, NUMBER, NUMBER),
    st.tuples(st.just("ticked"), MOMENT, st.booleans()),
    st.tuples(st.just("day_over"), NUMBER, NUMBER),
    st.tuples(st.just("day_over"), st.floats(-10, 10), st.floats(0, 10)),
    st.tuples(st.just("replayed"), MOMENT, NUMBER, NUMBER),
    st.tuples(st.just("cost_alarmed")),
)


@settings(deadline=None)
@given(st.lists(SEEN, max_size=40))
def test_a_restart_at_any_moment_goes_on_with_the_same_readings(seen: list[tuple[Any, ...]]) -> None:
    """One watch that lives on beside one that is put away as JSON after each observation."""
    living = stored = Watch()
    for name, *values in seen:
        living = getattr(living, name)(*values)
        text = json.dumps(getattr(stored, name)(*values).to_plain(), allow_nan=False)
        stored = Watch.from_plain(json.loads(text))
        assert repr(stored.read(60.0)) == repr(living.read(60.0))
        for value in (living.read(0).coverage, living.read(0).clipped_share):
            assert value is None or 0 <= value <= 1
        assert living.cusum.variance >= 0
