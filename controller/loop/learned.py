"""Headroom advice that has to earn its place: each night rule and shadows anew, each tick the ladder, then the advice.

Who acts is the ladder's word, what a learner wants is ``controller.learning.advise``'s; this module brings them the
record, and puts on record what they said. What cannot be recorded is not applied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Protocol

import numpy as np

from controller.core.actions import Decision
from controller.core.advice import Advice, PoolAdvice, RuleParameters
from controller.core.errors import InputError
from controller.core.forecast import TOTAL, Forecasts, SeriesForecast
from controller.core.policy import LearningMode, Policy, Pool
from controller.core.quantities import DAY_S, MILLI
from controller.core.reasons import ReasonCode
from controller.learning import advise, candidates, ladder, rule, shadows
from controller.learning.candidates import LEVELS_PERMILLE, NAMES
from controller.learning.demotions import Code
from controller.learning.fleet import Terms, replay
from controller.learning.gate import WINDOW_DAYS, Day, Shadow, Verdict, judge
from controller.learning.ladder import LadderState
from controller.learning.learner import Learner, Settled
from controller.learning.limits import Limits
from controller.learning.monitors import Watch
from controller.learning.shadows import LEARNER, MATERIAL, Shadows
from controller.learning.stay import Judged, Stay, judged_days
from controller.loop.demand import DemandRecorder
from controller.loop.nights import midnights
from controller.loop.ports import PolicySource
from controller.store.learning_records import LearningDay, LearningEvent, LearningOutcome, LearningTick, ModelFile
from forecaster.series import Panel
from forecaster.service import Rolling

LEAST_ROWS = 144
"""Half a day of 5-minute steps; less says nothing about a night, and the default rule serves."""
Walked = Callable[[str], tuple[int, Rolling] | None]
"""A pool's total as it was forecast over its last weeks, and the moment of the first row; None: not (yet)."""
_CLIPPED = (ReasonCode.CLIPPED_TO_ENVELOPE, ReasonCode.CLIPPED_TO_HEADROOM)


@dataclass(slots=True)
class Kept:
    """What is to be put on record together. ``states``: how learning stands in a pool now, by pool."""

    models: list[ModelFile] = field(default_factory=list)
    ticks: list[LearningTick] = field(default_factory=list)
    outcomes: list[LearningOutcome] = field(default_factory=list)
    days: list[LearningDay] = field(default_factory=list)
    events: list[LearningEvent] = field(default_factory=list)
    states: dict[str, dict[str, Any]] = field(default_factory=dict)


class Book(Protocol):
    """Where learning is kept."""

    def killed(self) -> bool:
        """Whether somebody has thrown the kill switch."""

    def state(self, pool: str) -> Mapping[str, Any] | None:
        """How learning stood in a pool when it was last kept."""

    def keep(self, kept: Kept) -> None:
        """Keep all of it durably. Raises ``RecordError``."""


@dataclass(frozen=True, slots=True)
class NoBook:
    """Keeps nothing: for replays whose results are their sums."""

    def killed(self) -> bool:
        """Nobody is there to do it."""
        return False

    def state(self, pool: str) -> Mapping[str, Any] | None:
        """Nothing was kept."""
        return None

    def keep(self, kept: Kept) -> None:
        """Nothing is."""


@dataclass(slots=True)
class _Standing:
    """One pool: its tuned rule and, where there is enough past, its learner with all that is watched about it."""

    tuned: RuleParameters
    ladder: LadderState = field(default_factory=LadderState)
    watch: Watch = field(default_factory=Watch)
    fed_s: int = 0
    learner: Learner | None = None
    verdict: Verdict | None = None
    judged: Judged | None = None
    stay: Stay | None = None
    age_s: int | None = None
    model: str = ""
    lived: dict[int, Settled] = field(default_factory=dict)
    tick_ids: dict[int, tuple[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one pool's learner wanted in the tick that is being decided."""

    inputs: advise.Inputs
    found: advise.Wanted
    row: int


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
        self._pools: dict[str, _Standing] = {}
        self._asked: dict[str, _Asked] = {}
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
            standing = self._pools.get(pool.name) or self._remembered(pool.name)
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

    def _remembered(self, pool: str) -> _Standing:
        """As it stood before a restart; another version's state is as none."""
        kept = self._book.state(pool)
        try:
            if kept is not None:
                return _Standing(
                    rule.DEFAULT,
                    LadderState.from_plain(kept["ladder"]),
                    Watch.from_plain(kept["watch"]),
                    int(kept.get("fed_s", 0)),
                    stay=Stay.from_plain(kept["stay"]) if kept.get("stay") else None,
                )
        except (InputError, KeyError, TypeError, ValueError):
            pass
        return _Standing(rule.DEFAULT)

    def _rebuild(self, pool: Pool, policy: Policy, standing: _Standing, total: Panel, now_s: int) -> None:
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
        self._judge(pool.name, standing, past, starts, rows, origin_s)
        standing.learner = Learner(
            pool.name, past, made, origin_s, standing.tuned, limits, standing.ladder.acting == LEARNER
        )

    def _judge(
        self, pool: str, standing: _Standing, past: Shadows, starts: list[int], rows: list[int], origin_s: int
    ) -> None:
        moments = dict(zip(rows, starts, strict=True))
        table = {name: shadows.days(past, name, rows, moments.__getitem__) for name in (*NAMES, LEARNER)}
        self._kept.days += [_day(self._cluster, pool, name, day) for name, days in table.items() for day in days]
        if starts:
            shadow, chosen = Shadow(LEARNER, table[LEARNER]), standing.ladder.chosen
            standing.verdict = judge([shadow], starts[-1], chosen, least_share=MATERIAL)
            _told_anew(standing, past, starts[-1], table[LEARNER][-WINDOW_DAYS:], origin_s)
        for day in table[LEARNER]:
            if day.day_s > standing.fed_s and day.known_steps:
                standing.fed_s = day.day_s
                standing.watch = standing.watch.day_over(-day.saving, day.cost_rule)
        self._compare(standing, past, starts, origin_s)

    def _compare(self, standing: _Standing, past: Shadows, starts: list[int], origin_s: int) -> None:
        """The account that was kept step by step beside a replay of the same targets on the demand now on record."""
        for begin, end in zip(starts, [*starts[1:], None], strict=True):
            lived = {
                (at - origin_s) // past.terms.step_s: step
                for at, step in sorted(standing.lived.items())
                if begin <= at and (end is None or at < end)
            }
            if end is not None and len(lived) >= LEAST_ROWS:
                paid = sum(step.hedge for step in lived.values())
                standing.watch = standing.watch.replayed(begin, paid, _again(past, lived))
        last = starts[-1] if starts else 0
        standing.lived = {at: step for at, step in standing.lived.items() if at >= last}

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
        self, pool: Pool, policy: Policy, standing: _Standing, now_s: int, forecasts: Forecasts, killed: bool
    ) -> PoolAdvice:
        plain = PoolAdvice(pool.name, rule=standing.tuned)
        learner, total = standing.learner, self._total(pool.name, now_s)
        forecast, standing.age_s = self._seen(pool.name, forecasts, total, now_s)
        if learner is not None:
            self._carry_on(standing, learner, total)
        elif standing.ladder.rung is LearningMode.OFF:
            return plain
        self._step(pool.name, policy, standing, now_s, killed)
        if learner is None or forecast is None or standing.ladder.rung is LearningMode.OFF:
            return plain
        learner.limits = Limits.of(pool, policy.learning, pool.gpus_per_node)
        inputs = learner.inputs(
            total.values[total.row(learner.origin_s) :, 0],
            self._demand_now(pool.name),
            forecast,
            acts=standing.ladder.acting == LEARNER,
            raise_only=standing.ladder.rung is LearningMode.RAISE_ONLY,
        )
        found, row = advise.wanted(inputs, learner.weights), learner.row_of(now_s)
        learner.decided(row, inputs, found)
        self._asked[pool.name] = _Asked(inputs, found, row)
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

    def _carry_on(self, standing: _Standing, learner: Learner, total: Panel) -> None:
        """Close the steps that are over: account, outcomes, coverage."""
        demand = total.values[total.row(learner.origin_s) :, 0]
        for step in learner.settle(demand, len(demand)):
            at_s = learner.origin_s + step.row * total.step_s
            if step.known:
                standing.lived[at_s] = step
            if standing.stay is not None:
                standing.stay = standing.stay.closed(at_s, step.rule - step.hedge)
            tick = standing.tick_ids.pop(step.row, None)
            if tick is not None and step.known:
                milli = (round(MILLI * value) for value in (step.rule, step.acted, step.acted - step.best))
                self._kept.outcomes.append(LearningOutcome(self._cluster, tick[0], learner.pool, tick[1], *milli))
        for due in learner.due(demand):
            at_s = learner.origin_s + due.at_row * total.step_s
            standing.watch = standing.watch.forecast_due(at_s, due.actual * MILLI, due.quantile)

    def _step(self, pool: str, policy: Policy, standing: _Standing, now_s: int, killed: bool) -> None:
        standing.ladder, events = ladder.step(
            standing.ladder,
            standing.watch.read(standing.age_s, loss_used=_loss_used(standing), verdict=standing.verdict),
            policy.learning.mode,
            now_s,
            kill=killed,
            patience_days=policy.learning.patience_days,
        )
        if standing.ladder.acting != LEARNER or standing.learner is None:
            standing.stay = None
        elif standing.stay is None:
            standing.stay = Stay.begun(now_s - now_s % standing.learner.terms.step_s)
        # An alarm is answered once it holds; it then counts anew, so that a second one within the hold is seen too.
        if any(hold.code is Code.COST and hold.well_since_s is None for hold in standing.ladder.holds):
            standing.watch = standing.watch.cost_alarmed()
        self._kept.events += [
            LearningEvent(self._cluster, pool, e.at_s, str(e.kind), e.rung, e.acting, str(e.code), e.facts, e.sentence)
            for e in events
        ]

    def recorded(self, tick_id: str, decision: Decision) -> None:
        """Put on record what was wanted in the tick of this id. Raises ``RecordError``."""
        kept, self._kept = self._kept, Kept()
        policy = self._policies.current()
        for pool, standing in self._pools.items():
            asked = self._asked.get(pool)
            if asked is not None and standing.learner is not None:
                self._note(kept, tick_id, decision, policy, standing, standing.learner, asked)
            kept.states[pool] = _state(standing)
        try:
            self._book.keep(kept)
        except Exception:
            # Nothing is lost: what could not be kept goes with the next tick (keys that are there stay as they are).
            self._kept = Kept(kept.models, kept.ticks, kept.outcomes, kept.days, kept.events)
            raise

    def _note(
        self,
        kept: Kept,
        tick_id: str,
        decision: Decision,
        policy: Policy,
        standing: _Standing,
        learner: Learner,
        asked: _Asked,
    ) -> None:
        fingerprint, body = learner.model
        if fingerprint != standing.model:
            kept.models.append(self._model_file(learner, decision.at_s, fingerprint, body))
            standing.model = fingerprint
        tick = _tick(self._cluster, tick_id, decision, policy, standing, asked, self._lead_of(learner.pool))
        kept.ticks.append(tick)
        standing.tick_ids.setdefault(asked.row, (tick_id, decision.at_s))
        standing.watch = standing.watch.ticked(decision.at_s, asked.inputs.acts and bool(tick.clipped))

    def _model_file(self, learner: Learner, at_s: int, fingerprint: str, body: bytes) -> ModelFile:
        made = ModelFile.of(
            body=body,
            cluster=self._cluster,
            pool=learner.pool,
            made_at_s=at_s,
            kind=advise.KIND,
            code_fingerprint=advise.code_fingerprint(),
            data_fingerprint=learner.data_fingerprint,
        )
        assert made.fingerprint == fingerprint
        return made


def _told_anew(standing: _Standing, past: Shadows, midnight_s: int, judged: Sequence[Day], origin_s: int) -> None:
    """The stay's account, and the days by which it is measured, from the replayed past."""
    step_s = past.terms.step_s
    savings = past.account.cost[:, NAMES.index(candidates.RULE)] - past.account.cost[:, -1]

    def row_of(at_s: int) -> int:
        return (at_s - origin_s) // step_s

    begins, costs = [row_of(day.day_s) for day in judged], [day.cost_rule for day in judged]
    standing.judged = judged_days(midnight_s, step_s, costs, begins, savings, DAY_S // step_s)
    if standing.stay is not None:
        standing.stay = standing.stay.told_anew(midnight_s, savings, row_of)


def _loss_used(standing: _Standing) -> float | None:
    """Of what may be lost in the stay; a learner that does not act loses nothing."""
    if standing.stay is None:
        return 0.0
    return standing.stay.used(standing.judged) if standing.judged is not None else None


def _again(past: Shadows, lived: Mapping[int, Settled]) -> float:
    """What the targets of some rows cost on the demand that is on record for them."""
    first, last = min(lived), max(lived)
    nodes = [lived[first].nodes]
    for row in range(first + 1, last + 1):
        nodes.append(lived[row].nodes if row in lived else nodes[-1])
    targets = np.array(nodes, dtype=np.float64)[:, None]
    return float(replay(past.demand[first : last + 1], targets, past.terms, nodes[0]).cost.sum())


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


def _day(cluster: str, pool: str, name: str, day: Day) -> LearningDay:
    cost, saving = round(MILLI * (day.cost_rule - day.saving)), round(MILLI * day.saving)
    return LearningDay(cluster, pool, day.day_s, name, cost, saving, day.known_steps)


def _state(standing: _Standing) -> dict[str, Any]:
    weights = [] if standing.learner is None else [int(weight) for weight in standing.learner.weights]
    return {
        "ladder": standing.ladder.to_plain(),
        "watch": standing.watch.to_plain(),
        "inputs_age_s": standing.age_s,
        "loss_used": _finite(_loss_used(standing)),
        "stay": standing.stay.to_plain() if standing.stay is not None else None,
        "weights": [list(pair) for pair in zip(NAMES, weights, strict=False)],
        "fed_s": standing.fed_s,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _tick(
    cluster: str, tick_id: str, decision: Decision, policy: Policy, standing: _Standing, asked: _Asked, lead_s: int
) -> LearningTick:
    inputs, found = asked.inputs, asked.found
    pool = next((one for one in decision.pools if one.pool == inputs.pool), None)
    ruled = int(found.asked[-1])
    notes = [note.code for note in decision.notes if note.pool == inputs.pool]
    # A raise-only learner that the rule lifts has not been clipped: it may not go lower, and knows it.
    clips = [code for code in notes if code in _CLIPPED and not (inputs.raise_only and code is _CLIPPED[0])]
    return LearningTick.of(
        inputs=inputs.to_bytes(),
        cluster=cluster,
        tick_id=tick_id,
        at_s=decision.at_s,
        pool=inputs.pool,
        ceiling=policy.learning.mode.value,
        rung=standing.ladder.rung.value,
        acting=standing.ladder.acting,
        demand_milli_gpus=inputs.demand_milli_gpus,
        lead_s=lead_s,
        quantiles=tuple(zip(LEVELS_PERMILLE, inputs.forecast[0], strict=True)),
        rule_nodes=ruled,
        candidates=tuple((name, int(nodes)) for name, nodes in zip(NAMES, found.asked, strict=True)),
        learner_nodes=found.nodes,
        target_nodes=pool.target_nodes if pool is not None else found.nodes,
        implied_permille=advise.implied_permille(inputs, found.nodes),
        move="raise" if found.nodes > ruled else "lower" if found.nodes < ruled else "keep",
        clipped=tuple(code.value for code in clips),
        model=inputs.model,
    )
