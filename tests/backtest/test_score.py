"""Figures of the benchmark, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from controller.backtest.score import Days, daily, gap_closed, score
from controller.learning.fleet import Terms


def test_the_gap_is_what_lies_between_the_rule_and_the_optimum() -> None:
    rule, best = np.array([10.0, 10.0]), np.array([4.0, 6.0])
    assert gap_closed(rule, best, best)[0] == 1.0
    assert gap_closed(rule, rule, best)[0] == 0.0
    assert gap_closed(rule, np.array([9.0, 11.0]), best)[0] == 0.0
    assert gap_closed(rule, np.array([7.0, 8.0]), best)[0] == pytest.approx(0.5)
    assert gap_closed(rule, np.array([15.0, 15.0]), best)[0] == pytest.approx(-1.0)


def test_the_interval_holds_the_gap_and_is_the_same_each_time() -> None:
    rng = np.random.default_rng(0)
    rule = rng.uniform(8, 12, 14)
    best, other = rule - rng.uniform(3, 5, 14), rule - rng.uniform(0, 3, 14)
    gap, interval = gap_closed(rule, other, best)
    assert gap is not None
    assert interval is not None
    assert interval[0] < gap < interval[1]
    assert gap_closed(rule, other, best) == (gap, interval)


def test_nothing_to_close_is_null_and_one_day_has_no_interval() -> None:
    assert gap_closed(np.array([5.0]), np.array([5.0]), np.array([5.0])) == (None, None)
    assert gap_closed(np.array([5.0]), np.array([4.0]), np.array([3.0])) == (0.5, None)


def test_costs_are_idle_boot_weighted_wait_and_two_a_node() -> None:
    terms = Terms(gpus_per_node=8, lead_s=900, wait_weight=9.0)
    one = Days(np.array([100.0]), np.array([10.0]), np.array([2.0]), np.array([3.0]))
    best = Days(np.array([90.0]), np.array([0.0]), np.array([0.0]), np.array([0.0]))
    row = score({"tuned_rule": one, "optimum": best}, terms)["tuned_rule"]
    assert (row.boot_gpu_h, row.churn_gpu_h, row.node_adds) == (6.0, 6.0, 3)
    assert row.cost == 10 + 9 * 2 + 6 + 6
    assert row.queue_p50_s is None


def test_days_are_summed_and_the_last_may_be_short() -> None:
    ones = np.ones(5)
    assert daily(ones, ones, ones, ones, 2).idle.tolist() == [2.0, 2.0, 1.0]
