"""A demand made ready to be walked through: what each decision may know, and where a fleet stands when one steps in.

An environment for outside agents must not know more than production does. Therefore everything that an observation
holds beside the fleet itself is made here, once, row by row from rows before it: the last known demand, the quantiles
as they were forecast then, the target that the rule tuned on the nights before names. numpy only: no agent, no
gymnasium.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from controller.core.errors import InputError
from controller.learning import rule
from controller.learning.fleet import Array, Fleets, Terms, nodes_for, seen
from forecaster.calendars import local_seconds
from forecaster.series import DAY_S, Panel
from forecaster.service import rolling
from forecaster.windows import Window

Row = NDArray[np.float32]
HISTORY = 12
"""Steps of recent demand in an observation: an hour of 5-minute steps."""
LEVELS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
LENGTHS_S = (300, 900, 3600)
CLOCK = ("day_sin", "day_cos", "week_sin", "week_cos")
MOST = 16.0
"""Amounts are in units of the training part's peak; what is above so many of them is cut off."""


@dataclass(frozen=True, slots=True)
class Course:
    """A demand of one pool and all that is known of it at each row.

    ``table``: (rows + 1, columns) float32, what a decision at the beginning of a row may know, named by ``columns``.
    ``ruled``: the tuned rule's targets by row, nodes. ``ready`` and ``coming``: a fleet that followed the rule until
    the row (see ``Fleets``). ``judge_from``: the first judged row; ``first``: the first row at which anything was
    learned. ``scale_gpus``: the unit of all amounts in the table.
    """

    demand: Array
    origin_s: int
    terms: Terms
    first: int
    judge_from: int
    rows_a_day: int
    most_nodes: int
    scale_gpus: float
    columns: tuple[str, ...]
    table: Row
    ruled: Array
    ready: Array
    coming: Array

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.demand)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of an observation: those of the table, then the fleet's."""
        return (*self.columns, "ready", *(f"coming_{i}" for i in range(self.terms.whole_steps + 1)))

    def fleets(self, rows: NDArray[np.int64]) -> Fleets:
        """Fleets that begin at these rows, where the rule would have left them."""
        return Fleets(self.terms, self.ready[rows], self.coming[rows].T)

    def observation(self, rows: NDArray[np.int64], fleets: Fleets) -> Row:
        """What decisions at the beginning of these rows know: (fleets, names)."""
        nodes = np.column_stack([fleets.ready, fleets.coming.T])
        mine = np.minimum(nodes * (self.terms.gpus_per_node / self.scale_gpus), MOST).astype(np.float32)
        return np.concatenate([self.table[rows], mine], axis=1)

    def bounds(self) -> tuple[Row, Row]:
        """The lowest and highest value of each column of an observation."""
        low = [-1.0 if name in CLOCK else 0.0 for name in self.names]
        high = [1.0 if name in CLOCK or name.startswith("known_") else MOST for name in self.names]
        return np.array(low, dtype=np.float32), np.array(high, dtype=np.float32)


def course(total: Panel, terms: Terms, judge_from: int, most_nodes: int | None = None) -> Course:
    """Make a course of a panel of one column. ``most_nodes`` None: what twice the training part's peak takes.

    Raises ``InputError`` where the training part has no demand beyond its first day: nothing could be learned on it.
    """
    if total.step_s != terms.step_s:
        raise InputError.one("step_s", terms.step_s, f"the panel's step, {total.step_s}")
    day, demand = total.rows_a_day, total.values[:, 0]
    trained = demand[day:judge_from]
    if not day < judge_from < total.rows or np.isnan(trained).all():
        raise InputError.one("judge_from", judge_from, f"a row after {day} and before {total.rows}, with known demand")
    peak = max(float(np.nanmax(demand[:judge_from])), float(terms.gpus_per_node))
    most = int(nodes_for(np.array([2 * peak]), terms.gpus_per_node)[0]) if most_nodes is None else most_nodes
    ruled, ready, coming = _ruled(demand, terms, judge_from, day)
    # The decision after the last row is observed too; a row that nobody knows stands for what would follow.
    padded = replace(total, values=np.vstack([total.values, np.full((1, 1), np.nan)]))
    columns, table = _table(padded, terms, ruled, peak)
    return Course(
        demand, total.origin_s, terms, day, judge_from, day, most, peak, columns, table, ruled[:-1], ready, coming
    )


def _ruled(demand: Array, terms: Terms, judge_from: int, day: int) -> tuple[Array, Array, Array]:
    """The rule's targets as production would have named them, and the standing of a fleet that followed them, by row.

    Until the judged part: the default rule on the first day, then tuned nightly. From ``judge_from`` on: the nights,
    the targets and the fleet of ``baselines.plan``, so that costs are comparable to the benchmark's.
    """
    padded = np.append(demand, np.nan)
    before, _ = rule.tuned_nightly(padded[:judge_from], terms, day, day)
    before[:day] = rule.targets(padded[:day], terms)[:, rule.GRID.index(rule.DEFAULT)]
    after, _ = rule.tuned_nightly(padded, terms, judge_from, day)
    standing = [_standings(demand[: len(t)], t, terms) for t in (before, after)]
    ready, coming = (np.concatenate([one[:judge_from], two[judge_from:]]) for one, two in zip(*standing, strict=True))
    return np.concatenate([before, after[judge_from:]]), ready, coming


def _standings(demand: Array, targets: Array, terms: Terms) -> tuple[Array, Array]:
    fleets = Fleets(terms, targets[:1])
    ready, coming = [], []
    for t in range(len(demand)):
        ready.append(fleets.ready[0])
        coming.append(fleets.coming[:, 0])
        fleets.step(targets[t : t + 1], demand[t])
    return np.array(ready), np.array(coming)


def _table(padded: Panel, terms: Terms, ruled: Array, scale: float) -> tuple[tuple[str, ...], Row]:
    demand = padded.values[:, 0]
    amounts: dict[str, Array] = {"demand": seen(demand), "rule": ruled * terms.gpus_per_node}
    flags: dict[str, Array] = {}
    for back in range(1, HISTORY + 1):
        past = np.concatenate([np.full(back, np.nan), demand[:-back]])
        amounts[f"past_{back}"] = np.nan_to_num(past)
        flags[f"known_{back}"] = (~np.isnan(past)).astype(np.float64)
    amounts |= _forecasts(padded, terms)
    cut = {name: np.clip(values / scale, 0.0, MOST) for name, values in amounts.items()}
    columns = cut | flags | _clock(padded)
    return tuple(columns), np.column_stack(list(columns.values())).astype(np.float32)


def _forecasts(padded: Panel, terms: Terms) -> dict[str, Array]:
    windows = [Window(terms.lead_s, length) for length in LENGTHS_S]
    made = rolling(padded, windows=windows, levels=LEVELS)
    return {
        quantile_name(length, level): made.values[:, 0, w, i]
        for w, length in enumerate(LENGTHS_S)
        for i, level in enumerate(LEVELS)
    }


def quantile_name(length_s: int, level: float) -> str:
    """The column of a quantile of the maximum demand over ``[lead, lead + length_s]``, as forecast then."""
    return f"q{round(100 * level)}_of_{length_s}s"


def _clock(padded: Panel) -> dict[str, Array]:
    at = local_seconds(padded)
    angles = (2 * np.pi * at / DAY_S, 2 * np.pi * at / (7 * DAY_S))
    values = [part(angle) for angle in angles for part in (np.sin, np.cos)]
    return dict(zip(CLOCK, values, strict=True))
