"""A node's life: every phase from what is observed, every move between two observations in the table."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from core_builders import NOW_S, a_job, a_node, a_policy, a_pool

from controller.core.nodes import TRANSITIONS, Phase, affordable_nodes, most_nodes, obtainable, phase, supplies
from controller.core.snapshot import Node, Snapshot

BLANK = Node("n1", "gpu", 8, 0, requested_at_s=NOW_S)


def test_a_life_from_asking_to_gone_walks_allowed_moves() -> None:
    """K1: joined at 0 s, Ready at 90 s, GPUs at 150 s; then drained."""
    joined = replace(BLANK, joined_at_s=NOW_S)
    ready = replace(joined, ready_at_s=NOW_S + 90)
    serving = replace(ready, allocatable_milli_gpus=8000)
    seen = [
        phase(BLANK, NOW_S),
        phase(joined, NOW_S + 50),
        phase(ready, NOW_S + 100),
        phase(serving, NOW_S + 150),
        phase(replace(serving, cordoned=True), NOW_S + 900),
    ]
    assert seen == [Phase.REQUESTED, Phase.BOOTING, Phase.BOOTING, Phase.READY, Phase.CORDONED]
    moves = [(a, b) for a, b in pairwise(seen) if a is not b]
    assert all(b in TRANSITIONS[a] for a, b in moves)
    assert Phase.GONE in TRANSITIONS[seen[-1]]


@pytest.mark.parametrize(("age_s", "expected"), [(899, Phase.BOOTING), (900, Phase.GPU_MISSING)])
def test_gpus_are_missing_from_fifteen_minutes_after_joining(age_s: int, expected: Phase) -> None:
    assert phase(replace(BLANK, joined_at_s=NOW_S - age_s), NOW_S) is expected


def test_an_interruption_outranks_everything_else() -> None:
    node = replace(BLANK, allocatable_milli_gpus=8000, cordoned=True, interrupted_at_s=NOW_S)
    assert phase(node, NOW_S) is Phase.INTERRUPTED


def _facts(node: Node) -> list[Node]:
    """What one more observed fact can make of a node."""
    out = [replace(node, cordoned=True), replace(node, interrupted_at_s=NOW_S)]
    if node.joined_at_s is None:
        out.append(replace(node, joined_at_s=NOW_S))
    else:
        out += [replace(node, allocatable_milli_gpus=amount) for amount in (0, 8000)]
        out.append(replace(node, cordoned=False))
    return out


def test_every_single_observed_fact_moves_a_node_along_the_table() -> None:
    """Walk all nodes reachable by one fact at a time, before and after the GPU deadline."""
    seen: set[Node] = set()
    todo = [BLANK]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        for now_s in (NOW_S, NOW_S + 900):
            here = phase(node, now_s)
            for later in _facts(node):
                there = phase(later, now_s)
                assert there is here or there in TRANSITIONS[here], (here, there)
        todo += _facts(node)
    assert {phase(node, NOW_S + 900) for node in seen} == set(Phase) - {Phase.GONE, Phase.BOOTING}


def test_every_phase_can_end() -> None:
    assert set(TRANSITIONS) == set(Phase)
    assert all(Phase.GONE in moves for at, moves in TRANSITIONS.items() if at is not Phase.GONE)
    assert TRANSITIONS[Phase.GONE] == frozenset()


def test_supply_counts_serving_nodes_and_what_is_free_on_each() -> None:
    nodes = (
        a_node("n1"),
        a_node("n2"),
        a_node("n3", state="booting", age="1m"),
        a_node("n4", state="cordoned"),
        a_node("x", pool=""),
    )
    work = a_job(pods=2, gpus=2.5, at=["n1", "n4"])
    found, ignored = supplies(Snapshot("c", NOW_S, (a_pool(),), nodes, (work,)), NOW_S)
    supply = found["gpu"]
    assert supply.allocatable == 16_000
    assert supply.free == {"n1": 5_500, "n2": 8_000}
    assert supply.used["n4"] == 2_500
    assert (supply.counted, supply.count(Phase.CORDONED), supply.live_gpus) == (3, 1, 32)
    assert ignored == ("x",)


def test_budget_maximum_and_stock_out_each_limit_what_may_exist() -> None:
    policy = a_policy({"gpu": {"max": 60, "maxHourlyCost": 100}})
    pool = policy.pools[0]
    assert most_nodes(pool, a_pool()) == 7
    assert affordable_nodes(pool, a_pool()) is None
    assert most_nodes(pool, a_pool(usd=25)) == 4
    assert most_nodes(pool, a_pool(usd=25, obtainable_gpus=17)) == 2


def test_what_serves_can_be_had_even_when_nothing_new_can() -> None:
    pool = a_policy({"gpu": {"max": 60}}).pools[0]
    nodes = tuple(a_node(f"n{i}") for i in range(3))
    supply = supplies(Snapshot("c", NOW_S, (a_pool(),), nodes), NOW_S)[0]["gpu"]
    assert obtainable(pool, a_pool(obtainable_gpus=8), supply) == 24_000
