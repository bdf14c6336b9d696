"""Scores against numbers worked by hand and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss

from forecaster.metrics import coverage, mase, pinball, worst_day_coverage, wql

NAN = float("nan")


def test_pinball_by_hand() -> None:
    # 10 wanted, 8 said at .9: misses 2 above, .9·2; 10 wanted, 13 said: 3 below, .1·3
    assert pinball(np.array([10.0, 10.0]), np.array([8.0, 13.0]), 0.9) == pytest.approx([1.8, 0.3])


def test_pinball_as_scikit_learn_has_it() -> None:
    rng = np.random.default_rng(1)
    truth, said = rng.gamma(2, 10, 200), rng.gamma(2, 10, 200)
    for level in (0.1, 0.5, 0.98):
        assert pinball(truth, said, level).mean() == pytest.approx(mean_pinball_loss(truth, said, alpha=level))


def test_wql_by_hand_leaves_gaps_out() -> None:
    # levels .5 and .9 said 8 and 13, truth 10: 2·(.5·2) = 2 and 2·(.1·3) = .6; mean 1.3 over 10
    truth = np.array([10.0, NAN, 10.0])
    said = np.array([[8.0, 13.0], [0.0, 0.0], [NAN, 13.0]])
    assert wql(truth, said, (0.5, 0.9)) == pytest.approx(0.13)


def test_wql_without_demand_is_unknown() -> None:
    assert np.isnan(wql(np.zeros(3), np.ones((3, 1)), (0.5,)))


def test_mase_by_hand() -> None:
    # errors 1 and 1, the naive one's 2 and 4: 1/3; the gap does not count
    truth, said, naive = np.array([10.0, 20, NAN]), np.array([11.0, 19, 0]), np.array([12.0, 16, 0])
    assert mase(truth, said, naive) == pytest.approx(1 / 3)


def test_coverage_counts_a_truth_at_the_quantile_as_covered() -> None:
    assert coverage(np.array([1.0, 2, 3, NAN]), np.array([1.0, 1, 4, 9])) == pytest.approx(2 / 3)


def test_worst_day_is_the_lowest_of_days_half_known() -> None:
    truth = np.array([1.0, 1, 1, 1, 5, 1, 1, 1, 9, NAN, NAN, NAN])
    assert worst_day_coverage(truth, np.full(12, 2.0), 4) == pytest.approx(0.75)
