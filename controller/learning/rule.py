"""The tuned rule: demand · (1 + b), rounded up to nodes, held for h. Baseline, fallback and comparator of the rest.

(b, h) come from replaying a grid over the pool's own last weeks: tenths of a second. Any gain is quoted against this
rule, tuned; against an untuned one anything looks good.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.core.advice import RuleParameters
from controller.learning.fleet import Array, Terms, held, nodes_for, replay, seen

BUFFERS_PERMILLE = (-200, -100, -50, 0, 50, 100, 150, 200, 300, 400, 500, 600, 800, 1000)
HOLDS_S = (0, 300, 600, 900, 1800, 2700, 3600, 5400, 7200, 10_800, 14_400)
HISTORY_DAYS = 28
DEFAULT = RuleParameters()
GRID = tuple(RuleParameters(b, h) for h in HOLDS_S for b in BUFFERS_PERMILLE)


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best of the grid on a past, and what it cost there (GPU-hours)."""

    rule: RuleParameters
    cost: float


def targets(demand: Array, terms: Terms) -> Array:
    """The targets of every rule of ``GRID``, by step: (steps, rules)."""
    known = seen(demand)
    columns = []
    for hold in HOLDS_S:
        peak = held(known, hold // terms.step_s)
        columns += [nodes_for(peak * (1000 + b) / 1000, terms.gpus_per_node) for b in BUFFERS_PERMILLE]
    return np.stack(columns, axis=1)


def tune(demand: Array, terms: Terms, first_nodes: int | None = None) -> Tuned:
    """The rule that would have cost least on a past. ``demand``: (steps,) GPUs; all unknown gives the default."""
    known = demand[~np.isnan(demand)]
    if not len(known):
        return Tuned(DEFAULT, 0.0)
    first = int(nodes_for(np.array([known[0]]), terms.gpus_per_node)[0]) if first_nodes is None else first_nodes
    costs = replay(demand, targets(demand, terms), terms, first).cost.sum(axis=0)
    return _best(costs)


def _best(costs: Array) -> Tuned:
    index = int(np.argmin(costs))
    return Tuned(GRID[index], float(costs[index]))


def tuned_nightly(
    demand: Array, terms: Terms, start: int, rows_a_day: int, stock_out: NDArray[np.bool_] | None = None
) -> tuple[Array, list[RuleParameters]]:
    """Targets from step ``start`` on, the rule tuned anew each night on the weeks before it, as production does.

    ``stock_out``: (steps,), True where no node arrived, as recorded.

    Returns the targets of all steps (before ``start``: of the first night's rule) and each night's rule.
    """
    everything = targets(demand, terms)
    first = int(everything[0, 0])
    costs = replay(demand, everything, terms, first, stock_out).cost
    chosen = np.zeros(len(demand))
    nights: list[RuleParameters] = []
    for night in range(start, len(demand), rows_a_day):
        past = costs[max(0, night - HISTORY_DAYS * rows_a_day) : night]
        index = int(np.argmin(past.sum(axis=0))) if len(past) else GRID.index(DEFAULT)
        if not nights:
            chosen[:night] = everything[:night, index]
        chosen[night : night + rows_a_day] = everything[night : night + rows_a_day, index]
        nights.append(GRID[index])
    return chosen, nights
