"""The hedge: candidates weighted by what each would have cost, and the fleet that they agree on.

Weight ∝ exp(-η · regret / scale), the exponential weights of Vovk (1990) and Littlestone and Warmuth (1994), over
losses that fade with a half-life of four days: a pool changes, and a candidate that was right in spring must not decide
in autumn (Herbster and Warmuth 1998 reach the same end by sharing). The action is the weighted mean of the candidates'
targets: cost is close to convex in the number of nodes, so the mean costs less than the mean of their costs, and no two
near equals take turns.

Losses are those of shadow fleets: exact, of all candidates, whoever acted; so nothing is explored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from controller.core.quantities import DAY_S, HOUR_S
from controller.learning.candidates import Nodes
from controller.learning.fleet import Array

ETA = 8.0
HALF_LIFE_S = 4 * DAY_S
UPDATE_S = HOUR_S
"""Losses are taken in by the hour, so that one step's luck moves nobody."""
WARM_UP_S = DAY_S
"""A forecaster's first day is not held against its candidates: it had nothing to learn from."""
PARTS = 1_000_000
"""Weights are whole millionths: two machines that differ in the last digit of an exponential still agree."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Faded losses of the candidates: ``faded`` (candidates,) GPU-hours, and ``days`` in which they were lost."""

    faded: Array
    days: float = 0.0

    @classmethod
    def none(cls, candidates: int) -> Losses:
        """Nothing was lost yet."""
        return cls(np.zeros(candidates))

    def after(self, costs: Array, span_s: int) -> Losses:
        """Take in what each candidate cost (candidates,) in the last ``span_s`` seconds."""
        fade = 0.5 ** (span_s / HALF_LIFE_S)
        return Losses(self.faded * fade + costs, self.days * fade + span_s / DAY_S)

    def weights(self) -> Nodes:
        """Weights in millionths, at least one of them above zero; all alike before anything was lost."""
        scale = float(np.median(self.faded)) / self.days if self.days else 0.0
        if scale <= 0.0:
            return np.full(len(self.faded), PARTS // len(self.faded), dtype=np.int64)
        raw = np.exp(-ETA * (self.faded - self.faded.min()) / scale)
        parts: Nodes = np.rint(raw / raw.sum() * PARTS).astype(np.int64)
        return parts


def agreed(targets: Nodes, weights: Nodes) -> Nodes:
    """The weighted mean of targets (..., candidates) in whole nodes, halves up."""
    whole = weights.sum(axis=-1)
    nodes: Nodes = (2 * (targets * weights).sum(axis=-1) + whole) // (2 * whole)
    return nodes


class Hedge:
    """The weights in force, step after step from the first of a past on: ``weights`` (candidates,), ``rows`` so far."""

    def __init__(self, candidates: int, step_s: int) -> None:
        self.losses, self.rows = Losses.none(candidates), 0
        self.weights = self.losses.weights()
        self._hour, self._step_s = np.zeros(candidates), step_s

    def observe(self, costs: Array) -> None:
        """Take in what a step cost each candidate (candidates,); weights move when an hour is full."""
        self._hour = self._hour + costs
        self.rows += 1
        if self.rows * self._step_s % UPDATE_S:
            return
        if self.rows * self._step_s > WARM_UP_S:
            self.losses = self.losses.after(self._hour, UPDATE_S)
            self.weights = self.losses.weights()
        self._hour = np.zeros(len(costs))


def weighted(costs: Array, step_s: int) -> tuple[Nodes, Hedge]:
    """The weights in force at each step of a past, (steps, candidates), and the hedge as it stands at its end.

    ``costs``: (steps, candidates). Row t rests on the steps before t only.
    """
    hedge = Hedge(costs.shape[1], step_s)
    out = np.empty(costs.shape, dtype=np.int64)
    for t, row in enumerate(costs):
        out[t] = hedge.weights
        hedge.observe(row)
    return out, hedge
