"""The candidates: some twenty discrete policies that turn a forecast into a fleet, and the tuned rule.

A candidate has a band. It raises its fleet to a low quantile of what comes soon and lowers it to a high quantile of
what comes later; in between it stays, which is what keeps nodes from flapping. A band of no width that holds is the
classic "quantile, then hold"; a band whose lower edge is the demand of now goes up as work comes and down by forecast.

Which ones are in the set was decided once, on replays of public traces: a spread of bold and careful ones, so that some
mixture of them suits each pool (docs/designs/0007-learner.md). All arithmetic is in whole milli-GPUs and nodes, so
that a backtest and a cluster, asked the same, answer the same to the last digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from controller.core.quantities import HOUR_S, MILLI
from controller.learning.fleet import Array, held
from forecaster.windows import Window

Nodes = NDArray[np.int64]
RULE = "rule"
STEP_S = 300
"""The step of all learning: demand is recorded on a grid of five minutes."""


class Reach(StrEnum):
    """The windows that candidates look at; those ``WITHIN`` begin now, the others when a node asked for now serves."""

    QUARTER = "15m"
    HALF = "30m"
    HOUR = "1h"
    WITHIN_1H = "lead+1h"
    WITHIN_2H = "lead+2h"

    def window(self, lead_s: int) -> Window:
        """The window for a lead."""
        lengths = {Reach.QUARTER: 900, Reach.HALF: 1800, Reach.HOUR: HOUR_S}
        if self in lengths:
            return Window(lead_s, lengths[self])
        return Window(0, lead_s + (HOUR_S if self is Reach.WITHIN_1H else 2 * HOUR_S))


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """One side of a band: a quantile (permille) of the maximum demand within reach."""

    permille: int
    reach: Reach

    def __str__(self) -> str:
        return f".{self.permille // 10:02d} {self.reach}"


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """One policy. ``low`` None: up as demand comes. ``low == high``: always exactly there, then held ``hold_s``."""

    low: Edge | None
    high: Edge
    hold_s: int = 0

    @property
    def name(self) -> str:
        """For people and for records; stable."""
        if self.low is None:
            return f"demand to {self.high}"
        if self.low == self.high:
            return f"{self.low} hold {self.hold_s // 60}m"
        return f"{self.low} to {self.high}"


def _band(low: int, soon: Reach, high: int, later: Reach) -> Candidate:
    return Candidate(Edge(low, soon), Edge(high, later))


def _held(level: int, reach: Reach, hold_s: int) -> Candidate:
    return Candidate(Edge(level, reach), Edge(level, reach), hold_s)


CANDIDATES = (
    _band(200, Reach.HALF, 400, Reach.WITHIN_1H),
    _band(300, Reach.HALF, 500, Reach.WITHIN_1H),
    _band(500, Reach.HALF, 600, Reach.WITHIN_1H),
    _band(600, Reach.HALF, 700, Reach.WITHIN_1H),
    _band(800, Reach.HALF, 800, Reach.WITHIN_1H),
    _band(200, Reach.QUARTER, 300, Reach.WITHIN_2H),
    _band(200, Reach.QUARTER, 700, Reach.WITHIN_2H),
    _band(300, Reach.QUARTER, 300, Reach.WITHIN_2H),
    _band(400, Reach.QUARTER, 500, Reach.WITHIN_2H),
    _band(500, Reach.QUARTER, 700, Reach.WITHIN_2H),
    _band(700, Reach.QUARTER, 700, Reach.WITHIN_2H),
    _band(400, Reach.QUARTER, 500, Reach.WITHIN_1H),
    _held(300, Reach.HOUR, 1800),
    _held(500, Reach.HOUR, 900),
    _held(700, Reach.HALF, 1800),
    _held(800, Reach.HALF, 1800),
    _held(900, Reach.HALF, 3600),
    _held(800, Reach.HOUR, 900),
    Candidate(None, Edge(300, Reach.WITHIN_2H)),
    Candidate(None, Edge(500, Reach.WITHIN_1H)),
    Candidate(None, Edge(700, Reach.WITHIN_1H)),
)
NAMES = (*(candidate.name for candidate in CANDIDATES), RULE)
"""In the order of all arrays over candidates: the rule is the last."""
RECENT = max(candidate.hold_s for candidate in CANDIDATES) // STEP_S + 1
"""How many of its newest positions a candidate needs, for its hold."""
LEVELS_PERMILLE = (100, 200, 300, 400, 500, 600, 700, 800, 900, 950, 980)
"""Levels that are forecast for a pool's total: those of the candidates, and those that people read."""
LEVELS = tuple(permille / 1000 for permille in LEVELS_PERMILLE)


def windows(lead_s: int) -> tuple[Window, ...]:
    """What must be forecast for a pool's total, in the order of ``Reach``."""
    return tuple(reach.window(lead_s) for reach in Reach)


def whole_milli(gpus: Array) -> NDArray[np.int64]:
    """Milli-GPUs, rounded up as forecasts are; a billionth of a GPU over is rounding."""
    return np.ceil(gpus * MILLI - 1e-6).astype(np.int64)


def nodes_of(milli_gpus: NDArray[np.int64], gpus_per_node: int) -> Nodes:
    """Whole nodes that hold an amount."""
    nodes: Nodes = -(-np.maximum(milli_gpus, 0) // (gpus_per_node * MILLI))
    return nodes


def edges(forecast: NDArray[np.int64], demand: NDArray[np.int64], gpus_per_node: int) -> tuple[Nodes, Nodes]:
    """Each candidate's band in nodes: two arrays (rows, candidates).

    ``forecast``: milli-GPUs (rows, reaches, levels); ``demand``: milli-GPUs seen last (rows,).
    """
    nodes, now = nodes_of(forecast, gpus_per_node), nodes_of(demand, gpus_per_node)
    reaches, levels = list(Reach), list(LEVELS_PERMILLE)

    def side(edge: Edge | None) -> Nodes:
        return now if edge is None else nodes[:, reaches.index(edge.reach), levels.index(edge.permille)]

    low = np.stack([side(candidate.low) for candidate in CANDIDATES], axis=1)
    high = np.stack([side(candidate.high) for candidate in CANDIDATES], axis=1)
    return low, np.maximum(low, high)


def moved(position: Nodes, low: Nodes, high: Nodes) -> Nodes:
    """Where fleets stand after a step: as before, unless the band has left them behind."""
    return np.minimum(np.maximum(position, low), high)


def positions(low: Nodes, high: Nodes, first: Nodes) -> Nodes:
    """All steps of ``moved`` from the first position (candidates,) on: (rows, candidates)."""
    out = np.empty_like(low)
    now = first
    for t in range(len(low)):
        now = out[t] = moved(now, low[t], high[t])
    return out


def targets(walked: Nodes) -> Nodes:
    """Positions to targets: each candidate's hold on top. (rows, candidates) both; steps of five minutes."""
    out = walked.copy()
    for k, candidate in enumerate(CANDIDATES):
        if candidate.hold_s:
            out[:, k] = held(walked[:, k].astype(np.float64), hold_steps(candidate))
    return out


def hold_steps(candidate: Candidate) -> int:
    """A hold in steps."""
    return candidate.hold_s // STEP_S


def targets_now(recent: Sequence[Nodes]) -> Nodes:
    """Targets of the newest of some positions, oldest first: what ``targets`` gives for its last row."""
    out = recent[-1].copy()
    for k, candidate in enumerate(CANDIDATES):
        if candidate.hold_s:
            out[k] = max(int(row[k]) for row in recent[-1 - hold_steps(candidate) :])
    return out
