"""Shadow fleets: their accounts are the replay's, their weights know no future, and the gate's word is law."""

from __future__ import annotations

import numpy as np
import pytest

from controller.learning import shadows
from controller.learning.candidates import LEVELS_PERMILLE, NAMES, Reach
from controller.learning.fleet import Terms, replay
from controller.learning.rule import tuned_nightly
from forecaster.series import Panel

DAY = 288
TERMS = Terms(8, 1800, 9.0)


def a_total(days: int, seed: int = 3) -> Panel:
    """A working day every day: who sees nine o'clock coming wins."""
    slots = np.arange(days * DAY) % DAY / DAY * 24
    noise = np.random.default_rng(seed).uniform(0, 3, days * DAY)
    return Panel(("",), 0, 300, "UTC", (np.where((slots >= 9) & (slots < 17), 80.0, 10.0) + noise)[:, None])


def clairvoyant(total: Panel) -> np.ndarray:
    """A forecast that knows the maximum of each window, at every level: (rows, reaches, levels) milli-GPUs."""
    demand, rows = total.values[:, 0], total.rows
    out = np.zeros((rows, len(Reach), len(LEVELS_PERMILLE)), dtype=np.int64)
    for r, reach in enumerate(Reach):
        first, last = reach.window(TERMS.lead_s).rows(300)
        for t in range(rows):
            ahead = demand[min(t + first, rows - 1) : t + last + 1]
            out[t, r] = int(np.ceil(1000 * ahead.max()))
    return out


@pytest.fixture(scope="module")
def past() -> shadows.Shadows:
    total = a_total(7)
    return shadows.past_of(total, TERMS, 0, clairvoyant(total))


def test_every_fleets_account_is_that_of_a_replay(past: shadows.Shadows) -> None:
    everyone = np.column_stack([past.asked, past.agreed]).astype(float)
    alone = replay(past.demand, everyone, TERMS, int(past.asked[0, -1]))
    assert np.array_equal(past.account.cost, alone.cost)
    assert past.account.cost.shape == (7 * DAY, len(NAMES) + 1)


def test_the_rule_among_the_candidates_is_the_rule_tuned_every_night(past: shadows.Shadows) -> None:
    ruled, _ = tuned_nightly(past.demand, TERMS, DAY, DAY)
    assert np.array_equal(past.ruled, ruled)


def test_where_forecasts_are_right_the_hedge_leaves_the_rule_behind(past: shadows.Shadows) -> None:
    late = slice(3 * DAY, None)
    hedge, rule = past.account.cost[late, -1].sum(), past.account.cost[late, -2].sum()
    assert hedge < 0.8 * rule
    assert past.weights[-1, NAMES.index("rule")] < 50_000


def test_days_are_sums_of_steps_without_the_first_day(past: shadows.Shadows) -> None:
    midnights = [k * DAY for k in range(8)]
    days = shadows.days(past, "hedge", midnights, lambda row: row * 300)
    assert [day.day_s for day in days] == [k * 86_400 for k in range(1, 7)]
    cost = past.account.cost
    second = slice(2 * DAY, 3 * DAY)
    assert days[1].saving == pytest.approx(cost[second, -2].sum() - cost[second, -1].sum())
    assert days[1].known_steps == DAY
    hours = (cost[second, -2] - cost[second, -1]).reshape(24, 12).sum(axis=1)
    assert days[1].worst_hour == pytest.approx(hours.min())
    assert hours.min() < 0
    assert {day.saving for day in shadows.days(past, "rule", midnights, lambda row: row * 300)} == {0.0}


def test_a_day_of_which_nothing_is_known_is_no_day_of_the_gates() -> None:
    total = a_total(5)
    total.values[3 * DAY : 4 * DAY] = np.nan
    past = shadows.past_of(total, TERMS, 0, clairvoyant(a_total(5)))
    days = shadows.days(past, "hedge", [k * DAY for k in range(6)], lambda row: row * 300)
    assert [day.known_steps for day in days] == [DAY, DAY, 0, DAY]
    assert days[2].saving == 0.0


def test_the_gate_lets_the_hedge_act_by_night_and_never_else(past: shadows.Shadows) -> None:
    total = a_total(7)
    targets, verdicts = shadows.gated(past, total, DAY)
    assert [verdict.on for verdict in verdicts][:2] == [False, False]
    assert verdicts[-1].on
    for k, verdict in enumerate(verdicts):
        night = slice((k + 1) * DAY, (k + 2) * DAY)
        wanted = past.agreed if verdict.on else past.ruled
        assert np.array_equal(targets[night], wanted[night])
    assert np.array_equal(targets[:DAY], past.ruled[:DAY])


def test_a_learner_whose_plan_breaks_is_stopped_within_the_hour_and_stays_out_for_a_week() -> None:
    """Every day alike but the tenth: nobody works. What was warmed for nine o'clock idles, and the next days say no."""
    total = a_total(20)
    seen_by_forecasts = clairvoyant(total)
    total.values[9 * DAY : 10 * DAY] = 10.0
    past = shadows.past_of(total, TERMS, 0, seen_by_forecasts)
    targets, verdicts = shadows.gated(past, total, 8 * DAY)
    saving = past.account.cost[:, -2] - past.account.cost[:, -1]
    before = [np.cumsum(saving[k * DAY : (k + 1) * DAY]).reshape(24, 12)[:, -1] for k in range(2, 9)]
    usual = np.minimum(np.mean(before, axis=0), 0.0)
    allowed = 0.02 * np.mean([past.account.cost[k * DAY : (k + 1) * DAY, -2].sum() for k in range(2, 9)])
    lost = saving[8 * DAY : 9 * DAY].sum() + np.cumsum(saving[9 * DAY : 10 * DAY]).reshape(24, 12)[:, -1]
    hours = np.flatnonzero(lost < usual - allowed)
    assert verdicts[0].on
    assert verdicts[1].on
    out = 9 * DAY + 12 * (int(hours[0]) + 1)
    assert np.array_equal(targets[9 * DAY : out], past.agreed[9 * DAY : out])
    assert np.array_equal(targets[out : 16 * DAY], past.ruled[out : 16 * DAY])


def test_a_node_that_could_not_be_had_is_in_nobodys_account() -> None:
    total = a_total(4)
    dry = np.zeros(total.rows, dtype=bool)
    dry[3 * DAY + 96 : 3 * DAY + 144] = True  # 08:00 to 12:00 of the last day
    wet, known = (shadows.past_of(total, TERMS, DAY, clairvoyant(total), stock_out=mask) for mask in (None, dry))
    assert np.array_equal(wet.asked[: 3 * DAY + 97], known.asked[: 3 * DAY + 97])
    everyone = np.column_stack([known.asked, known.agreed]).astype(float)
    alone = replay(known.demand, everyone, TERMS, int(known.asked[0, -1]), dry)
    assert np.array_equal(known.account.cost, alone.cost)
    assert known.account.cost[3 * DAY :, -2].sum() > wet.account.cost[3 * DAY :, -2].sum()


@pytest.fixture(scope="module")
def longer() -> tuple[shadows.Shadows, Panel]:
    total = a_total(12)
    return shadows.past_of(total, TERMS, 0, clairvoyant(total)), total


def test_what_another_account_says_of_the_days_is_what_the_gate_hears(longer: tuple[shadows.Shadows, Panel]) -> None:
    """And it takes a week of it. The first day is not judged, so the eighth night is the first that knows seven."""
    past, total = longer
    half, one = np.full(total.rows, 0.5), np.ones(total.rows)
    for hedge, rule, on in ((half, one, [False] * 7 + [True] * 4), (one, half, [False] * 11)):
        _, verdicts = shadows.gated(past, total, DAY, (hedge, rule))
        assert [verdict.on for verdict in verdicts] == on


def test_an_hour_that_cost_more_than_a_mean_day_saves_keeps_the_learner_out(
    longer: tuple[shadows.Shadows, Panel],
) -> None:
    """A day saves 144 GPU-hours. The hour from 10:00 of the second day on loses 120 or 150."""
    past, total = longer
    rule = np.ones(total.rows)
    for lost, on in ((120.0, True), (150.0, False)):
        hedge = np.full(total.rows, 0.5)
        hedge[DAY + 120 : DAY + 132] = 1.0 + lost / 12
        _, verdicts = shadows.gated(past, total, 10 * DAY, (hedge, rule))
        assert [verdict.on for verdict in verdicts] == [on, on]


def test_where_forecasts_are_wrong_the_rule_stays() -> None:
    total = a_total(7)
    upside_down = 90_000 - clairvoyant(total)
    past = shadows.past_of(total, TERMS, 0, upside_down)
    _, verdicts = shadows.gated(past, total, DAY)
    cost = past.account.cost[DAY:].sum(axis=0)
    assert not any(verdict.on for verdict in verdicts) or cost[-1] <= cost[-2]
    assert past.weights[-1, NAMES.index("rule")] > 500_000


def test_a_poisoned_future_changes_nothing_before_it() -> None:
    total, poisoned, cut = a_total(4), a_total(4), 3 * DAY + 30
    poisoned.values[cut:] *= 100
    one, two = (shadows.past_of(each, TERMS, DAY) for each in (total, poisoned))
    assert np.array_equal(one.asked[: cut + 1], two.asked[: cut + 1])
    assert np.array_equal(one.agreed[: cut + 1], two.agreed[: cut + 1])
