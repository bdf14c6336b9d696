"""What a fleet costs against a demand that it does not change: the one account by which all policies are compared.

Time runs in steps; at the beginning of step t a policy that has seen the demand of the steps before t names a number of
nodes. What is missing is asked for and serves ``lead`` later; what is too much goes at once (booting nodes cannot be
called off). cost (GPU-hours) = idle + starting (lead · GPUs of each node added) + w · waiting + 2 for each node added.
A lead that is no whole number of steps serves for the matching part of the step in which it arrives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CHURN_GPU_H = 2.0
"""GPU-hours that each node added costs beside its boot: image pulls, cold caches, API calls (DESIGN §9)."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The constants of an account. ``gpus_per_node`` GPUs; ``lead_s`` and ``step_s`` seconds; ``wait_weight`` w."""

    gpus_per_node: int
    lead_s: int
    wait_weight: float
    step_s: int = 300

    @property
    def whole_steps(self) -> int:
        """Steps that pass before the step in which a node arrives."""
        return self.lead_s // self.step_s

    @property
    def late(self) -> float:
        """The part of its first step that a node misses."""
        return self.lead_s % self.step_s / self.step_s

    @property
    def per_add(self) -> float:
        """GPU-hours that a node added costs."""
        return self.gpus_per_node * self.lead_s / 3600 + CHURN_GPU_H


@dataclass(frozen=True, slots=True)
class Account:
    """Costs by step (and fleet): arrays of one shape. ``adds`` counts nodes, all else is GPU-hours."""

    provisioned: Array
    idle: Array
    wait: Array
    adds: Array
    terms: Terms

    @property
    def cost(self) -> Array:
        """Total cost by step."""
        return self.idle + self.terms.wait_weight * self.wait + self.terms.per_add * self.adds


def replay(demand: Array, targets: Array, terms: Terms, first_nodes: int) -> Account:
    """Run fleets through a demand. ``demand``: (steps,), NaN in gaps; ``targets``: (steps, fleets) nodes.

    In a gap nothing is known and nothing counts, but fleets go on. ``first_nodes`` serve at the beginning.
    """
    steps, fleets = targets.shape
    hours, late, k = terms.step_s / 3600, terms.late, terms.whole_steps
    ready = np.full(fleets, float(first_nodes))
    coming = np.zeros((k + 1, fleets))
    pending = np.zeros(fleets)
    provisioned, idle, wait, adds = (np.zeros((steps, fleets)) for _ in range(4))
    for t in range(steps):
        due = coming[t % (k + 1)].copy()
        coming[t % (k + 1)] = 0.0
        pending = pending - due
        if not late:
            ready, due = ready + due, np.zeros(fleets)
        here = ready + due + pending
        up = np.maximum(targets[t] - here, 0.0)
        ready = ready - np.minimum(np.maximum(here - targets[t], 0.0), ready)
        if k:
            coming[(t + k) % (k + 1)] += up
            pending = pending + up
        else:
            due = due + up
        if not np.isnan(demand[t]):
            before = ready * terms.gpus_per_node
            after = (ready + due) * terms.gpus_per_node
            for supply, part in ((before, late), (after, 1.0 - late)):
                provisioned[t] += supply * part * hours
                idle[t] += np.maximum(supply - demand[t], 0.0) * part * hours
                wait[t] += np.maximum(demand[t] - supply, 0.0) * part * hours
            adds[t] = up
        ready = ready + due
    return Account(provisioned, idle, wait, adds, terms)


def seen(demand: Array) -> Array:
    """The last known demand before each step: what a decision at that step may use. Steps before any are 0."""
    known = ~np.isnan(demand)
    last = np.maximum.accumulate(np.where(known, np.arange(len(demand)), -1))
    carried = np.where(last >= 0, demand[np.maximum(last, 0)], 0.0)
    return np.concatenate([[0.0], carried[:-1]])


def nodes_for(gpus: Array, gpus_per_node: int) -> Array:
    """Whole nodes that hold an amount; a millionth of a GPU over is rounding, not demand."""
    return np.maximum(np.ceil(gpus / gpus_per_node - 1e-6), 0.0)


def held(targets: Array, steps: int) -> Array:
    """Each target kept for so many more steps: the most of this and the ``steps`` targets before it (axis 0)."""
    out = targets.copy()
    for back in range(1, min(steps, len(targets) - 1) + 1):
        np.maximum(out[back:], targets[:-back], out=out[back:])
    return out
