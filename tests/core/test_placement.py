"""Packing by histogram against packing node by node."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.core.placement import Packing


def _best_fit(free: list[int], pods: int, amount: int) -> tuple[list[int], int]:
    """One pod at a time onto the node that it leaves least on."""
    left = sorted(free)
    for placed in range(pods):
        fitting = [value for value in left if value >= amount]
        if not fitting:
            return sorted(left), pods - placed
        left.remove(min(fitting))
        left.append(min(fitting) - amount)
    return sorted(left), 0


@given(
    st.lists(st.integers(0, 8).map(lambda g: g * 500), max_size=8),
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 8).map(lambda g: g * 500)), max_size=4),
)
def test_gangs_leave_the_same_room_as_pod_by_pod_best_fit(free: list[int], gangs: list[tuple[int, int]]) -> None:
    packing = Packing(free)
    for pods, amount in gangs:
        fit = packing.pods_that_fit(amount)
        unplaced = packing.place(pods, amount)
        free, expected = _best_fit(free, pods, amount)
        assert unplaced == expected == max(0, pods - fit)
        assert sorted(value for value, count in packing.nodes.items() for _ in range(count)) == free


def test_the_largest_gang_is_the_most_that_equal_pods_could_take() -> None:
    # 7, 4 and 2 free: 13 pods of 1, 6 of 2 (12), 3 of 3 (9), 2 of 4 (8), 1 of 5, 6, 7
    assert Packing([7000, 4000, 2000]).largest_gang(8) == 13_000
    # half GPUs free on each of 8 nodes hold no pod of a whole GPU
    assert Packing([500] * 8).largest_gang(8) == 0
    assert Packing([]).largest_gang(8) == 0
