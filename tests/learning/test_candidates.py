"""Candidates: bands and holds worked out by hand; step by step is the same as all at once."""

from __future__ import annotations

import numpy as np
import pytest

from controller.learning import candidates as c
from controller.learning.candidates import CANDIDATES, LEVELS_PERMILLE, NAMES, Candidate, Edge, Reach
from controller.learning.fleet import Array, seen

ROWS = 200


def a_forecast(seed: int = 1, rows: int = ROWS) -> np.ndarray:
    """Milli-GPUs (rows, reaches, levels) that ascend over the levels."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.integers(0, 200_000, (rows, len(Reach), len(LEVELS_PERMILLE))), axis=-1)


def replayed(forecast: np.ndarray, demand: Array) -> np.ndarray:
    low, high = c.edges(forecast, c.whole_milli(seen(demand)), 8)
    return c.targets(c.positions(low, high, low[0]))


def test_names_are_few_and_tell_them_apart() -> None:
    assert len(set(NAMES)) == len(NAMES) <= 30
    assert NAMES[-1] == c.RULE
    assert {"0.20 30m to 0.40 lead+1h", "0.30 1h hold 30m", "demand to 0.30 lead+2h"} <= {
        name.replace(".", "0.") for name in NAMES
    }


def test_a_fleet_moves_only_when_its_band_leaves_it_behind() -> None:
    low, high = np.array([[2], [2], [5], [1], [0]]), np.array([[6], [4], [7], [6], [3]])
    assert c.positions(low, high, np.array([5])).ravel().tolist() == [5, 4, 5, 5, 3]


def test_nodes_are_whole_and_a_hair_over_is_one_more() -> None:
    assert c.nodes_of(np.array([0, 1, 8000, 8001]), 8).tolist() == [0, 1, 1, 2]
    assert c.whole_milli(np.array([8.0, 8.0 + 1e-12, 0.3004])).tolist() == [8000, 8000, 301]


def test_edges_read_the_quantile_and_the_window_they_name() -> None:
    forecast = np.zeros((1, len(Reach), len(LEVELS_PERMILLE)), dtype=np.int64)
    for r in range(len(Reach)):
        for k, level in enumerate(LEVELS_PERMILLE):
            forecast[0, r, k] = 8000 * (1000 * r + level)
    low, high = c.edges(forecast, np.array([24_000]), 8)
    where = {reach: 1000 * r for r, reach in enumerate(Reach)}
    for k, one in enumerate(CANDIDATES):
        asked = 3 if one.low is None else where[one.low.reach] + one.low.permille
        assert low[0, k] == asked
        assert high[0, k] == max(asked, where[one.high.reach] + one.high.permille)


def test_reaches_begin_with_the_lead_or_now() -> None:
    assert [(w.lead_s, w.lead_s + w.length_s) for w in c.windows(600)] == [
        (600, 1500),
        (600, 2400),
        (600, 4200),
        (0, 4200),
        (0, 7800),
    ]


def test_step_by_step_is_the_same_as_all_at_once() -> None:
    forecast, demand = a_forecast(), np.random.default_rng(2).uniform(0, 150, ROWS)
    whole = replayed(forecast, demand)
    recent: list[np.ndarray] = []
    last = 0.0
    for t in range(ROWS):
        low, high = c.edges(forecast[t : t + 1], c.whole_milli(np.array([last])), 8)
        recent.append(c.moved(recent[-1] if recent else low[0], low[0], high[0]))
        recent = recent[-c.RECENT :]
        assert c.targets_now(recent).tolist() == whole[t].tolist()
        last = float(demand[t])


@pytest.mark.parametrize("name", ["forecast", "demand"])
def test_a_poisoned_future_changes_no_target_before_it(name: str) -> None:
    cut = 120
    forecast, demand = a_forecast(), np.random.default_rng(2).uniform(0, 150, ROWS)
    honest = replayed(forecast, demand)
    if name == "forecast":
        forecast = np.concatenate([forecast[: cut + 1], forecast[cut + 1 :] * 50])
    else:
        demand = np.concatenate([demand[:cut], demand[cut:] * 50])
    # A decision at row 120 has its own forecast, and the demand of the rows before it.
    assert np.array_equal(replayed(forecast, demand)[: cut + 1], honest[: cut + 1])


def test_a_hold_keeps_the_most_of_its_time() -> None:
    held = next(k for k, one in enumerate(CANDIDATES) if one.hold_s == 900)
    walked = np.zeros((6, len(CANDIDATES)), dtype=np.int64)
    walked[1, held] = 4
    assert c.targets(walked)[:, held].tolist() == [0, 4, 4, 4, 4, 0]


def test_an_edge_tells_itself() -> None:
    assert Candidate(Edge(200, Reach.HALF), Edge(400, Reach.WITHIN_1H)).name == ".20 30m to .40 lead+1h"
