"""One pool's learner on a running cluster: the shadows of its past, carried on one step at a time.

Each night it is built anew from what was recorded; between nights it takes, step by step, exactly the steps of
``shadows.shadows``. A step is a row of the recorder's grid (five minutes). Within a row every tick may ask again with
newer inputs; the first answer of a row is the one that the shadow fleets follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from controller.core.advice import RuleParameters
from controller.core.quantities import MILLI
from controller.learning import advise
from controller.learning.advise import Inputs, Wanted
from controller.learning.candidates import LEVELS_PERMILLE, NAMES, RECENT, RULE, Nodes, Reach
from controller.learning.fleet import Array, nodes_for, seen
from controller.learning.limits import Limits
from controller.learning.shadows import Shadows

WATCHED_PERMILLE = 900
"""The level whose coverage is watched, of the window that people are shown."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A step that is over: the hedge's target, and what hedge, rule, who acted and the cheapest fleet paid (GPU-hours).

    ``acted`` is a fleet's account too: of the targets that were advised, as a flow.
    """

    row: int
    nodes: int
    known: bool
    hedge: float
    rule: float
    acted: float
    best: float


@dataclass(frozen=True, slots=True)
class Due:
    """A forecast whose window is over: the most that was wanted in it, and the quantile forecast (milli-GPUs)."""

    at_row: int
    actual: float
    quantile: int


class Learner:
    """A pool's live shadows. Rows count from ``origin_s``; ``row`` is the next one that has not been settled.

    ``acts``: whether the learner has been acting until now, else the rule has.
    """

    def __init__(
        self,
        pool: str,
        past: Shadows,
        made: NDArray[np.int64],
        origin_s: int,
        tuned: RuleParameters,
        limits: Limits,
        acts: bool = False,
    ) -> None:
        self.pool, self.terms, self.tuned, self.limits, self.origin_s = pool, past.terms, tuned, limits, origin_s
        self.row = len(past.demand)
        self._recent = [past.walked[t] for t in range(max(0, self.row - RECENT + 1), self.row)]
        self._hedge, (self._fleets, self._together) = past.hedge, past.fleets
        self._acting = self._together.only(0) if acts else self._fleets.only(NAMES.index(RULE))
        self._decided: tuple[int, Wanted, int] | None = None
        self._last = Wanted(past.walked[-1], past.asked[-1], int(past.agreed[-1]))
        self._acted = self._last.nodes if acts else int(self._last.asked[-1])
        self._first_due, self._last_due = Reach.QUARTER.window(self.terms.lead_s).rows(self.terms.step_s)
        watched = LEVELS_PERMILLE.index(WATCHED_PERMILLE)
        self._issued = {t: int(made[t, 0, watched]) for t in range(max(0, self.row - self._last_due), self.row)}
        self._data = sha256(past.demand.tobytes() + made.tobytes())
        self._model = self._made_model()

    @property
    def weights(self) -> Nodes:
        """Those in force, in the order of ``NAMES``."""
        return self._hedge.weights

    @property
    def model(self) -> tuple[str, bytes]:
        """Fingerprint and bytes of the model file in force."""
        return self._model

    @property
    def data_fingerprint(self) -> str:
        """Hash of the demand and the forecasts learned from."""
        return self._data.hexdigest()[:16]

    def _made_model(self) -> tuple[str, bytes]:
        body = advise.model_body(self.weights, self.data_fingerprint)
        return sha256(body).hexdigest()[:16], body

    def row_of(self, at_s: int) -> int:
        """The row in which a moment lies."""
        return (at_s - self.origin_s) // self.terms.step_s

    def settle(self, demand: Array, until: int) -> Iterator[Settled]:
        """Close the rows before ``until``. ``demand``: GPUs by row from ``origin_s`` on, NaN where unknown."""
        while self.row < until:
            if self._decided is not None and self._decided[0] == self.row:
                _, self._last, self._acted = self._decided
            self._recent = [*self._recent, self._last.positions][1 - RECENT :]
            value = float(demand[self.row]) if self.row < len(demand) else float("nan")
            yield self._closed(self._last.asked, self._last.nodes, self._acted, value)

    def _closed(self, asked: Nodes, nodes: int, acted: int, value: float) -> Settled:
        mine = self._cost(self._fleets.step(asked.astype(np.float64), value))
        both = self._cost(self._together.step(np.array([float(nodes)]), value))
        paid = self._cost(self._acting.step(np.array([float(acted)]), value))
        before = self.weights
        self._hedge.observe(mine)
        self._data.update(np.float64(value).tobytes())
        if not np.array_equal(before, self.weights):
            self._model = self._made_model()
        row = self.row
        self.row += 1
        costs = (float(both[0]), float(mine[NAMES.index(RULE)]), float(paid[0]), float(mine.min()))
        return Settled(row, nodes, not np.isnan(value), *costs)

    def _cost(self, step: tuple[Array, Array, Array, Array]) -> Array:
        _, idle, wait, adds = step
        return idle + self.terms.wait_weight * wait + self.terms.per_add * adds

    def due(self, demand: Array) -> Iterator[Due]:
        """Forecasts whose windows lie wholly in settled rows, each once. Windows with unknown demand say NaN."""
        for issued in sorted(self._issued):
            last = issued + self._last_due
            if last >= self.row:
                return
            quantile = self._issued.pop(issued)
            yield Due(last, float(demand[issued + self._first_due : last + 1].max()), quantile)

    def inputs(
        self, demand: Array, seen_milli_gpus: int, forecast: advise.Rows, acts: bool, raise_only: bool
    ) -> Inputs:
        """What the decision of now is computed from. ``demand``: GPUs by row, known before the row of now."""
        return Inputs(
            pool=self.pool,
            gpus_per_node=self.terms.gpus_per_node,
            demand_milli_gpus=seen_milli_gpus,
            forecast=forecast,
            recent=tuple(tuple(int(node) for node in row) for row in self._recent),
            rule=self.tuned,
            rule_nodes=self._ruled(demand, seen_milli_gpus),
            limits=self.limits,
            acts=acts,
            raise_only=raise_only,
            model=self._model[0],
        )

    def _ruled(self, demand: Array, seen_milli_gpus: int) -> int:
        """The rule's target at the row of now, as ``rule.targets`` has it."""
        steps = self.tuned.hold_s // self.terms.step_s
        known = seen(np.append(demand, np.nan))[-1 - steps :]
        peak = max(float(known.max()), seen_milli_gpus / MILLI)
        return int(
            nodes_for(np.array([peak * (1000 + self.tuned.buffer_permille) / 1000]), self.terms.gpus_per_node)[0]
        )

    def decided(self, row: int, inputs: Inputs, found: Wanted) -> None:
        """Take in what was wanted at a row; only the first answer of a row counts."""
        if row != self.row or (self._decided is not None and self._decided[0] == row):
            return
        self._decided = row, found, advise.acted(inputs, found)
        self._issued[row] = inputs.forecast[0][LEVELS_PERMILLE.index(WATCHED_PERMILLE)]
