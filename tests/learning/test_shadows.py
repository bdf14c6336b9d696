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
