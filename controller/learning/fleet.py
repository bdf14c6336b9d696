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


class Fleets:
    """Fleets under way, one step after another: ``ready`` nodes serve, ``coming`` ones were asked for.

    ``ready``: (fleets,). ``coming``: (whole steps of the lead + 1, fleets), what arrives in the next step, the one
    after it, and so on.
    """

    def __init__(self, terms: Terms, ready: Array, coming: Array | None = None) -> None:
        shape = (terms.whole_steps + 1, len(ready))
        self.terms, self.ready = terms, ready.astype(np.float64)
        self._ring = np.zeros(shape) if coming is None else coming.astype(np.float64)
        if self._ring.shape != shape:
            raise ValueError(f"nodes that are coming have the shape {shape}")
        self._at = 0

    @property
    def coming(self) -> Array:
        """What was asked for, by the step in which it arrives, the next one first."""
        return np.roll(self._ring, -self._at, axis=0)

    def only(self, fleet: int) -> Fleets:
        """One of the fleets as it stands, to go its own way from here on."""
        return Fleets(self.terms, self.ready[[fleet]], self.coming[:, [fleet]])

    def step(
        self, targets: Array, demand: float | Array, *, stock_out: bool = False
    ) -> tuple[Array, Array, Array, Array]:
        """Go through one step with these targets (fleets,): provisioned, idle and waiting GPU-hours, nodes added.

        ``demand``: of the step, for all fleets or for each (NaN: nothing is known and nothing counts). ``stock_out``:
        no node arrives in this step; those that would have are still on their way, and arrive in the next one.
        """
        terms, known = self.terms, ~np.isnan(demand)
        late, due = terms.late, self._ring[self._at].copy()
        self._ring[self._at] = 0.0
        put_off = np.zeros(len(due))
        if stock_out:
            put_off, due = due, put_off
        if not late:
            self.ready, due = self.ready + due, np.zeros(len(due))
        here = self.ready + due + put_off + self._ring.sum(axis=0)
        up = np.maximum(targets - here, 0.0)
        self.ready = self.ready - np.minimum(np.maximum(here - targets, 0.0), self.ready)
        if terms.whole_steps:
            self._ring[self._at - 1] += up  # the slot whose turn comes last
            self._at = (self._at + 1) % len(self._ring)
        elif stock_out:
            put_off = put_off + up
        else:
            due = due + up
        self._ring[self._at] += put_off
        sums = self._supplied(due, np.where(known, demand, 0.0))
        self.ready = self.ready + due
        return sums[0] * known, sums[1] * known, sums[2] * known, up * known

    def _supplied(self, due: Array, demand: Array) -> list[Array]:
        """Provisioned, idle and waiting GPU-hours of a step in which ``due`` nodes arrive late."""
        terms, sums = self.terms, [np.zeros(len(due)) for _ in range(3)]
        for nodes, part in ((self.ready, terms.late), (self.ready + due, 1.0 - terms.late)):
            if part:
                hours, spare = part * terms.step_s / 3600, nodes * terms.gpus_per_node - demand
                sums[0] += nodes * terms.gpus_per_node * hours
                sums[1] += np.maximum(spare, 0.0) * hours
                sums[2] += np.maximum(-spare, 0.0) * hours
        return sums


def replay(
    demand: Array, targets: Array, terms: Terms, first_nodes: int, stock_out: NDArray[np.bool_] | None = None
) -> Account:
    """Run fleets through a demand. ``demand``: (steps,), NaN in gaps; ``targets``: (steps, fleets) nodes.

    In a gap nothing is known and nothing counts, but fleets go on. ``first_nodes`` serve at the beginning.
    ``stock_out``: (steps,), True where no node arrives, whenever it was asked for.
    """
    running = Fleets(terms, np.full(targets.shape[1], float(first_nodes)))
    return walk(running, demand, targets, stock_out)


def walk(running: Fleets, demand: Array, targets: Array, stock_out: NDArray[np.bool_] | None = None) -> Account:
    """Let fleets go on through a demand; the arguments are those of ``replay``."""
    provisioned, idle, wait, adds = (np.zeros(targets.shape) for _ in range(4))
    for t in range(len(targets)):
        dry = stock_out is not None and bool(stock_out[t])
        provisioned[t], idle[t], wait[t], adds[t] = running.step(targets[t], demand[t], stock_out=dry)
    return Account(provisioned, idle, wait, adds, running.terms)


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
