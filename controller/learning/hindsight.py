"""The hindsight learner: a recorded past tells what every action would have cost, so what to do is a regression.

Demand does not depend on the fleet, so one trace tells what any fleet would have cost on it (hindsight learning for
MDPs with exogenous inputs: Sinclair et al., ICML 2023). An action is the number of nodes that a pool should have,
serving or coming. Its label is the exact cost of naming it now, holding it until it has taken effect and ``HELD_S``
longer, and being optimal from then on; the rest is backward dynamic programming (``controller.learning.optimum``).
Regression trees predict by how much an action is dearer than a reference, the hedge's target, and the learner leaves
the reference where they are sure.

Labels that know the future flatter whoever decides late: the optimum orders just in time and never holds a node for
safety. A long hold after the action takes some of that back. What little data does to such a learner, and the means
against it, are constants here: costs are compared to a reference on the same future, inputs are in units of the pool's
own level (so that pools can be put together), the predicted cost is a high quantile, actions are near the reference and
nearer while data is short, and history is used again at other scales and hours. What it is worth is in
docs/designs/0008-hindsight.md: beside the hedge next to nothing, alone often much less. Nothing uses it by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from controller.core.quantities import DAY_S, HOUR_S, MILLI
from controller.learning import candidates, fleet, optimum, trees
from controller.learning.candidates import LEVELS_PERMILLE, Edge, Nodes, Reach
from controller.learning.fleet import Array, Terms, held, nodes_for, seen
from controller.learning.trees import TreeFile, Trees

LEAST_DAYS = 14
"""Below that the hedge alone is the learner."""
HISTORY_DAYS = 28
HELD_S = HOUR_S
"""How long an action is held, once it has taken effect, before its label's optimum takes over."""
CAREFUL = 0.75
"""The quantile of the extra cost that is predicted: an action must pay in three of four cases alike."""
MARGIN_H = 0.01
"""An action must be expected to save so many hours of the pool's mean demand; less is a tie, and ties stay."""
REACH_SHARE, REACH_DAYS = 0.10, 28
"""Actions reach this share of the pool's level from the reference, with less than ``REACH_DAYS`` of data less far."""
STEPS_EACH_WAY = 3
SCALES = (0.7, 1.0, 1.4)
SHIFTS_S = (-HOUR_S, 0, HOUR_S)
MOST_ROWS = 120_000
ROOM = 1.3
"""Labels are told up to so many times the nodes that were ever wanted."""
TREES = 80
LEVEL_DAYS = 7

EDGES = tuple(
    Edge(permille, reach)
    for reach, levels in {
        Reach.QUARTER: (200, 500, 800),
        Reach.HALF: (500,),
        Reach.HOUR: (300, 500, 800),
        Reach.WITHIN_1H: (500, 900),
        Reach.WITHIN_2H: (200, 500, 800),
    }.items()
    for permille in levels
)
BACKS_S = (300, 900, HOUR_S, 3 * HOUR_S)
PEAKS_S = (HOUR_S, 3 * HOUR_S)
INPUTS = (
    *(f"{edge} - reference" for edge in EDGES),
    "demand - reference",
    *(f"demand - demand {back // 60}m ago" for back in BACKS_S),
    *(f"peak of {back // 60}m - demand" for back in PEAKS_S),
    "node",
    "day sine",
    "day cosine",
    "position - reference",
    "action - reference",
    "implied quantile",
)
"""All in units of the pool's level but the last two of the day, and the quantile."""


class Move(StrEnum):
    """What an action does to the fleet, for people."""

    RAISE = "raise"
    KEEP = "keep"
    LOWER = "lower"


@dataclass(frozen=True, slots=True)
class ToGo:
    """What actions would have cost: exact labels of one past. ``rows`` decisions have one; later ones lack a future."""

    terms: Terms
    rows: int
    _sums: Array
    _after: Array
    _lead: int
    _held: int

    @classmethod
    def of(cls, demand: Array, terms: Terms, most_nodes: int, held_s: int) -> ToGo:
        """Labels of ``demand`` (steps,) GPUs, NaN where nothing counts, for up to ``most_nodes``.

        As in ``optimum``, a node that arrives inside a step is counted from the step's beginning. ``held_s`` is a step
        at least: what is asked for later than now cannot serve earlier.
        """
        lead, steps = -(-terms.lead_s // terms.step_s), max(1, held_s // terms.step_s)
        spare = np.arange(most_nodes + 1) * terms.gpus_per_node - np.nan_to_num(demand)[:, None]
        stage = np.maximum(spare, 0.0) + terms.wait_weight * np.maximum(-spare, 0.0)
        stage = np.where(np.isnan(demand)[:, None], 0.0, stage) * (terms.step_s / 3600)
        sums = np.concatenate([np.zeros((1, most_nodes + 1)), np.cumsum(stage, axis=0)])
        after = optimum.solve(demand, terms, 0, most_nodes).to_go
        return cls(terms, max(0, len(demand) - lead - steps + 1), sums, after, lead, steps)

    def cost(self, rows: Nodes, nodes: Nodes, action: Nodes) -> Array:
        """GPU-hours from ``rows`` on, with so many ``nodes`` serving and none coming, if ``action`` is named there."""
        arrives, free = rows + self._lead, rows + self._lead + self._held
        before = np.minimum(nodes, action)
        cost = self._sums[arrives, before] - self._sums[rows, before]
        cost += self._sums[free, action] - self._sums[arrives, action] + self._after[free, action]
        return np.asarray(cost + self.terms.per_add * np.maximum(action - nodes, 0))

    def regret(self, rows: Nodes, nodes: Nodes, action: Nodes) -> Array:
        """The same, less the cost of the best action there is."""
        every = range(self._sums.shape[1])
        best = np.min([self.cost(rows, nodes, np.full(len(rows), a)) for a in every], axis=0)
        return np.asarray(self.cost(rows, nodes, action) - best)


@dataclass(frozen=True, slots=True)
class Past:
    """What was seen of a pool, by step. ``forecast``: milli-GPUs (steps, reaches, levels), as made before each step.

    ``reference``: nodes (steps,), the hedge's targets. ``second_of_day``: local, at the beginning of each step.
    """

    terms: Terms
    demand: Array
    forecast: NDArray[np.int64]
    reference: Nodes
    second_of_day: NDArray[np.int64]

    def between(self, first: int, stop: int) -> Past:
        """The steps ``[first, stop)``."""
        cut = slice(max(0, first), stop)
        return Past(self.terms, self.demand[cut], self.forecast[cut], self.reference[cut], self.second_of_day[cut])

    def scaled(self, factor: float) -> Past:
        """The same past of a larger or smaller pool."""
        forecast = np.ceil(self.forecast * factor - 1e-6).astype(np.int64)
        reference = np.rint(self.reference * factor).astype(np.int64)
        return Past(self.terms, self.demand * factor, forecast, reference, self.second_of_day)

    @property
    def days(self) -> float:
        """Days in which the demand was known."""
        return float((~np.isnan(self.demand)).sum()) * self.terms.step_s / DAY_S


@dataclass(frozen=True, slots=True)
class States:
    """A past as inputs: ``inputs`` (steps, those that no action changes), ``level`` in nodes (steps,), forecasts."""

    inputs: Array
    level: Array
    reference: Nodes
    ahead: Array

    @classmethod
    def of(cls, past: Past) -> States:
        """Row t rests on the demand before step t, and on what was forecast then."""
        size, steps = past.terms.gpus_per_node, np.arange(len(past.demand))
        now = seen(past.demand) / size
        level = _level(now, LEVEL_DAYS * DAY_S // past.terms.step_s)
        nodes = past.forecast / (size * MILLI)
        places = [(list(Reach).index(e.reach), LEVELS_PERMILLE.index(e.permille)) for e in EDGES]
        columns = [nodes[:, r, k] - past.reference for r, k in places] + [now - past.reference]
        columns += [now - now[np.maximum(steps - back // past.terms.step_s, 0)] for back in BACKS_S]
        columns += [held(now, back // past.terms.step_s) - now for back in PEAKS_S] + [np.ones(len(now))]
        turn = 2 * np.pi * past.second_of_day / DAY_S
        inputs = np.column_stack([np.stack(columns, axis=1) / level[:, None], np.sin(turn), np.cos(turn)])
        return cls(inputs, level, past.reference, nodes[:, list(Reach).index(Reach.WITHIN_1H)])

    def rows(self, steps: Nodes, position: Nodes, action: Nodes) -> Array:
        """The inputs of some decisions: in ``steps``, from ``position``, to ``action``; all (rows,)."""
        level, reference = self.level[steps], self.reference[steps]
        place = [(position - reference) / level, (action - reference) / level]
        return np.column_stack([self.inputs[steps], *place, implied(self.ahead[steps], action.astype(np.float64))])


def _level(now: Array, steps: int) -> Array:
    """The mean of the last ``steps``, at least half a node."""
    sums = np.concatenate([[0.0], np.cumsum(now)])
    last = np.arange(1, len(now) + 1)
    first = np.maximum(0, last - steps)
    return np.asarray(np.maximum((sums[last] - sums[first]) / (last - first), 0.5))


def implied(ahead: Array, nodes: Array) -> Array:
    """At which quantile of a forecast (rows, levels) some nodes (rows,) lie; linear between levels, 0 and 1 outside."""
    levels = np.array(LEVELS_PERMILLE) / 1000
    below = (ahead <= nodes[:, None]).sum(axis=1)
    at, every = np.clip(below, 1, len(levels) - 1), np.arange(len(nodes))
    low, high = ahead[every, at - 1], ahead[every, at]
    part = np.clip((nodes - low) / np.maximum(high - low, 1e-9), 0.0, 1.0)
    between = levels[at - 1] + part * (levels[at] - levels[at - 1])
    return np.asarray(np.where(below == 0, 0.0, np.where(below == len(levels), 1.0, between)))


def offsets(level: float, days: float) -> Nodes:
    """Actions to consider, in nodes from the reference, ascending, 0 among them: the nearer, the less data there is."""
    most = max(1.0, level * REACH_SHARE * min(1.0, days / REACH_DAYS))
    steps = np.rint(most * np.arange(1, STEPS_EACH_WAY + 1) / STEPS_EACH_WAY).astype(np.int64)
    out: Nodes = np.unique(np.concatenate([-steps, [0], steps]))
    return out


def fit(pasts: Sequence[Past], seed: int = 0) -> TreeFile | None:
    """Fit on the last weeks of a pool (the first) and of pools like it; None while the pool has too little data.

    Positions are drawn near the reference: a learner that only saw its teacher's would not know its own.
    """
    if not pasts or pasts[0].days < LEAST_DAYS:
        return None
    if any(past.terms != pasts[0].terms for past in pasts):
        raise ValueError("pools that are put together have the same nodes, lead and prices")
    rng, turns = np.random.default_rng(seed), [(past, scale) for past in pasts for scale in SCALES]
    parts = [_examples(past.scaled(scale), MOST_ROWS // len(turns), rng) for past, scale in turns]
    rows, extra = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if not len(rows):
        return None
    model = HistGradientBoostingRegressor(
        loss="quantile",
        quantile=CAREFUL,
        max_iter=TREES,
        learning_rate=0.06,
        max_leaf_nodes=12,
        min_samples_leaf=max(50, len(rows) // 200),
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
    )
    # One thread, as in forecaster.models.boosted: OpenMP's threads spin for each other on a busy machine.
    with threadpool_limits(limits=1, user_api="openmp"):
        model.fit(rows, extra)
    code = trees.code_fingerprint(__file__, trees.__file__, optimum.__file__, fleet.__file__, candidates.__file__)
    return TreeFile(Trees.of(model, INPUTS), code, trees.data_fingerprint(rows, extra))


def _examples(past: Past, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Drawn decisions of a past: inputs, and the extra cost over the reference in hours of the pool's level."""
    usable = _usable(past)
    if not len(usable):
        return np.zeros((0, len(INPUTS))), np.zeros(0)
    states, size = States.of(past), past.terms.gpus_per_node
    peak = nodes_for(np.array([np.nanmax(past.demand)]), size)[0]
    most = int(max(peak, past.reference.max()) * ROOM) + 1
    to_go = ToGo.of(past.demand, past.terms, most, HELD_S)
    steps = rng.choice(usable[usable < to_go.rows], count)
    choices = offsets(float(np.median(states.level)), past.days)
    away = rng.choice(choices, count) * rng.integers(0, 2, count)
    position, target = np.clip(past.reference[steps - 1] + away, 0, most), past.reference[steps]
    action = np.clip(target + rng.choice(choices[choices != 0], count), 0, most)
    extra = to_go.cost(steps, position, action) - to_go.cost(steps, position, target)
    rows = states.rows(steps, position, action)
    _shift(rows, rng.choice(SHIFTS_S, count))
    return rows, np.asarray(extra / (states.level[steps] * size))


def _usable(past: Past) -> Nodes:
    """Steps whose demand is known, but for a forecaster's first day and the last hours, whose future is short."""
    a_day, short = DAY_S // past.terms.step_s, (past.terms.lead_s + HELD_S + HOUR_S) // past.terms.step_s
    known = np.flatnonzero(~np.isnan(past.demand))
    out: Nodes = known[(known >= a_day) & (known < len(past.demand) - short)]
    return out


def _shift(rows: Array, later_s: Nodes) -> None:
    """Turn the clock of some inputs, in place."""
    sine, cosine = (INPUTS.index(name) for name in ("day sine", "day cosine"))
    turn = 2 * np.pi * later_s / DAY_S
    one, two = rows[:, sine].copy(), rows[:, cosine].copy()
    rows[:, sine] = one * np.cos(turn) + two * np.sin(turn)
    rows[:, cosine] = two * np.cos(turn) - one * np.sin(turn)


@dataclass(frozen=True, slots=True)
class Advice:
    """What the learner would have, nodes; its quantile of the coming hour's maximum; the extra cost it predicts."""

    nodes: int
    move: Move
    implied_permille: int
    extra_gpu_h: float


def advise(model: Trees, states: States, step: int, position: int, days: float, gpus_per_node: int) -> Advice:
    """The action that is predicted to be cheapest, or the reference where none is by more than the margin."""
    reference = int(states.reference[step])
    choices = offsets(float(states.level[step]), days)
    action: Nodes = np.maximum(reference + choices, 0)
    rows = states.rows(np.full(len(action), step), np.full(len(action), position), action)
    extra = np.where(choices == 0, 0.0, model.predict(rows))
    best = int(np.argmin(extra))
    if extra[best] >= -MARGIN_H:
        best = int(np.flatnonzero(choices == 0)[0])
    nodes = int(action[best])
    move = Move.RAISE if nodes > position else Move.LOWER if nodes < position else Move.KEEP
    hours = float(extra[best] * states.level[step] * gpus_per_node)
    return Advice(nodes, move, round(1000 * float(rows[best, -1])), hours)


def advised(past: Past, night: int, others: Sequence[Past] = (), refit_nights: int = 1) -> Nodes:
    """What the learner would have asked for, (steps,), fitted in every ``refit_nights``-th night on what was known.

    ``night``: the row of one midnight. ``others``: pools like it, on the same steps. Before a model, the reference.
    """
    day, out, states = DAY_S // past.terms.step_s, past.reference.copy(), States.of(past)
    file: TreeFile | None = None
    for nth, begin in enumerate(range(night % day, len(out), day)):
        weeks = [one.between(begin - HISTORY_DAYS * day, begin) for one in (past, *others)]
        if file is None or nth % refit_nights == 0:
            file = fit(weeks)
        if file is None:
            continue
        for t in range(begin, min(begin + day, len(out))):
            position = int(out[max(0, t - 1)])
            out[t] = advise(file.trees, states, t, position, weeks[0].days, past.terms.gpus_per_node).nodes
    return out
