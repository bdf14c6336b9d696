"""The clairvoyant optimum: what a fleet would cost that knew all demand, under the same lead, nodes and prices.

Exact backward dynamic programming over (step, nodes serving). Removing is free and adding has a price per node, so the
best move from n is a prefix minimum: each step costs O(N). The cost-to-go is kept: hindsight labels are made of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.learning.fleet import Array, Terms


@dataclass(frozen=True, slots=True)
class Optimum:
    """``cost`` from the first nodes on; ``plan``: nodes serving in each step; ``to_go``: (steps + 1, nodes + 1)."""

    cost: float
    plan: NDArray[np.int64]
    to_go: Array


def solve(
    demand: Array,
    terms: Terms,
    first_nodes: int,
    most_nodes: int | None = None,
    stock_out: NDArray[np.bool_] | None = None,
) -> Optimum:
    """Solve a demand of (steps,) GPUs, NaN where nothing counts. ``stock_out``: (steps,), True where no node arrives.

    Knowing everything, the optimum asks one lead ahead of need; nothing can arrive before the first lead has passed. A
    node that arrives inside a step (a lead of no whole steps) is counted from the step's beginning, which favours the
    optimum slightly and is the same for all that are compared with it.
    """
    known = demand[~np.isnan(demand)]
    peak = int(np.ceil(known.max() / terms.gpus_per_node)) if len(known) else 0
    size = max(peak, first_nodes) + 1 if most_nodes is None else max(most_nodes, first_nodes) + 1
    nodes = np.arange(size)
    to_go = np.zeros((len(demand) + 1, size))
    arrives = np.arange(len(demand)) >= -(-terms.lead_s // terms.step_s)
    if stock_out is not None:
        arrives &= ~stock_out
    for t in range(len(demand) - 1, -1, -1):
        after = to_go[t + 1] + _stage(demand[t], nodes, terms)
        to_go[t] = _best(after, nodes, terms.per_add, may_add=bool(arrives[t]))
    return Optimum(float(to_go[0, first_nodes]), _plan(demand, nodes, terms, to_go, first_nodes, arrives), to_go)


def _stage(demand: float, nodes: NDArray[np.int64], terms: Terms) -> Array:
    if np.isnan(demand):
        return np.zeros(len(nodes))
    spare = nodes * terms.gpus_per_node - demand
    hours = terms.step_s / 3600
    return np.asarray((np.maximum(spare, 0.0) + terms.wait_weight * np.maximum(-spare, 0.0)) * hours)


def _best(after: Array, nodes: NDArray[np.int64], price: float, *, may_add: bool) -> Array:
    down = np.minimum.accumulate(after)
    if not may_add:
        return np.asarray(down)
    up = np.minimum.accumulate((after + price * nodes)[::-1])[::-1] - price * nodes
    return np.asarray(np.minimum(down, up))


def _plan(
    demand: Array, nodes: NDArray[np.int64], terms: Terms, to_go: Array, first_nodes: int, arrives: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Walk forward along the minima; among equals the fewest moves."""
    plan = np.zeros(len(demand), dtype=np.int64)
    now = first_nodes
    for t in range(len(demand)):
        after = to_go[t + 1] + _stage(demand[t], nodes, terms)
        price = np.where(nodes > now, terms.per_add * (nodes - now), 0.0)
        total = after + price
        if not arrives[t]:
            total = np.where(nodes > now, np.inf, total)
        best = np.flatnonzero(total <= total.min() + 1e-9)
        now = int(best[np.argmin(np.abs(best - now))])
        plan[t] = now
    return plan
