"""Shadow fleets: what every candidate, the rule and the hedge would have asked for and paid, exactly, on one past.

Nothing here acts. From these accounts come the hedge's weights, the gate's days and the baseline "learner" of the
benchmark; all at once, vectorised over fleets. ``controller.learning.learner`` takes the same steps one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from controller.learning import candidates, rule
from controller.learning import hedge as hedging
from controller.learning.candidates import NAMES, Nodes
from controller.learning.fleet import Account, Array, Fleets, Terms, seen, walk
from controller.learning.gate import LEAST_DAYS, RULE, WINDOW_DAYS, Day, Shadow, Verdict, judge
from controller.learning.hedge import Hedge, weighted
from controller.learning.limits import Limits
from controller.learning.stop import OUT_S, Stop
from forecaster.series import Panel
from forecaster.service import ALL, rolling

LEARNER = "hedge"
Mask = NDArray[np.bool_]
MATERIAL = 0.02
"""A saving below this share of the rule's cost is none: where jobs come in gangs, days that save a thousandth are
followed by one that loses five times the rule's cost (docs/designs/0009-materially-better.md). The stop's bar too."""
REFIT_DAYS = 3
"""The boosted expert of a replay is refitted every so many nights: a third of the time, and nothing lost."""


@dataclass(frozen=True, slots=True)
class Shadows:
    """One past. ``asked``: targets (steps, ``NAMES``); ``weights`` in force (steps, ``NAMES``); ``agreed``: (steps,).

    ``account``: costs by step of the fleets ``NAMES`` and, as the last one, the hedge. ``walked``: the candidates'
    positions. ``hedge`` and ``fleets`` (those of ``NAMES``, the hedge's) as they stand at the end, to go on from.
    """

    terms: Terms
    demand: Array
    walked: Nodes
    asked: Nodes
    weights: Nodes
    agreed: Nodes
    account: Account
    hedge: Hedge
    fleets: tuple[Fleets, Fleets]

    @property
    def ruled(self) -> Nodes:
        """The tuned rule's targets."""
        return self.asked[:, -1]


def forecast(total: Panel, lead_s: int) -> NDArray[np.int64]:
    """Forecasts of a total (a panel of one column) as they were made, in milli-GPUs: (rows, reaches, levels)."""
    made = rolling(
        total,
        windows=candidates.windows(lead_s),
        levels=candidates.LEVELS,
        experts=ALL,
        refit_boosted=REFIT_DAYS,
    )
    return candidates.whole_milli(made.values[:, 0])


def shadows(
    made: NDArray[np.int64],
    demand: Array,
    terms: Terms,
    ruled: Array,
    limits: Limits | None = None,
    stock_out: Mask | None = None,
) -> Shadows:
    """Replay a past: ``made`` as ``forecast`` gives it, ``demand`` (steps,) GPUs, ``ruled`` the rule's targets.

    ``stock_out``: (steps,), True where no node arrived, as recorded: what a fleet could not have is not promised.
    """
    bound = limits or Limits()
    now = candidates.whole_milli(seen(demand))
    wanted = candidates.nodes_of(now, terms.gpus_per_node)
    low, high = candidates.edges(made, now, terms.gpus_per_node)
    walked = candidates.positions(low, high, low[0])
    advised = bound.advised(candidates.targets(walked), made, wanted, terms.gpus_per_node)
    asked = np.column_stack([advised, bound.of_pool(ruled.astype(np.int64)[:, None], wanted)])
    first = float(ruled[0])
    mine, theirs = Fleets(terms, np.full(len(NAMES), first)), Fleets(terms, np.full(1, first))
    alone = walk(mine, demand, asked.astype(np.float64), stock_out)
    weights, hedge = weighted(alone.cost, terms.step_s)
    agreed = hedging.agreed(asked, weights)
    both = _beside(alone, walk(theirs, demand, agreed[:, None].astype(np.float64), stock_out))
    return Shadows(terms, demand, walked, asked, weights, agreed, both, hedge, (mine, theirs))


def _beside(one: Account, other: Account) -> Account:
    provisioned, idle, wait, adds = (
        np.column_stack([getattr(one, part), getattr(other, part)]) for part in ("provisioned", "idle", "wait", "adds")
    )
    return Account(provisioned, idle, wait, adds, one.terms)


def past_of(
    total: Panel,
    terms: Terms,
    night: int,
    made: NDArray[np.int64] | None = None,
    limits: Limits | None = None,
    stock_out: Mask | None = None,
) -> Shadows:
    """The shadows of a pool's total, the rule tuned every night on the weeks before it.

    ``night``: the row of one midnight; the others are whole days from it. ``made``: forecasts, if they exist already.
    ``stock_out``: (rows,), True where no node arrived, as recorded.
    """
    demand, day = total.values[:, 0], total.rows_a_day
    first = min(night % day or day, total.rows)
    ruled, _ = rule.tuned_nightly(demand, terms, first, day, stock_out)
    known = forecast(total, terms.lead_s) if made is None else made
    return shadows(known, demand, terms, ruled, limits, stock_out)


Costs = tuple[Array, Array]
"""GPU-hours by step of the hedge and of the rule, (steps,) both, where they are known better than as a flow's."""


def days(
    past: Shadows, name: str, midnights: list[int], time_of: Callable[[int], int], costs: Costs | None = None
) -> tuple[Day, ...]:
    """A fleet's days for the gate. ``midnights``: rows at which days begin, and the row at which the last one ends.

    Days that begin within the forecaster's first are left out; ``time_of`` tells a row's moment. ``costs``: of the
    fleet and of the rule, instead of the shadows' own.
    """
    column = len(NAMES) if name == LEARNER else NAMES.index(name)
    cost, ruled = costs or (past.account.cost[:, column], past.account.cost[:, NAMES.index(candidates.RULE)])
    known, saving = ~np.isnan(past.demand), ruled - cost
    return tuple(
        Day(
            time_of(begin),
            float(saving[begin:end].sum()),
            float(ruled[begin:end].sum()),
            int(known[begin:end].sum()),
            float(_by_hour(saving[begin:end], past.terms.step_s).min()),
        )
        for begin, end in pairwise(midnights)
        if begin * past.terms.step_s >= hedging.WARM_UP_S
    )


def _by_hour(values: Array, step_s: int) -> Array:
    """Sums of the hours of a day that begins with the first of these steps; the last may be short."""
    return np.add.reduceat(values, np.arange(0, len(values), hedging.UPDATE_S // step_s))


def gated(past: Shadows, total: Panel, start: int, costs: Costs | None = None) -> tuple[Nodes, tuple[Verdict, ...]]:
    """The hedge's targets in the nights in which the gate lets it act, else the rule's; from ``start`` on.

    Days are counted from ``start``, so that a judged day is one of the gate's. Within a day the hedge acts until its
    ``Stop``: looked at each hour, on the same ``costs`` as the gate, of the hours that are over. Where ``costs`` come
    from jobs, two days say nothing of a third: a gang that waits costs more than a day saves. There it takes a week.
    """
    day, out, verdicts = total.rows_a_day, past.ruled.copy(), []
    hedge, ruled = costs or (past.account.cost[:, -1], past.account.cost[:, NAMES.index(candidates.RULE)])
    saving, acting, saved, back = ruled - hedge, RULE, 0.0, start
    least = LEAST_DAYS if costs is None else WINDOW_DAYS
    for night in range(start, total.rows, day):
        midnights = list(range(night % day, night + 1, day))
        shadow = Shadow(LEARNER, days(past, LEARNER, midnights, total.time, costs))
        verdict = judge([shadow], total.time(night), acting, steps_a_day=day, least_share=MATERIAL, least_days=least)
        verdicts.append(verdict)
        acting = verdict.acting
        if not verdict.on or night < back:
            saved = 0.0
            continue
        stop = _stop(shadow, total, saving, saved)
        end, stop = _stay(stop, saving, night, min(night + day, total.rows), hedging.UPDATE_S // total.step_s)
        out[night:end] = past.agreed[night:end]
        saved, back = (0.0, night + OUT_S // total.step_s) if stop.out else (stop.saved, back)
    return out, tuple(verdicts)


def _stop(shadow: Shadow, total: Panel, saving: Array, saved: float) -> Stop:
    """A day's stop, by the days that the gate looked at."""
    judged = shadow.days[-WINDOW_DAYS:]
    begins = [total.row(one.day_s) for one in judged]
    by_hour = [_by_hour(saving[row : row + total.rows_a_day], total.step_s) for row in begins]
    return Stop.of([one.cost_rule for one in judged], by_hour, saved)


def _stay(stop: Stop, saving: Array, begin: int, end: int, hour: int) -> tuple[int, Stop]:
    """The row before which the hedge acts, of rows ``[begin, end)``, and the stop as it stands there."""
    for row in range(begin, end, hour):
        until = min(row + hour, end)
        stop = stop.after(float(saving[row:until].sum()))
        if stop.out:
            return until, stop
    return end, stop
