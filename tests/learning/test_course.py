"""What an outside agent may know: columns by hand, the rule's own standing, and nothing of what is yet to come."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from controller.core.errors import InputError
from controller.learning.course import CLOCK, HISTORY, LENGTHS_S, LEVELS, MOST, Course, course, quantile_name
from controller.learning.fleet import Fleets, Terms, replay
from controller.learning.rule import tuned_nightly
from forecaster.series import Panel
from forecaster.service import rolling
from forecaster.windows import Window

DAY = 288
TERMS = Terms(8, 900, 9.0)
JUDGED = 4 * DAY - 50
MONDAY = 4 * 86_400
GAP = slice(2 * DAY + 10, 2 * DAY + 16)


def a_total(seed: int = 7, days: int = 6) -> Panel:
    """Working days with noise, a gap of half an hour in the third; the peak is in the first row."""
    rng = np.random.default_rng(seed)
    slots = np.arange(days * DAY) % DAY / DAY * 24
    values = np.where((slots >= 9) & (slots < 17), 80.0, 10.0) + rng.uniform(0, 15, days * DAY)
    values[GAP], values[0] = np.nan, 120.0
    return Panel(("",), MONDAY, 300, "UTC", values[:, None])


@pytest.fixture(scope="module")
def made() -> Course:
    return course(a_total(), TERMS, JUDGED)


def column(made: Course, name: str) -> np.ndarray:
    return made.table[:, made.names.index(name)]


def test_demand_is_the_last_known_in_units_of_the_training_peak(made: Course) -> None:
    demand = a_total().values[:, 0]
    assert made.scale_gpus == 120.0
    for row in (1, 5, GAP.start, JUDGED, 6 * DAY):
        assert column(made, "demand")[row] == pytest.approx(demand[row - 1] / 120, rel=1e-6)
    for row in (GAP.start + 1, GAP.start + 4, GAP.stop):
        assert column(made, "demand")[row] == pytest.approx(demand[GAP.start - 1] / 120, rel=1e-6)
    assert len(made.table) == made.rows + 1 == 6 * DAY + 1


def test_the_past_is_as_it_was_and_gaps_are_marked(made: Course) -> None:
    demand = a_total().values[:, 0]
    for back in range(1, HISTORY + 1):
        past, known = column(made, f"past_{back}"), column(made, f"known_{back}")
        assert past[500] == pytest.approx(demand[500 - back] / 120, rel=1e-6)
        at = GAP.stop + 3
        missing = GAP.start <= at - back < GAP.stop
        assert known[at] == (0.0 if missing else 1.0)
        assert past[at] == pytest.approx(0.0 if missing else demand[at - back] / 120, rel=1e-6)
        assert known[0] == 0.0


def test_forecasts_are_those_that_would_have_been_made_then(made: Course) -> None:
    row, total = 3 * DAY + 77, a_total()
    windows = [Window(TERMS.lead_s, length) for length in LENGTHS_S]
    alone = rolling(total.until(row + 1), windows=windows, levels=LEVELS).values[-1, 0]
    for w, length in enumerate(LENGTHS_S):
        for i, level in enumerate(LEVELS):
            assert column(made, quantile_name(length, level))[row] == pytest.approx(alone[w, i] / 120, rel=1e-5)


def test_the_clock_is_local() -> None:
    shanghai = course(replace(a_total(), timezone="Asia/Shanghai"), TERMS, JUDGED)
    # Midnight in UTC between a Sunday and a Monday is eight on Monday there: a third of the day, a 21st of the week.
    angles = (2 * np.pi / 3, 2 * np.pi / 21)
    by_hand = [np.sin(angles[0]), np.cos(angles[0]), np.sin(angles[1]), np.cos(angles[1])]
    assert [column(shanghai, name)[0] for name in CLOCK] == pytest.approx(by_hand, abs=1e-6)


def test_the_rule_in_the_judged_part_is_the_benchmarks(made: Course) -> None:
    ruled, _ = tuned_nightly(a_total().values[:, 0], TERMS, JUDGED, DAY)
    assert np.array_equal(made.ruled[JUDGED:], ruled[JUDGED:])
    assert column(made, "rule")[JUDGED : made.rows] == pytest.approx(ruled[JUDGED:] * 8 / 120, rel=1e-6)


def test_a_fleet_that_steps_in_anywhere_pays_on_what_the_rules_fleet_pays(made: Course) -> None:
    demand = a_total().values[:, 0]
    whole = replay(demand[:JUDGED], made.ruled[:JUDGED, None], TERMS, int(made.ruled[0])).cost[:, 0]
    ruled, _ = tuned_nightly(demand, TERMS, JUDGED, DAY)
    judged = replay(demand, ruled[:, None], TERMS, int(ruled[0])).cost[:, 0]
    for first, last, cost in ((DAY, JUDGED, whole), (2 * DAY + 111, JUDGED, whole), (JUDGED, 6 * DAY, judged)):
        running, paid = made.fleets(np.array([first])), 0.0
        for t in range(first, last):
            _, idle, wait, adds = running.step(made.ruled[t : t + 1], demand[t])
            paid += float((idle + 9.0 * wait + TERMS.per_add * adds)[0])
        assert paid == pytest.approx(cost[first:last].sum(), abs=1e-9)


def test_a_fleet_steps_in_with_the_nodes_that_the_rules_fleet_has_then(made: Course) -> None:
    walking, demand = Fleets(TERMS, made.ruled[:1]), a_total().values[:, 0]
    rows, ready, coming = np.arange(JUDGED), [], []
    for t in rows:
        ready.append(walking.ready[0])
        coming.append(walking.coming[:, 0])
        walking.step(made.ruled[t : t + 1], demand[t])
    there = made.fleets(rows)
    assert np.array_equal(there.ready, ready)
    assert np.array_equal(there.coming.T, coming)
    assert len(set(ready)) > 3
    assert np.any(coming)


def test_nothing_of_the_future_is_in_an_observation() -> None:
    before = course(a_total(), TERMS, JUDGED)
    for cut in (2 * DAY + 150, JUDGED + 3, 5 * DAY + 7):
        poisoned = a_total()
        # Not above the peak of the training part, which is the unit that all amounts are in.
        poisoned.values[cut:] = 119.0 - np.nan_to_num(poisoned.values[cut:])
        after = course(poisoned, TERMS, JUDGED)
        rows = np.arange(cut + 1)
        one, two = (each.observation(rows, each.fleets(np.minimum(rows, cut))) for each in (before, after))
        assert one.shape == (cut + 1, len(before.names))
        assert np.array_equal(one, two), [before.names[i] for i in np.flatnonzero((one != two).any(axis=0))]
        assert not np.array_equal(before.table[cut + 1], after.table[cut + 1])


def test_observations_stay_within_their_bounds_whatever_comes() -> None:
    wild = a_total()
    wild.values[JUDGED:] *= 1000
    made = course(wild, TERMS, JUDGED)
    low, high = made.bounds()
    rows = np.arange(made.rows)
    seen = made.observation(rows, made.fleets(rows))
    assert (seen >= low).all()
    assert (seen <= high).all()
    assert seen.max() == MOST
    assert seen.dtype == np.float32


def test_the_fleets_columns_are_gpus_that_serve_and_that_are_coming(made: Course) -> None:
    fleets = Fleets(TERMS, np.array([3.0]), np.array([[1.0], [0.0], [2.0], [0.0]]))
    row = made.observation(np.array([DAY]), fleets)[0]
    assert made.names[-5:] == ("ready", "coming_0", "coming_1", "coming_2", "coming_3")
    assert row[-5:] == pytest.approx([24 / 120, 8 / 120, 0.0, 16 / 120, 0.0])


def test_the_most_that_can_be_asked_for_is_twice_the_training_peak_unless_said(made: Course) -> None:
    assert made.most_nodes == 30  # 240 GPUs
    assert course(a_total(), TERMS, JUDGED, most_nodes=7).most_nodes == 7


@pytest.mark.parametrize("judge_from", [0, DAY, 6 * DAY, 7 * DAY])
def test_without_a_part_to_learn_from_or_to_judge_there_is_no_course(judge_from: int) -> None:
    with pytest.raises(InputError, match="judge_from"):
        course(a_total(), TERMS, judge_from)


def test_a_training_part_without_known_demand_is_refused_and_so_is_another_step() -> None:
    unknown = a_total()
    unknown.values[DAY:JUDGED] = np.nan
    with pytest.raises(InputError, match="known demand"):
        course(unknown, TERMS, JUDGED)
    with pytest.raises(InputError, match="step_s"):
        course(a_total(), replace(TERMS, step_s=60), JUDGED)
