"""The hedge: weights worked out by hand, and a mean that no look at the future moves."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from controller.learning.hedge import ETA, PARTS, Losses, agreed, weighted

DAY = 86_400


def test_nobody_is_preferred_before_anything_was_lost() -> None:
    assert Losses.none(4).weights().tolist() == [250_000] * 4


def test_a_candidate_that_costs_an_eighth_of_the_scale_more_a_day_weighs_e_times_less() -> None:
    """One day with costs 8, 8, 9: the median is 8 a day, so the third's regret is 1/8 and 8 times that is one."""
    losses = Losses.none(3).after(np.array([8.0, 8.0, 9.0]), DAY)
    assert ETA == 8.0
    whole = 2 + exp(-1)
    assert losses.weights() == pytest.approx([PARTS / whole, PARTS / whole, PARTS * exp(-1) / whole], abs=1)


def test_losses_fade_by_half_in_four_days() -> None:
    losses = Losses.none(2).after(np.array([4.0, 0.0]), DAY).after(np.array([0.0, 3.0]), 4 * DAY)
    assert losses.faded == pytest.approx([2.0, 3.0])
    assert losses.days == pytest.approx(0.5 + 4)


def test_pools_of_any_size_are_weighed_alike() -> None:
    costs = np.array([1.0, 2.0, 4.0])
    small, large = (Losses.none(3).after(factor * costs, DAY).weights() for factor in (1.0, 1e4))
    assert small.tolist() == large.tolist()


def test_the_agreed_fleet_is_the_weighted_mean_with_halves_up() -> None:
    targets = np.array([[2, 3], [2, 3], [2, 3]])
    weights = np.array([[1, 1], [51, 49], [0, 7]])
    assert agreed(targets, weights).tolist() == [3, 2, 3]


def test_weights_rest_on_whole_hours_that_are_over_and_not_on_the_first_day() -> None:
    costs = np.ones((3 * 288, 3))
    honest, _ = weighted(costs, 300)
    assert (honest[: 288 + 12] == PARTS // 3).all()
    costs[400:, 0] = 1e6
    poisoned, hedge = weighted(costs, 300)
    # Row 400 lies in the hour of rows 396 to 407: what happens in it is first felt in row 408.
    assert (poisoned[:408] == honest[:408]).all()
    assert poisoned[408].tolist() == [0, PARTS // 2, PARTS // 2]
    assert hedge.rows == 3 * 288
    assert hedge.weights[0] == 0
