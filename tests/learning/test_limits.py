"""What shadow fleets are held to, against the code that holds real ones: the core's headroom, shield and quantiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core import headroom, shield
from controller.core.advice import HeadroomSource, PoolAdvice, RuleParameters
from controller.core.forecast import Forecasts, WindowForecast
from controller.core.nodes import Supply
from controller.core.policy import Learning, LearningMode, Pool, PoolLimits
from controller.core.snapshot import PoolObservation
from controller.learning.candidates import LEVELS_PERMILLE, Reach, nodes_of
from controller.learning.limits import Limits, quantile

NODE = 8
QUARTER, HOUR = list(Reach).index(Reach.QUARTER), list(Reach).index(Reach.HOUR)
milli = st.integers(0, 900_000)
values = st.lists(milli, min_size=len(LEVELS_PERMILLE), max_size=len(LEVELS_PERMILLE)).map(sorted)


def a_forecast(quarter: list[int], hour: list[int]) -> np.ndarray:
    """One row (1, reaches, levels), milli-GPUs; only the two windows of the envelope are filled."""
    out = np.zeros((1, len(Reach), len(LEVELS_PERMILLE)), dtype=np.int64)
    out[0, QUARTER], out[0, HOUR] = quarter, hour
    return out


def a_pool(least: int = 0, most: int = 100_000) -> Pool:
    return Pool("p", (), PoolLimits(least, most), gpus_per_node=NODE)


def of_core(asked: int, demand: int, pool: Pool, learning: Learning, source: HeadroomSource) -> int:
    """Nodes that the core ends with when ``asked`` nodes are advised, or are the rule's: headroom, then shield."""
    seen = PoolObservation("p", NODE, 900)
    # A rule without buffer asks for the nodes of what it holds: its target is given as the demand of a moment ago.
    rule, recent = RuleParameters(0, 3600), ((0, asked * NODE * 1000),)
    advice = PoolAdvice("p", source, rule, target_milli_gpus=asked * NODE * 1000)
    target = headroom.target(pool, seen, recent, demand, Forecasts(), advice, learning, 0)
    return shield.capacity(pool, seen, Supply("p", (), 0, {}, {}, {}, 0, 0), target, demand, NODE)[0]


@given(values, st.integers(0, 1000))
def test_a_quantile_is_read_as_the_core_reads_it(levels: list[int], permille: int) -> None:
    window = WindowForecast(900, 1800, LEVELS_PERMILLE, tuple(levels))
    assert int(quantile(np.array(levels), permille)) == window.at(permille)


@given(st.integers(0, 60), milli, st.none() | st.integers(0, 200), st.integers(0, 100), st.integers(0, 400))
@settings(deadline=None)
def test_advice_without_an_envelope_ends_where_the_core_ends(
    asked: int, demand: int, most_headroom: int | None, least: int, above: int
) -> None:
    pool = a_pool(least, least + above)
    learning = Learning(LearningMode.FULL, 0, 1000, most_headroom)
    limits = Limits.of(pool, learning, NODE)
    open_envelope = a_forecast([0] * len(LEVELS_PERMILLE), [10**9] * len(LEVELS_PERMILLE))
    wanted = nodes_of(np.array([demand]), NODE)
    mine = int(limits.advised(np.array([[asked]]), open_envelope, wanted, NODE)[0, 0])
    assert mine == of_core(asked, demand, pool, learning, HeadroomSource.LEARNER)


@given(st.integers(0, 60), milli, st.integers(0, 100), st.integers(0, 400))
@settings(deadline=None)
def test_the_rule_is_bound_by_the_pool_and_by_demand_and_by_nothing_else(
    asked: int, demand: int, least: int, above: int
) -> None:
    pool = a_pool(least, least + above)
    learning = Learning(LearningMode.FULL, 900, 950, max_headroom_gpus=0)
    wanted = nodes_of(np.array([demand]), NODE)
    mine = int(Limits.of(pool, learning, NODE).of_pool(np.array([[asked]]), wanted)[0, 0])
    assert mine == of_core(asked, demand, pool, learning, HeadroomSource.RULE)


@given(values, values, st.integers(0, 120), st.integers(0, 1000), st.integers(0, 1000))
def test_the_envelope_is_the_quarters_low_and_the_hours_high_quantile(
    quarter: list[int], hour: list[int], asked: int, one: int, other: int
) -> None:
    low, high = min(one, other), max(one, other)
    limits = Limits(low_permille=low, high_permille=high)
    mine = int(limits.advised(np.array([[asked]]), a_forecast(quarter, hour), np.array([0]), NODE)[0, 0])
    floor = headroom.nodes_for(WindowForecast(900, 1800, LEVELS_PERMILLE, tuple(quarter)).at(low), NODE)
    roof = headroom.nodes_for(WindowForecast(900, 4500, LEVELS_PERMILLE, tuple(hour)).at(high), NODE)
    # Where the windows cross, the roof is the last word.
    assert mine == min(max(asked, floor), roof)


@pytest.mark.parametrize(
    ("asked", "wanted", "limits", "nodes"),
    [
        (1, 3, Limits(), 1),
        (1, 3, Limits(follows=True), 3),
        (9, 3, Limits(follows=True, headroom=2), 5),
        (9, 3, Limits(headroom=0), 3),
        (1, 3, Limits(least=4), 4),
        (9, 3, Limits(follows=True, most=2), 2),
        (0, 0, Limits(least=4, most=2), 2),
    ],
)
def test_by_hand(asked: int, wanted: int, limits: Limits, nodes: int) -> None:
    nothing = np.zeros((1, len(Reach), len(LEVELS_PERMILLE)), dtype=np.int64)
    assert int(limits.advised(np.array([[asked]]), nothing, np.array([wanted]), NODE)[0, 0]) == nodes


def test_the_default_leaves_every_target_as_it_is() -> None:
    asked = np.arange(12).reshape(3, 4)
    forecast = np.full((3, len(Reach), len(LEVELS_PERMILLE)), 5000, dtype=np.int64)
    assert np.array_equal(Limits().advised(asked, forecast, np.array([9, 9, 9]), NODE), asked)
