"""The account of a fleet against an obvious loop, and the vectorised rule against the one that runs in production."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core import headroom
from controller.core.advice import RuleParameters
from controller.learning import rule
from controller.learning.fleet import Terms, held, nodes_for, replay, seen

demands = st.lists(st.one_of(st.none(), st.integers(0, 60)), min_size=1, max_size=20)
targets = st.lists(st.integers(0, 8), min_size=20, max_size=20)


def as_array(demand: list[int | None]) -> np.ndarray:
    return np.array([math.nan if value is None else float(value) for value in demand])


def node_by_node(demand: np.ndarray, wanted: list[int], terms: Terms, first: int) -> dict[str, float]:
    """A list of nodes, each with the second from which it serves; supply is looked at every minute."""
    nodes = [0] * first
    costs = {"idle": 0.0, "wait": 0.0, "adds": 0}
    for t, gpus in enumerate(demand):
        now = t * terms.step_s
        missing = wanted[t] - len(nodes)
        nodes += [now + terms.lead_s] * max(0, missing)
        for _ in range(max(0, -missing)):
            ready = [node for node in nodes if node <= now]
            if ready:
                nodes.remove(ready[0])
        if math.isnan(gpus):
            continue
        costs["adds"] += max(0, missing)
        for minute in range(0, terms.step_s, 60):
            supply = terms.gpus_per_node * sum(1 for node in nodes if node <= now + minute)
            costs["idle"] += max(0.0, supply - gpus) / 60
            costs["wait"] += max(0.0, gpus - supply) / 60
    return costs


@settings(max_examples=200, deadline=None)
@given(demands, targets, st.sampled_from([60, 300, 600, 900, 1200]), st.integers(0, 4))
def test_the_vectorised_account_is_that_of_nodes_one_by_one(
    demand: list[int | None], wanted: list[int], lead_s: int, first: int
) -> None:
    terms = Terms(gpus_per_node=8, lead_s=lead_s, wait_weight=9.0)
    array = as_array(demand)
    account = replay(array, np.array(wanted[: len(demand)], dtype=float)[:, None], terms, first)
    slow = node_by_node(array, wanted, terms, first)
    assert account.idle.sum() == pytest.approx(slow["idle"])
    assert account.wait.sum() == pytest.approx(slow["wait"])
    assert account.adds.sum() == slow["adds"]


def test_by_hand_one_node_ten_minutes_away() -> None:
    # 8 GPUs are wanted from the first step on; the node that is asked for at once serves from the third step.
    terms = Terms(gpus_per_node=8, lead_s=600, wait_weight=9.0)
    account = replay(np.array([8.0, 8.0, 8.0, 4.0]), np.array([[1.0], [1.0], [1.0], [1.0]]), terms, 0)
    assert account.wait[:, 0].tolist() == pytest.approx([8 / 12, 8 / 12, 0, 0])
    assert account.idle[:, 0].tolist() == pytest.approx([0, 0, 0, 4 / 12])
    # boot 8 GPUs · 10 min = 1.333 GPU-hours and 2 for the churn, 9 · 1.333 for the wait, 0.333 idle
    assert account.cost.sum() == pytest.approx(8 * 600 / 3600 + 2 + 9 * 16 / 12 + 4 / 12)


def test_what_was_seen_ends_before_the_step_and_carries_over_a_gap() -> None:
    assert seen(np.array([5.0, math.nan, 7.0, 9.0])).tolist() == [0.0, 5.0, 5.0, 7.0]


def test_a_target_is_held_for_as_many_more_steps() -> None:
    assert held(np.array([3.0, 1.0, 1.0, 1.0]), 2).tolist() == [3.0, 3.0, 3.0, 1.0]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=40), st.sampled_from(rule.GRID))
def test_the_replayed_rule_names_the_nodes_that_the_production_rule_names(
    demand: list[int], chosen: RuleParameters
) -> None:
    """Same parameters, same demand: the grid and ``core.headroom.rule_nodes`` agree at every step."""
    terms = Terms(gpus_per_node=8, lead_s=600, wait_weight=9.0)
    array = np.array(demand, dtype=float)
    column = rule.targets(array, terms)[:, rule.GRID.index(chosen)]
    known = seen(array)
    for step in range(len(demand)):
        now = step * terms.step_s
        points = [(k * terms.step_s, int(known[k]) * 1000) for k in range(step + 1)]
        assert headroom.rule_nodes(points, int(known[step]) * 1000, chosen, 8, now) == int(column[step])


def test_tuning_finds_the_buffer_and_the_hold_that_a_past_called_for() -> None:
    """A climb needs a buffer, no hold can meet it; spikes every half hour are cheaper held for than bought anew."""
    terms = Terms(gpus_per_node=1, lead_s=300, wait_weight=50.0)
    assert rule.tune(100 * 1.05 ** np.arange(60.0), terms).rule.buffer_permille >= 100
    spikes = np.tile(np.array([40.0, 0.0, 0.0, 0.0, 0.0, 0.0]), 40)
    assert rule.tune(spikes, terms).rule.hold_s >= 1500
    assert rule.tune(np.full(240, 100.0), terms).rule == RuleParameters(0, 0)


def test_a_past_of_gaps_gives_the_default_rule() -> None:
    assert rule.tune(np.full(20, math.nan), Terms(8, 600, 9.0)).rule == RuleParameters()


def test_tuning_again_at_night_uses_nothing_of_the_day_that_follows() -> None:
    terms = Terms(8, 900, 9.0)
    rng = np.random.default_rng(1)
    past = rng.integers(0, 80, 4 * 288).astype(float)
    other = past.copy()
    other[3 * 288 :] = 1e6
    one, nights = rule.tuned_nightly(past, terms, 2 * 288, 288)
    two, others = rule.tuned_nightly(other, terms, 2 * 288, 288)
    assert nights[:2] == others[:2]
    assert np.array_equal(one[: 3 * 288], two[: 3 * 288])


def test_nodes_hold_an_amount_and_rounding_is_not_demand() -> None:
    assert nodes_for(np.array([0.0, 8.0, 8.0000001, 8.1]), 8).tolist() == [0, 1, 1, 2]
