"""The optimum against every possible plan of small cases, and against all policies of larger ones."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.learning import optimum, rule
from controller.learning.fleet import Terms, replay


def plan_cost(demand: np.ndarray, plan: tuple[int, ...], terms: Terms, first: int) -> float:
    """What a plan of serving nodes costs, or infinity where a node would have to arrive before it can."""
    earliest, before, cost = math.ceil(terms.lead_s / terms.step_s), first, 0.0
    for t, nodes in enumerate(plan):
        if nodes > before and t < earliest:
            return math.inf
        cost += terms.per_add * max(0, nodes - before)
        if not math.isnan(demand[t]):
            spare = nodes * terms.gpus_per_node - demand[t]
            cost += (max(spare, 0) + terms.wait_weight * max(-spare, 0)) * terms.step_s / 3600
        before = nodes
    return cost


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.just(math.nan), st.integers(0, 24).map(float)), min_size=1, max_size=6),
    st.sampled_from([300, 600, 900]),
    st.sampled_from([1.0, 3.0, 9.0, 30.0]),
    st.integers(0, 3),
)
def test_no_plan_at_all_is_cheaper(demand: list[float], lead_s: int, weight: float, first: int) -> None:
    terms = Terms(gpus_per_node=8, lead_s=lead_s, wait_weight=weight)
    array = np.array(demand)
    every = (plan_cost(array, plan, terms, first) for plan in itertools.product(range(4), repeat=len(demand)))
    solved = optimum.solve(array, terms, first, most_nodes=3)
    assert solved.cost == pytest.approx(min(every))
    assert plan_cost(array, tuple(solved.plan.tolist()), terms, first) == pytest.approx(solved.cost)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 80), min_size=3, max_size=60), st.sampled_from([300, 900, 1800]))
def test_no_rule_of_the_grid_is_cheaper(demand: list[int], lead_s: int) -> None:
    terms = Terms(gpus_per_node=8, lead_s=lead_s, wait_weight=9.0)
    array = np.array(demand, dtype=float)
    best_rule = replay(array, rule.targets(array, terms), terms, 2).cost.sum(axis=0).min()
    assert optimum.solve(array, terms, 2).cost <= best_rule + 1e-9


def test_by_hand_a_peak_worth_a_node_and_one_that_is_not() -> None:
    terms = Terms(gpus_per_node=8, lead_s=300, wait_weight=9.0)
    # An hour of 8 GPUs waiting costs 72, a node 8 · 5/60 + 2 = 2.667: bought for the second step.
    long_peak = np.array([8.0] * 12)
    assert optimum.solve(long_peak, terms, 0).cost == pytest.approx(9 * 8 / 12 + 8 * 300 / 3600 + 2)
    # A single GPU for five minutes waits for 0.75 and is not worth a node.
    assert optimum.solve(np.array([0.0, 1.0, 0.0]), terms, 0).cost == pytest.approx(0.75)
