"""A stay, by hand: the benchmark's stop on a loop that is let in at noon, goes over midnight and is restarted."""

from __future__ import annotations

from math import isnan, nan

import numpy as np
import pytest

from controller.core.errors import InputError
from controller.learning.stay import Judged, Stay, judged_days

DAY, HOUR, STEP = 86_400, 3600, 1800
"""Rows of half an hour: 48 a day, two an hour."""
MIDNIGHT = 10 * DAY


def judged(*savings: float, rule: float = 1000.0) -> Judged:
    """One day that the gate looked at; 2 % of the rule's cost, 20 GPU-hours, may be lost."""
    day = np.zeros(48)
    day[: len(savings)] = savings
    return Judged(MIDNIGHT, STEP, (rule,), (day,))


def rows(stay: Stay, *savings: float, at_s: int | None = None) -> Stay:
    start = stay.day_s if at_s is None else at_s
    for number, saving in enumerate(savings):
        stay = stay.closed(start + number * STEP, saving)
    return stay


def test_hours_count_once_they_are_over() -> None:
    stay = Stay.begun(MIDNIGHT)
    assert stay.used(judged()) == 0.0
    assert rows(stay, -30.0).used(judged()) == 0.0
    assert rows(stay, -30.0, 5.0).used(judged()) == pytest.approx(1.25)
    assert rows(stay, -30.0, 5.0, 100.0).used(judged()) == pytest.approx(1.25)
    assert rows(stay, -30.0, 5.0, 1.0, 4.0).used(judged()) == pytest.approx(1.0)


def test_what_is_usually_paid_by_that_hour_is_no_loss_and_whoever_begins_later_has_not_paid_it() -> None:
    """Usually 40 are paid in the first hour and 40 in the second, and come back in the fifth."""
    usual = judged(-40, 0, -40, 0, 0, 0, 0, 0, 90)
    assert rows(Stay.begun(MIDNIGHT), -40, 0, -45, 0).used(usual) == pytest.approx(5 / 20)
    assert rows(Stay.begun(MIDNIGHT + HOUR), -45, 0).used(usual) == pytest.approx(5 / 20)
    assert rows(Stay.begun(MIDNIGHT + 2 * HOUR), -45, 0).used(usual) == pytest.approx(45 / 20)


def test_rows_from_before_the_stay_are_not_its() -> None:
    stay = Stay.begun(MIDNIGHT + HOUR)
    assert rows(stay, -99, -99, at_s=MIDNIGHT) == stay


def test_what_was_saved_yesterday_may_be_lost_today() -> None:
    """Begun at 22:00 the day before; four rows saved 60, then 70 are lost in the first hour."""
    stay = rows(Stay.begun(MIDNIGHT - 2 * HOUR), 10, 20, 10, 20)
    past = np.array([*np.zeros(44), 10, 20, 10, 20, -35, -35])
    after = stay.told_anew(MIDNIGHT, past, lambda at_s: (at_s - MIDNIGHT + DAY) // STEP)
    assert (after.since_s, after.day_s, after.saved, after.rows) == (stay.since_s, MIDNIGHT, 60.0, (-35.0, -35.0))
    assert after.used(judged()) == pytest.approx(10 / 20)
    assert rows(Stay.begun(MIDNIGHT), -35, -35).used(judged()) == pytest.approx(70 / 20)


def test_a_restart_at_noon_has_the_account_that_it_had() -> None:
    begun = rows(Stay.begun(MIDNIGHT + HOUR), -3, -4, -5)
    again = Stay.from_plain(begun.to_plain())
    past = np.array([7, 7, -3, -4, -5])
    assert again.told_anew(MIDNIGHT, past, lambda at_s: (at_s - MIDNIGHT) // STEP) == begun


def test_what_lies_before_the_record_counts_as_nothing() -> None:
    old = Stay(MIDNIGHT - 9 * DAY, MIDNIGHT - 9 * DAY, 5.0)
    after = old.told_anew(MIDNIGHT, np.array([1.0, 2.0, 4.0]), lambda at_s: (at_s - MIDNIGHT + HOUR) // STEP)
    assert (after.saved, after.rows) == (8.0, (4.0,))


def test_the_last_hour_of_a_day_of_25_knows_nothing_usual() -> None:
    usual = judged(-40, 0)
    assert rows(Stay(MIDNIGHT, MIDNIGHT + DAY), -30, 0).used(usual) == pytest.approx(30 / 20)


def test_a_value_that_is_no_number_and_a_rule_that_costs_nothing() -> None:
    assert isnan(rows(Stay.begun(MIDNIGHT), nan, 1).used(judged()))
    assert rows(Stay.begun(MIDNIGHT), 0, 0).used(judged(rule=0.0)) == 0.0
    assert rows(Stay.begun(MIDNIGHT), -1, 0).used(judged(rule=0.0)) == float("inf")
    with pytest.raises(InputError, match=r"stay.*to_plain"):
        Stay.from_plain({"since_s": 1})


def test_a_past_is_cut_into_the_days_that_were_judged() -> None:
    found = judged_days(MIDNIGHT, STEP, [1.0, 2.0], [0, 2], np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 2)
    assert [day.tolist() for day in found.savings] == [[1.0, 2.0], [3.0, 4.0]]
    assert found.rule_costs == (1.0, 2.0)
