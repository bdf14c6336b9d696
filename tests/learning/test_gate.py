"""The gate: means and standard errors worked out by hand on small numbers, and which days it looks at."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import inf, isnan, nan, sqrt
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.core.canonical import canonical_bytes
from controller.learning.gate import RULE, Day, Shadow, Verdict, Why, judge

DAY_S = 86_400
MIDNIGHT_S = 20_000 * DAY_S


def shadow(name: str, *savings: float, known: int = 288) -> Shadow:
    """A candidate whose last days saved this much, the newest last."""
    first = MIDNIGHT_S - len(savings) * DAY_S
    return Shadow(name, tuple(Day(first + k * DAY_S, saving, 100.0, known) for k, saving in enumerate(savings)))


def ago(days: int, saving: float = 4.0, worst_hour: float = 0.0, known: int = 288) -> Day:
    """A day that began so many days before midnight."""
    return Day(MIDNIGHT_S - days * DAY_S, saving, 100.0, known, worst_hour)


def verdict(*shadows: Shadow, incumbent: str = RULE) -> Verdict:
    return judge(shadows, MIDNIGHT_S, incumbent)


def test_a_week_of_savings_has_this_mean_and_this_standard_error() -> None:
    """1 to 7: the mean is 4, the squares about it sum to 28, so s^2 = 28/6 and s.e. = sqrt(28/6/7) = sqrt(2/3)."""
    said = verdict(shadow("a", 1, 2, 3, 4, 5, 6, 7))
    assert (said.acting, said.why, said.days, said.on) == ("a", Why.SAVES, 7, True)
    assert said.mean == pytest.approx(4)
    assert said.standard_error == pytest.approx(sqrt(2 / 3))
    assert said.table[0].score == pytest.approx(4 - sqrt(2 / 3))


@pytest.mark.parametrize(
    ("savings", "on"),
    [
        ((3, 1), True),  # mean 2, s.d. sqrt(2), s.e. 1
        ((2, 0), False),  # mean 1, s.e. 1: not above
        ((2.001, 0.001), True),
        ((1.999, -0.001), False),
        ((5, 5), True),
        ((0, 0, 0), False),
        ((-5, -5), False),
        ((6, -1, 6, -1, 6, -1), True),  # mean 2.5, s^2 = 6 * 3.5^2 / 5 = 14.7, s.e. = sqrt(2.45) = 1.57
        ((6, -4, 6, -4, 6, -4), False),  # mean 1, s^2 = 6 * 5^2 / 5 = 30, s.e. = sqrt(5) = 2.24
    ],
)
def test_on_is_a_mean_above_one_standard_error(savings: tuple[float, ...], on: bool) -> None:
    said = verdict(shadow("a", *savings))
    assert said.on is on
    assert said.acting == ("a" if on else RULE)
    assert said.why is (Why.SAVES if on else Why.NO_SAVING)
    assert said.best == "a"


def test_the_highest_mean_does_not_win_but_the_highest_mean_less_its_error() -> None:
    """Means 6 and 4, standard errors 4 and 1."""
    said = verdict(shadow("wild", 10, 2), shadow("calm", 5, 3))
    assert [(row.mean, pytest.approx(row.standard_error)) for row in said.table] == [(6, 4), (4, 1)]
    assert said.acting == "calm"


def test_of_equals_the_simplest_wins_and_the_last_digit_of_a_float_does_not_choose() -> None:
    assert verdict(shadow("simple", 3, 3), shadow("other", 3, 3)).acting == "simple"
    assert verdict(shadow("simple", 3, 3), shadow("other", 3 + 1e-12, 3 + 1e-12)).acting == "simple"
    assert verdict(shadow("simple", 3, 3), shadow("other", 3.001, 3.001)).acting == "other"


class TestTheIncumbent:
    def test_stays_where_a_better_score_comes_from_other_days(self) -> None:
        """Scores 10 - 2 and 10.25 - 1.75; daily differences 4 and -3.5 have mean 0.25 and error 3.75."""
        both = shadow("old", 8, 12), shadow("new", 12, 8.5)
        said = verdict(*both, incumbent="old")
        assert (said.acting, said.best, said.why, said.mean) == ("old", "new", Why.INCUMBENT_STAYS, 10)
        assert said.on
        assert verdict(*both).acting == "new"

    @pytest.mark.parametrize(("challenger", "wins"), [((11, 13), True), ((10, 12.5), False)])
    def test_goes_where_the_challenger_is_better_day_by_day(self, challenger: tuple[float, ...], wins: bool) -> None:
        """Against 9.9 twice. Differences 1.1 and 3.1: mean 2.1, error 1. Then 0.1 and 2.6: 1.35, error 1.25: better.

        Against 10 on both days the second pair is 0 and 2.5: mean 1.25, error 1.25: not better.
        """
        assert verdict(shadow("old", 9.9, 9.9), shadow("new", *challenger), incumbent="old").acting == "new"
        said = verdict(shadow("old", 10, 10), shadow("new", *challenger), incumbent="old")
        assert (said.acting == "new") is wins

    def test_stays_where_too_few_days_are_common(self) -> None:
        old = Shadow("old", shadow("", 1, 1, 1, 0, 0, 0, 0).days[:3])
        new = Shadow("new", shadow("", 0, 0, 9, 9, 9, 9, 9).days[2:])
        assert verdict(old, new, incumbent="old").acting == "old"
        assert verdict(old, Shadow("new", shadow("", 0, 9, 9, 9, 9, 9, 9).days[1:]), incumbent="old").acting == "new"

    def test_goes_when_it_no_longer_passes(self) -> None:
        assert verdict(shadow("old", 2, 0), shadow("new", 1, 1), incumbent="old").acting == "new"
        assert verdict(shadow("old", 2, 0), incumbent="old").acting == RULE

    def test_nobody_knows_is_no_incumbent(self) -> None:
        assert verdict(shadow("a", 1, 1), shadow("b", 2, 2), incumbent="gone").acting == "b"


class TestTheDays:
    def test_are_the_last_seven(self) -> None:
        said = verdict(shadow("a", -8, 1, 2, 3, 4, 5, 6, 7))
        assert (said.days, said.mean) == (7, pytest.approx(4))

    def test_must_be_over(self) -> None:
        today = Day(MIDNIGHT_S, -999.0, 100.0, 288)
        assert verdict(Shadow("a", (*shadow("a", 3, 1).days, today))).mean == 2

    @pytest.mark.parametrize("change", ["2026-03-29", "2026-10-25"])
    def test_are_seven_also_when_clocks_change(self, change: str) -> None:
        """The week in which Berlin's clocks change is an hour shorter, or longer; the day before it stays outside."""
        zone = ZoneInfo("Europe/Berlin")
        last = datetime.fromisoformat(change).replace(tzinfo=zone)
        for after in range(1, 8):
            end = last + timedelta(days=after)
            starts = [int((end - timedelta(days=back)).timestamp()) for back in range(9, -1, -1)]
            days = tuple(Day(start, float(k), 100.0, 276) for k, start in enumerate(starts))
            said = judge([Shadow("a", days)], int(end.timestamp()))
            assert (said.days, said.mean) == (7, pytest.approx((2 + 8) / 2))

    def test_count_from_half_their_steps_on(self) -> None:
        assert verdict(shadow("a", 1, 1, known=144)).days == 2
        assert verdict(shadow("a", 1, 1, known=143)).why is Why.TOO_FEW_DAYS
        assert judge([shadow("a", 1, 1, known=12)], MIDNIGHT_S, steps_a_day=24).days == 2

    def test_are_two_at_least(self) -> None:
        said = verdict(shadow("a", 50))
        assert (said.acting, said.why, said.best, said.days, said.on) == (RULE, Why.TOO_FEW_DAYS, "a", 1, False)
        assert said.table[0].mean == 50
        assert isnan(said.table[0].standard_error)
        assert verdict(shadow("a")).why is Why.TOO_FEW_DAYS

    def test_are_as_many_as_the_caller_asks_for(self) -> None:
        assert judge([shadow("a", 4, 4, 4, 4, 4, 4)], MIDNIGHT_S, least_days=7).why is Why.TOO_FEW_DAYS
        assert judge([shadow("a", 4, 4, 4, 4, 4, 4, 4)], MIDNIGHT_S, least_days=7).on
        assert judge([shadow("a", 50)], MIDNIGHT_S, least_days=1).why is Why.TOO_FEW_DAYS

    def test_count_once_as_they_were_handed_in_last(self) -> None:
        first, second = shadow("a", 3, 1).days
        again = Day(second.day_s, 3.0, 100.0, 288)
        assert verdict(Shadow("a", (first, second, again))).mean == 3
        assert verdict(Shadow("a", (first, again, second))).mean == 2


WEEK = tuple(ago(days) for days in range(7, 0, -1))


class TestTheWorst:
    """Seven days that save 4 each. One mean day may be lost in an hour, two in a day, of the last 28."""

    @pytest.mark.parametrize(("worst_hour", "on"), [(-4.0, True), (-4.01, False), (3.0, True)])
    @pytest.mark.parametrize("days", [1, 7, 8, 28])
    def test_hour_is_paid_for_by_a_mean_day(self, days: int, worst_hour: float, on: bool) -> None:
        said = verdict(Shadow("a", (*(day for day in WEEK if day != ago(days)), ago(days, worst_hour=worst_hour))))
        assert (said.on, said.why, said.best) == (on, Why.SAVES if on else Why.TOO_RISKY, "a")
        assert said.mean == (4 if on else 0)
        assert ("undo" in said.sentence) is not on

    @pytest.mark.parametrize(("saving", "on"), [(-8.0, True), (-8.01, False)])
    @pytest.mark.parametrize("days", [8, 28])
    def test_day_is_paid_for_by_two_mean_days(self, days: int, saving: float, on: bool) -> None:
        said = verdict(Shadow("a", (ago(days, saving), *WEEK)))
        assert (said.on, said.days) == (on, 7)

    def test_is_forgotten_after_four_weeks(self) -> None:
        assert verdict(Shadow("a", (ago(29, -999.0, -999.0), *WEEK))).on

    def test_counts_on_days_that_are_known_and_as_far_as_it_is_a_number(self) -> None:
        assert verdict(Shadow("a", (ago(9, -999.0, -999.0, known=143), *WEEK))).on
        assert verdict(Shadow("a", (ago(9, nan, nan), *WEEK))).on
        assert not verdict(Shadow("a", (ago(9, nan, -5.0), *WEEK))).on

    def test_of_one_candidate_is_not_anothers(self) -> None:
        lean = Shadow("lean", (ago(9, worst_hour=-5.0), *WEEK))
        assert verdict(lean, shadow("calm", 1, 1), incumbent="lean").acting == "calm"
        assert verdict(lean, shadow("idle", 0, 0)).best == "lean"


class TestNotANumber:
    @pytest.mark.parametrize("bad", [nan, inf, -inf, 1e13, 1e308])
    def test_bars_the_candidate_whose_account_holds_it_and_no_other(self, bad: float) -> None:
        said = verdict(shadow("a", 9, bad, 9))
        assert (said.acting, said.why, said.best, said.on) == (RULE, Why.NOT_A_NUMBER, "a", False)
        assert verdict(shadow("a", 9, bad, 9), shadow("b", 1, 1)).acting == "b"
        assert verdict(shadow("a", 9, bad, 9), shadow("b", 1, 1), incumbent="a").acting == "b"

    def test_in_the_rules_cost_bars_too(self) -> None:
        days = tuple(Day(day.day_s, day.saving, nan, 288) for day in shadow("a", 9, 9).days)
        assert verdict(Shadow("a", days)).why is Why.NOT_A_NUMBER

    def test_in_the_worst_hour_bars_too(self) -> None:
        assert verdict(Shadow("a", (*WEEK[1:], ago(7, worst_hour=nan)))).why is Why.NOT_A_NUMBER

    def test_outside_the_days_that_count_does_not_matter(self) -> None:
        assert verdict(shadow("a", nan, 1, 1, 1, 1, 1, 1, 1)).acting == "a"
        unknown = Day(MIDNIGHT_S - 3 * DAY_S, nan, nan, 0)
        assert verdict(Shadow("a", (unknown, *shadow("a", 1, 1).days))).acting == "a"

    @pytest.mark.parametrize(("mean", "error"), [(nan, 1.0), (5.0, nan), (inf, inf), (1.0, 1.0), (-1.0, 0.0)])
    def test_never_turns_a_verdict_on(self, mean: float, error: float) -> None:
        assert not Verdict(MIDNIGHT_S, "a", mean, error, 7, Why.SAVES, "a", ()).on


def test_the_reason_is_that_of_the_candidate_that_came_nearest() -> None:
    """No candidate at all, then one with a fault, one with too few days, one that does not save; each is nearer."""
    assert verdict() == Verdict(MIDNIGHT_S, RULE, 0.0, 0.0, 0, Why.NO_CANDIDATES, "", ())
    broken, young, idle, worse = (
        shadow("broken", nan, 1),
        shadow("young", 9),
        shadow("idle", 1, -1),
        shadow("w", -9, -9),
    )
    assert (verdict(broken).why, verdict(broken).best) == (Why.NOT_A_NUMBER, "broken")
    assert (verdict(broken, young).why, verdict(broken, young).best) == (Why.TOO_FEW_DAYS, "young")
    said = verdict(broken, young, worse, idle)
    assert (said.why, said.best, said.acting, said.days) == (Why.NO_SAVING, "idle", RULE, 2)
    assert (said.mean, said.standard_error) == (0.0, 0.0)


def test_what_is_told_has_the_numbers() -> None:
    said = verdict(shadow("a", 3, 1), shadow("b", 1, -1))
    assert said.facts == (
        ("acting", "a"),
        ("best", "a"),
        ("days", 2),
        ("mean_milli", 2000),
        ("standard_error_milli", 1000),
    )
    assert said.sentence == "a may act: 2.0 GPU-hours a day below the rule, standard error 1.0, 2 days."
    refused = verdict(shadow("b", 1.5, -0.5))
    assert dict(refused.facts) == {
        "acting": RULE,
        "best": "b",
        "days": 2,
        "mean_milli": 500,
        "standard_error_milli": 1000,
    }
    assert refused.sentence == "The rule acts: the best, b, has not saved more than one standard error a day."
    assert verdict().facts == (("acting", RULE), ("days", 0))


@pytest.mark.parametrize(("share", "why"), [(0.0, Why.SAVES), (0.009, Why.SAVES), (0.01, Why.TOO_LITTLE)])
def test_what_is_saved_must_be_something_beside_what_the_rule_costs(share: float, why: Why) -> None:
    """Savings of 3 and 1 are a mean of 2 and a standard error of 1; the rule costs 100 a day."""
    said = judge([shadow("a", 3, 1)], MIDNIGHT_S, least_share=share)
    assert (said.why, said.on, said.best) == (why, why is Why.SAVES, "a")
    assert ("too little" in said.sentence) is (why is Why.TOO_LITTLE)


def test_a_candidate_that_saves_nothing_passes_by_luck_as_often_as_the_module_says() -> None:
    """P(t > 1) with 6 degrees of freedom is 0.178, with one 1/4 (tables of Student's t); 4,000 nights each."""
    rng = np.random.default_rng(20_261_207)
    for days, share in ((7, 0.178), (2, 0.25)):
        why = [verdict(shadow("a", *rng.normal(size=days))).why for _ in range(4000)]
        passed = np.mean([one in (Why.SAVES, Why.TOO_RISKY) for one in why])
        assert passed == pytest.approx(share, abs=3 * sqrt(share * (1 - share) / 4000))


def test_a_candidate_that_saves_nothing_and_has_lost_for_four_weeks_hardly_ever_passes() -> None:
    """P(mean of 7 > its error, and twice that mean >= -min of 28) of standard normals is 0.016 (400,000 draws)."""
    rng = np.random.default_rng(20_261_207)
    passed = np.mean([verdict(shadow("a", *rng.normal(size=28))).on for _ in range(4000)])
    assert passed == pytest.approx(0.016, abs=3 * sqrt(0.016 * 0.984 / 4000))


ACCOUNTS = st.lists(
    st.builds(
        Day,
        st.integers(-12, 2).map(lambda day: MIDNIGHT_S + day * DAY_S),
        st.floats() | st.floats(-50, 50),
        st.floats() | st.floats(0, 50),
        st.integers(0, 288),
    ),
    max_size=9,
).map(tuple)


@given(st.lists(ACCOUNTS, max_size=4), st.sampled_from([RULE, "0", "1", "9"]))
def test_any_account_gets_a_verdict_that_can_be_told_and_only_a_finite_saving_acts(
    accounts: list[tuple[Day, ...]], incumbent: str
) -> None:
    shadows = [Shadow(str(k), days) for k, days in enumerate(accounts)]
    said = judge(shadows, MIDNIGHT_S, incumbent)
    assert [row.name for row in said.table] == [one.name for one in shadows]
    assert canonical_bytes(said.facts)
    assert said.sentence
    assert said.on is (said.acting != RULE)
    if said.on:
        assert said.mean > said.standard_error
        assert said.days >= 2
