"""Headroom advice that has to earn its place: each night rule and shadows anew, each tick the ladder, then the advice.

Who acts is the ladder's word, what a learner wants is ``controller.learning.advise``'s; this module brings them the
record, and puts on record (``learning_book``) what they said. What cannot be recorded is not applied.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from controller.core.actions import Decision
from controller.core.advice import Advice, PoolAdvice, RuleParameters
from controller.core.forecast import TOTAL, Forecasts, SeriesForecast
from controller.core.policy import LearningMode, Policy, Pool
from controller.core.quantities import MILLI
from controller.learning import advise, candidates, rule, shadows
from controller.learning.candidates import LEVELS_PERMILLE, NAMES
from controller.learning.fleet import Terms
from controller.learning.learner import Learner
from controller.learning.limits import Limits
from controller.learning.shadows import LEARNER
from controller.loop.demand import DemandRecorder
from controller.loop.learning_book import (
    Asked,
    Book,
    Kept,
    NoBook,
    day_row,
    event_row,
    model_row,
    outcome_row,
    tick_row,
)
from controller.loop.nights import midnights
from controller.loop.ports import PolicySource
from controller.loop.standing import LEAST_ROWS, Standing
from forecaster.series import Panel
from forecaster.service import Rolling

Walked = Callable[[str], tuple[int, Rolling] | None]
"""A pool's total as it was forecast over its last weeks, and the moment of the first row; None: not (yet)."""


class LearnedAdvice:
    """An ``Advisor`` over recorded demand. ``lead_of``: a pool's lead in seconds; ``walked``: see ``Walked``."""

    def __init__(
        self,
        cluster: str,
        demand: DemandRecorder,
        policies: PolicySource,
        lead_of: Callable[[str], int],
        walked: Walked,
        book: Book | None = None,
    ) -> None:
        self._cluster, self._demand, self._policies = cluster, demand, policies
        self._lead_of, self._walked, self._book = lead_of, walked, book or NoBook()
        self._pools: dict[str, Standing] = {}
        self._asked: dict[str, Asked] = {}
        self._kept = Kept()

    def tune(self, now_s: int) -> None:
        """Learn anew from what was observed before ``now_s``; to be called after the forecaster's fit."""
        policy = self._policies.current()
        for pool in policy.pools:
            if pool.name not in self._demand.pools:
                continue
            total = self._total(pool.name, now_s)
            if np.count_nonzero(~np.isnan(total.values)) < LEAST_ROWS:
                continue
            standing = self._pools.get(pool.name) or Standing.remembered(self._book.state(pool.name))
            self._pools[pool.name] = standing
            standing.tuned = _tuned(total, self._terms(pool))
            if policy.learning.mode is LearningMode.OFF:
                standing.learner = standing.verdict = None
            else:
                self._rebuild(pool, policy, standing, total, now_s)

    def _total(self, pool: str, now_s: int) -> Panel:
        panel = self._demand.panel(pool)
        row = max(0, panel.row(now_s))
        return Panel((TOTAL,), panel.origin_s, panel.step_s, panel.timezone, panel.values[:row, -1:])

    def _terms(self, pool: Pool) -> Terms:
        return Terms(pool.gpus_per_node, self._lead_of(pool.name), pool.wait_weight, self._demand.step_s)

    def _rebuild(self, pool: Pool, policy: Policy, standing: Standing, total: Panel, now_s: int) -> None:
        """Replay the shadows on the last weeks, judge them at the last midnight, go on from their end."""
        walked, terms = self._walked(pool.name), self._terms(pool)
        if walked is None or walked[1].windows != candidates.windows(terms.lead_s):
            standing.learner = None
            return
        origin_s, made = walked[0], candidates.whole_milli(walked[1].values[:, 0])
        first = total.row(origin_s)
        demand = total.values[first : first + len(made), 0]
        starts = midnights(origin_s, now_s, policy.timezone)
        rows = [-((origin_s - at) // terms.step_s) for at in starts]
        day = total.rows_a_day
        begin = min((rows[0] if rows else 0) % day or day, len(demand))
        ruled, _ = rule.tuned_nightly(demand, terms, begin, day)
        limits = Limits.of(pool, policy.learning, pool.gpus_per_node)
        past = shadows.shadows(made, demand, terms, ruled, limits)
        moments = dict(zip(rows, starts, strict=True))
        table = {name: shadows.days(past, name, rows, moments.__getitem__) for name in (*NAMES, LEARNER)}
        self._kept.days += [day_row(self._cluster, pool.name, name, day) for name in table for day in table[name]]
        standing.judge(past, table[LEARNER], starts, origin_s)
        standing.learner = Learner(pool.name, past, made, origin_s, standing.tuned, limits, standing.acts)

    def advice(self, now_s: int, forecasts: Forecasts) -> Advice:
        """Step every pool's ladder, then say what its acting policy wants."""
        policy, killed = self._policies.current(), self._book.killed()
        self._asked = {}
        out = []
        for pool in policy.pools:
            standing = self._pools.get(pool.name)
            if standing is not None:
                out.append(self._of_pool(pool, policy, standing, now_s, forecasts, killed))
        return Advice(tuple(sorted(out)))

    def _of_pool(
        self, pool: Pool, policy: Policy, standing: Standing, now_s: int, forecasts: Forecasts, killed: bool
    ) -> PoolAdvice:
        plain = PoolAdvice(pool.name, rule=standing.tuned)
        learner, total = standing.learner, self._total(pool.name, now_s)
        forecast, standing.age_s = self._seen(pool.name, forecasts, total, now_s)
        if learner is not None:
            self._carry_on(standing, learner, total)
        elif standing.ladder.rung is LearningMode.OFF:
            return plain
        events = standing.step(policy.learning, now_s, killed)
        self._kept.events += [event_row(self._cluster, pool.name, event) for event in events]
        if learner is None or forecast is None or standing.ladder.rung is LearningMode.OFF:
            return plain
        learner.limits = Limits.of(pool, policy.learning, pool.gpus_per_node)
        inputs = learner.inputs(
            total.values[total.row(learner.origin_s) :, 0],
            self._demand_now(pool.name),
            forecast,
            acts=standing.acts,
            raise_only=standing.ladder.rung is LearningMode.RAISE_ONLY,
        )
        found, row = advise.wanted(inputs, learner.weights), learner.row_of(now_s)
        learner.decided(row, inputs, found)
        self._asked[pool.name] = Asked(inputs, found, row, learner.terms.lead_s)
        return advise.advice(inputs, learner.weights)

    def _demand_now(self, pool: str) -> int:
        known = self._demand.panel(pool).values[:, -1]
        known = known[~np.isnan(known)]
        return int(candidates.whole_milli(known[-1:])[0]) if len(known) else 0

    def _seen(self, pool: str, forecasts: Forecasts, total: Panel, now_s: int) -> tuple[advise.Rows | None, int | None]:
        """The forecast as the learner reads it, and the age of the older of forecast and demand."""
        series = forecasts.of(pool, TOTAL)
        known = np.flatnonzero(~np.isnan(total.values[:, 0]))
        forecast = None if series is None else _matrix(series, self._lead_of(pool))
        if series is None or forecast is None or not len(known):
            return None, None
        demand_age = now_s - total.time(int(known[-1]) + 1)
        return forecast, max(now_s - series.issued_at_s, demand_age, key=abs)

    def _carry_on(self, standing: Standing, learner: Learner, total: Panel) -> None:
        """Close the steps that are over: account, outcomes, coverage."""
        demand = total.values[total.row(learner.origin_s) :, 0]
        for step in learner.settle(demand, len(demand)):
            at_s = learner.origin_s + step.row * total.step_s
            standing.closed(at_s, step)
            tick = standing.tick_ids.pop(step.row, None)
            if tick is not None and step.known:
                self._kept.outcomes.append(outcome_row(self._cluster, learner.pool, *tick, step))
        for due in learner.due(demand):
            at_s = learner.origin_s + due.at_row * total.step_s
            standing.watch = standing.watch.forecast_due(at_s, due.actual * MILLI, due.quantile)

    def recorded(self, tick_id: str, decision: Decision) -> None:
        """Put on record what was wanted in the tick of this id. Raises ``RecordError``."""
        kept, self._kept = self._kept, Kept()
        for pool, standing in self._pools.items():
            asked = self._asked.get(pool)
            if asked is not None and standing.learner is not None:
                self._note(kept, tick_id, decision, standing, standing.learner, asked)
            kept.states[pool] = standing.to_plain()
        try:
            self._book.keep(kept)
        except Exception:
            # Nothing is lost: what could not be kept goes with the next tick (keys that are there stay as they are).
            self._kept = Kept(kept.models, kept.ticks, kept.outcomes, kept.days, kept.events)
            raise

    def _note(
        self, kept: Kept, tick_id: str, decision: Decision, standing: Standing, learner: Learner, asked: Asked
    ) -> None:
        fingerprint, _ = learner.model
        if fingerprint != standing.model:
            kept.models.append(model_row(self._cluster, learner, decision.at_s))
            standing.model = fingerprint
        ceiling = self._policies.current().learning.mode.value
        tick = tick_row(self._cluster, tick_id, decision, ceiling, standing.ladder, asked)
        kept.ticks.append(tick)
        standing.tick_ids.setdefault(asked.row, (tick_id, decision.at_s))
        standing.watch = standing.watch.ticked(decision.at_s, asked.inputs.acts and bool(tick.clipped))


def _tuned(total: Panel, terms: Terms) -> RuleParameters:
    # The night to choose for begins after the last row: one unknown row stands for it.
    padded = np.append(total.values[:, 0], np.nan)
    return rule.tuned_nightly(padded, terms, total.rows, total.rows_a_day)[1][0]


def _matrix(series: SeriesForecast, lead_s: int) -> advise.Rows | None:
    """A total's forecast as ``Inputs`` has it; None where it has other windows or levels."""
    by_reach = {(window.start_s, window.end_s): window for window in series.windows}
    rows = []
    for wanted in candidates.windows(lead_s):
        window = by_reach.get((wanted.lead_s, wanted.lead_s + wanted.length_s))
        if window is None or window.levels_permille != LEVELS_PERMILLE:
            return None
        rows.append(window.milli_gpus)
    return tuple(rows)
