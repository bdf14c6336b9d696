"""The stop within a day, by hand."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from controller.learning.stop import Stop


def looked(stop: Stop, *savings: float) -> list[bool]:
    said = []
    for saving in savings:
        stop = stop.after(saving)
        said.append(stop.out)
    return said


def test_two_per_cent_of_a_day_of_the_rules_may_be_lost() -> None:
    stop = Stop.of([900.0, 1100.0], [np.zeros(3), np.zeros(3)])
    assert stop.allowed == pytest.approx(20)
    assert looked(stop, -12.0, -8.0, -0.01) == [False, False, True]


def test_what_is_paid_in_advance_every_day_stops_nobody() -> None:
    """By the second look 30 and 50 were lost, by the third 60 and 40 saved: usual are 0, -40 and 0."""
    days = [np.array([0.0, -30.0, 90.0]), np.array([0.0, -50.0, 90.0])]
    stop = Stop.of([1000.0, 1000.0], days)
    assert stop.usual.tolist() == [0.0, -40.0, 0.0]
    assert looked(stop, 0.0, -59.0, 60.0) == [False, False, False]
    assert looked(stop, 0.0, -61.0) == [False, True]
    assert looked(stop, 0.0, -59.0, 20.0) == [False, False, True]


def test_what_was_saved_in_the_stay_may_be_lost_again() -> None:
    stop = Stop.of([1000.0], [np.zeros(2)], saved=50.0)
    assert looked(stop, -69.0, -2.0) == [False, True]


def test_what_is_no_number_is_no_saving() -> None:
    assert looked(Stop.of([1000.0], [np.zeros(2)]), nan) == [True]
