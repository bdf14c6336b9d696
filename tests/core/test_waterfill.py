"""Water-filling against an independent method: lexicographic max-min by a series of linear programs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from controller.core.shares import level, waterfill

Case = tuple[int, list[int], list[int], list[int]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    size = draw(st.integers(1, 5))
    lows = draw(st.lists(st.integers(0, 6), min_size=size, max_size=size))
    highs = [low + draw(st.integers(0, 12)) for low in lows]
    weights = draw(st.lists(st.integers(1, 4), min_size=size, max_size=size))
    return draw(st.integers(0, sum(highs) + 3)), lows, highs, weights


def by_linear_programs(total: int, lows: list[int], highs: list[int], weights: list[int]) -> list[float]:
    """Raise the smallest x/w as far as it goes, fix whoever cannot rise further, and so on with the others."""
    size = len(lows)
    fixed: dict[int, float] = {}
    while len(fixed) < size:
        free = [i for i in range(size) if i not in fixed]
        bounds = [(fixed[i], fixed[i]) if i in fixed else (lows[i], highs[i]) for i in range(size)]
        least = _highest_level(total, bounds, weights, free)
        stuck = [i for i in free if _most(i, total, bounds, weights, free, least) <= least * weights[i] + 1e-7]
        stuck = stuck or free
        for i in stuck:
            fixed[i] = min(max(least * weights[i], lows[i]), highs[i])
    return [fixed[i] for i in range(size)]


def _highest_level(total, bounds, weights, free) -> float:
    size = len(bounds)
    objective = np.zeros(size + 1)
    objective[-1] = -1
    upper, right = [np.append(np.ones(size), 0.0)], [float(total)]
    for i in free:
        row = np.zeros(size + 1)
        row[i], row[-1] = -1, weights[i]
        upper.append(row)
        right.append(0.0)
    answer = linprog(objective, A_ub=upper, b_ub=right, bounds=[*bounds, (0, None)])
    assert answer.success
    return float(answer.x[-1])


def _most(i, total, bounds, weights, free, least) -> float:
    size = len(bounds)
    objective = np.zeros(size)
    objective[i] = -1
    floors = [
        (max(low, min(least * weights[k], high)) if k in free else low, high) for k, (low, high) in enumerate(bounds)
    ]
    answer = linprog(objective, A_ub=[np.ones(size)], b_ub=[float(total)], bounds=floors)
    assert answer.success
    return float(answer.x[i])


@settings(max_examples=150, deadline=None)
@given(cases())
def test_the_exact_level_is_the_lexicographic_optimum(case: Case) -> None:
    total, lows, highs, weights = case
    if total < sum(lows) or total > sum(highs):
        return
    expected = by_linear_programs(total, lows, highs, weights)
    found = [float(value) for value in level(total, lows, highs, weights)]
    assert np.allclose(found, expected, atol=1e-5)


@settings(max_examples=300, deadline=None)
@given(cases())
def test_whole_gpus_stay_inside_the_bounds_sum_up_and_lie_next_to_the_exact_level(case: Case) -> None:
    total, lows, highs, weights = case
    given_out = waterfill(total * 1000, *([v * 1000 for v in bound] for bound in (lows, highs)), weights, ranks(lows))
    assert sum(given_out) == min(total, sum(highs)) * 1000
    exact = level(total, lows, highs, weights)
    for gpus, low, high, ideal in zip(given_out, lows, highs, exact, strict=True):
        assert gpus % 1000 == 0
        assert gpus <= high * 1000
        if total >= sum(lows):
            assert gpus >= low * 1000
            assert abs(Fraction(gpus, 1000) - ideal) <= 2


@settings(max_examples=300, deadline=None)
@given(cases(), st.data())
def test_a_gpu_more_in_the_pool_takes_none_from_anybody(case: Case, data: st.DataObject) -> None:
    total, lows, highs, weights = case
    less = waterfill(total * 1000, [v * 1000 for v in lows], [v * 1000 for v in highs], weights, ranks(lows))
    more = waterfill((total + 1) * 1000, [v * 1000 for v in lows], [v * 1000 for v in highs], weights, ranks(lows))
    assert all(a <= b for a, b in zip(less, more, strict=True))


@settings(max_examples=300, deadline=None)
@given(cases(), st.integers(0, 4))
def test_wanting_a_gpu_more_never_costs_one(case: Case, who: int) -> None:
    total, lows, highs, weights = case
    i = who % len(lows)
    wants_more = [high + (k == i) for k, high in enumerate(highs)]
    before = waterfill(total * 1000, [v * 1000 for v in lows], [v * 1000 for v in highs], weights, ranks(lows))
    after = waterfill(total * 1000, [v * 1000 for v in lows], [v * 1000 for v in wants_more], weights, ranks(lows))
    assert after[i] >= before[i]


def ranks(lows: list[int]) -> list[tuple[int, str]]:
    return [(0, f"team-{i}") for i in range(len(lows))]


def test_by_hand_weights_two_to_one_inside_a_ceiling() -> None:
    # 12 GPUs, weights 2 : 1 : 1 → 6, 3, 3; the first is capped at 4, so the two that are left in the others' halves.
    assert waterfill(12_000, [0, 0, 0], [12_000] * 3, [2, 1, 1], ranks([0] * 3)) == (6_000, 3_000, 3_000)
    assert waterfill(12_000, [0, 0, 0], [4_000, 12_000, 12_000], [2, 1, 1], ranks([0] * 3)) == (4_000, 4_000, 4_000)


def test_by_hand_the_odd_gpu_goes_to_the_higher_priority_and_then_the_first_name() -> None:
    bounds = ([0, 0], [9_000, 9_000], [1, 1])
    assert waterfill(5_000, *bounds, [(0, "a"), (7, "b")]) == (2_000, 3_000)
    assert waterfill(5_000, *bounds, [(0, "b"), (0, "a")]) == (2_000, 3_000)


def test_by_hand_floors_that_do_not_fit_shrink_in_proportion() -> None:
    assert waterfill(6_000, [8_000, 4_000], [9_000, 9_000], [1, 1], ranks([0, 0])) == (4_000, 2_000)
