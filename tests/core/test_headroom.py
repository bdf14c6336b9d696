"""The rule as arithmetic: demand and a buffer, rounded up to nodes, the most of the last while."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.core.advice import RuleParameters
from controller.core.headroom import most_recent, nodes_for, rule_nodes


@pytest.mark.parametrize(
    ("demand", "buffer_permille", "expected"),
    [(0, 100, 0), (1, 0, 1), (8_000, 0, 1), (8_001, 0, 2), (8_000, 1, 2), (16_000, 500, 3), (7_272, 100, 1)],
)
def test_the_rule_rounds_demand_and_buffer_up_to_nodes_of_eight(
    demand: int, buffer_permille: int, expected: int
) -> None:
    # 7,272 · 1.1 = 7,999.2, rounded up to a milli-GPU: 8,000, one node
    assert rule_nodes((), demand, RuleParameters(buffer_permille, 600), 8, 1_000) == expected


@given(
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 100_000)), max_size=8).map(sorted),
    st.integers(0, 100_000),
    st.integers(0, 1_000),
    st.integers(0, 1_500),
    st.sampled_from([1, 4, 8]),
)
def test_the_rule_equals_its_definition(
    points: list[tuple[int, int]], demand: int, buffer_permille: int, hold_s: int, size: int
) -> None:
    now_s = 2_000
    exact = [
        Fraction(v) * (1000 + buffer_permille) / 1000 for at, v in [*points, (now_s, demand)] if at >= now_s - hold_s
    ]
    expected = max(ceil(Fraction(ceil(value), size * 1000)) for value in exact)
    assert rule_nodes(points, demand, RuleParameters(buffer_permille, hold_s), size, now_s) == expected


def test_the_most_recent_value_is_now_when_nothing_older_counts() -> None:
    assert most_recent([(10, 9)], 11, 3) == 3
    assert most_recent([(10, 9)], 10, 3) == 9
    assert most_recent([], 0, 3) == 3


def test_no_demand_needs_no_node() -> None:
    assert (nodes_for(-5, 8), nodes_for(0, 8), nodes_for(1, 8)) == (0, 0, 1)
