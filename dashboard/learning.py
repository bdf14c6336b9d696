"""How learning stands in a pool, put together from what it left in the store: who acts, why, what it would save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from controller.core.errors import InputError
from controller.core.policy import LearningMode
from controller.core.quantities import DAY_S, MILLI
from controller.learning.demotions import OF_CODE
from controller.learning.gate import LEAST_DAYS, RULE, STEPS_A_DAY, Day, Shadow, Standing, Why, judge
from controller.learning.hedge import PARTS
from controller.learning.ladder import PATIENCE_DAYS, VERDICT_LASTS_S, LadderState
from controller.learning.monitors import Monitors, Watch
from controller.store import LearningDay, LearningEvent, LearningTick, kill_key, learning_key
from dashboard.candidate_words import HEDGE, LEARNERS, WORDS, who
from dashboard.context import Look
from dashboard.monitor_words import Reading, readings

GATED = "gated"
KILLED = "Nothing, while it is killed: `tidegate learning revive` takes the flag back, and it begins anew in shadow."
SHOWN_DAYS = 30
MOST_EVENTS = 200
MOST_WEIGHTS = 8
_RUNG_WORDS = {
    LearningMode.OFF: "nothing is measured",
    LearningMode.SHADOW: "it is measured and changes nothing",
    LearningMode.ADVISE: "its targets are recorded as advice and change nothing",
    LearningMode.RAISE_ONLY: "it may raise the target, never lower it below the rule's",
    LearningMode.FULL: "it may raise and lower the target",
}
_PASSED = (Why.SAVES.value, Why.INCUMBENT_STAYS.value)


@dataclass(frozen=True, slots=True)
class Weight:
    """A candidate in the hedge: ``percent`` of all weight, ``nodes`` its target now, ``standing`` its last days."""

    name: str
    words: str
    percent: float
    nodes: int | None
    standing: Standing | None


@dataclass(frozen=True, slots=True)
class Kept:
    """What the loop keeps of how learning stands; None where it has not (yet), or another version has."""

    ladder: LadderState | None = None
    seen: Monitors | None = None
    age_known: bool = False
    weights: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PoolLearning:
    """One pool.

    ``phase``: ``off``, ``killed``, ``new`` (on, nothing was recorded yet), ``young`` (too few days for a verdict) or
    ``judged``. ``standing`` is that of ``learner`` over the days that the gate would judge now.
    """

    pool: str
    phase: str
    ceiling: LearningMode
    rung: LearningMode
    acting: str
    learner: str
    standing: Standing | None
    climb: str
    last: LearningEvent | None
    verdict: LearningEvent | None
    changes: tuple[LearningEvent, ...]
    verdicts: tuple[LearningEvent, ...]
    weights: tuple[Weight, ...]
    other_weights: int
    readings: tuple[Reading, ...]
    gpu_hour_micro_usd: int

    @property
    def headline(self) -> str:
        """Who acts, as a sentence."""
        name = who(self.acting)
        return f"{name[:1].upper()}{name[1:]} sets the target of {self.pool}."

    @property
    def rung_words(self) -> str:
        """What the rung lets the learner do."""
        return _RUNG_WORDS[self.rung]

    @property
    def has_history(self) -> bool:
        """Whether anything at all was recorded."""
        return bool(self.changes or self.verdicts or self.standing or self.phase == "young")

    @property
    def held(self) -> bool:
        """Whether a monitor holds the learner down."""
        return any(one.state in ("over", "held") for one in self.readings)

    def micro_usd(self, gpu_hours: float) -> int:
        """What GPU-hours cost here; 0 where nothing has a price."""
        return round(gpu_hours * self.gpu_hour_micro_usd)


def pools(look: Look) -> tuple[str, ...]:
    """The pools of the newest tick."""
    return tuple(pool.pool for pool in look.now.pools) if look.now else ()


def pool_learning(look: Look, pool: str) -> PoolLearning:
    """Read how learning stands in a pool."""
    newest = look.store.learning_ticks(look.cluster, pool, limit=1)
    tick = newest[0] if newest else None
    kept = read_kept(look.store.kv_get(learning_key(look.cluster, pool), {}))
    events = look.store.learning_events(look.cluster, pool, limit=MOST_EVENTS)
    changes = tuple(one for one in events if one.kind != "gate")
    verdicts = tuple(one for one in events if one.kind == "gate")
    table = standings(recent_days(look, pool))
    ceiling = LearningMode(look.recorded.learning.get("mode", tick.ceiling if tick else LearningMode.OFF))
    killed = bool(look.store.kv_get(kill_key(look.cluster), False))
    rung, acting = _in_force(ceiling, killed, kept, tick, events[0] if events else None)
    learner = _learner(table, tick)
    verdict = verdicts[0] if verdicts else None
    standing = as_judged(verdict, learner) or table.get(learner)
    weights = _weights(kept, tick, table)
    return PoolLearning(
        pool=pool,
        phase=_phase(ceiling, killed, tick, events, standing),
        ceiling=ceiling,
        rung=rung,
        acting=acting,
        learner=learner,
        standing=standing,
        climb=KILLED if killed else climb(kept.ladder, rung, ceiling, verdict, standing, look.recorded.learning),
        last=changes[0] if changes else None,
        verdict=verdict,
        changes=changes,
        verdicts=verdicts,
        weights=weights[:MOST_WEIGHTS],
        other_weights=max(0, len(weights) - MOST_WEIGHTS),
        readings=readings(kept.seen, kept.ladder, age_known=kept.age_known),
        gpu_hour_micro_usd=look.recorded.gpu_hour_micro_usd.get(pool, 0),
    )


def read_kept(kept: Any) -> Kept:
    """Read what is under ``learning_key``; what another version wrote is as good as absent."""
    try:
        ladder = LadderState.from_plain(kept["ladder"]) if "ladder" in kept else None
        watch = Watch.from_plain(kept["watch"]) if "watch" in kept else None
        weights = tuple((str(name), int(parts)) for name, parts in kept.get("weights", ()))
        age_s, loss_used = (
            None if kept.get(key) is None else float(kept[key]) for key in ("inputs_age_s", "loss_used")
        )
    except (InputError, TypeError, ValueError, AttributeError):
        return Kept()
    return Kept(ladder, watch.read(age_s, loss_used=loss_used) if watch else None, "inputs_age_s" in kept, weights)


def recent_days(look: Look, pool: str) -> list[LearningDay]:
    """The days that a gate may look at, and one more."""
    now_s = look.now.tick.at_s if look.now else 0
    return look.store.learning_days(look.cluster, pool, now_s - 9 * DAY_S, now_s + 1)


def standings(days: Sequence[LearningDay]) -> dict[str, Standing]:
    """Each fleet's mean saving and its standard error as the gate would judge it after the newest of the days."""
    if not days:
        return {}
    by_name: dict[str, list[Day]] = {}
    for one in days:
        ruled = (one.saving_milli + one.cost_milli) / MILLI
        by_name.setdefault(one.name, []).append(Day(one.day_s, one.saving_milli / MILLI, ruled, one.steps))
    midnight_s = max(one.day_s for one in days) + DAY_S
    shadows = [Shadow(name, tuple(known)) for name, known in sorted(by_name.items())]
    return {row.name: row for row in judge(shadows, midnight_s).table}


def as_judged(verdict: LearningEvent | None, learner: str) -> Standing | None:
    """The learner's mean and standard error as the gate told them, from days replayed anew in that night."""
    if verdict is None:
        return None
    facts = dict(verdict.facts)
    about = facts.get("best") if facts.get("acting") == RULE else facts.get("acting")
    mean, error, days = (facts.get(name) for name in ("mean_milli", "standard_error_milli", "days"))
    if about != learner or not (isinstance(mean, int) and isinstance(error, int) and isinstance(days, int)):
        return None
    return Standing(learner, mean / MILLI, error / MILLI, days, Why.SAVES)


def is_judged(day: LearningDay) -> bool:
    """Whether enough of the day is known to count."""
    return 2 * day.steps >= STEPS_A_DAY


def _in_force(
    ceiling: LearningMode, killed: bool, kept: Kept, tick: LearningTick | None, event: LearningEvent | None
) -> tuple[LearningMode, str]:
    """Rung and who acts: by the policy, by what the loop keeps, else by the newest row."""
    if ceiling is LearningMode.OFF or killed:
        return LearningMode.OFF, RULE
    if kept.ladder is not None:
        return kept.ladder.rung, kept.ladder.acting
    row = tick or event
    return (LearningMode(row.rung), row.acting) if row else (LearningMode.OFF, RULE)


def _learner(table: Mapping[str, Standing], tick: LearningTick | None) -> str:
    """Whose saving is shown: who acts if it is no rule, else the learner that has days."""
    if tick is not None and tick.acting != RULE and tick.acting in table:
        return tick.acting
    return next((name for name in (*LEARNERS, *table) if name in table and name != RULE), HEDGE)


def _phase(
    ceiling: LearningMode,
    killed: bool,
    tick: LearningTick | None,
    events: Sequence[LearningEvent],
    standing: Standing | None,
) -> str:
    if ceiling is LearningMode.OFF:
        return "off"
    if killed:
        return "killed"
    if standing is not None and standing.days >= LEAST_DAYS:
        return "judged"
    return "young" if tick or events or standing else "new"


def climb(
    ladder: LadderState | None,
    rung: LearningMode,
    ceiling: LearningMode,
    verdict: LearningEvent | None,
    standing: Standing | None,
    policy: Mapping[str, Any],
) -> str:
    """What is missing for the next rung, in a sentence."""
    earned = ladder.earned if ladder else rung
    if ceiling is LearningMode.OFF:
        return "The policy says off: set learning.mode to shadow to have it measured, which changes nothing else."
    if ladder and ladder.holds:
        cause = OF_CODE[ladder.holds[0].code]
        return f"It is held at {cause.leaves.value} or below: {cause.why}."
    if earned is ceiling:
        full = ceiling is LearningMode.FULL
        return "It is at the top." if full else f"The policy's learning.mode, {ceiling.value}, allows no more."
    known = standing.days if standing else 0
    if known < LEAST_DAYS:
        return f"The first verdict comes at the midnight after two full days; {known} of 2 known so far."
    if verdict is None or verdict.code not in _PASSED:
        return (
            "The gate must find that it saves: mean saving less one standard error above 2 % of what the rule costs, "
            "and no hour or day of the last four weeks may have lost too much."
        )
    if earned is LearningMode.OFF:
        return "It begins in shadow with the next tick."
    patience = policy.get("patience_days")
    needed = PATIENCE_DAYS[earned] if patience is None else int(patience)
    if needed <= 0:
        return "Nothing: the policy asks for no good days, and it climbs with the next tick."
    done = ladder.good_days if ladder else 0
    left = max(needed - done, 1)
    return f"{left} more good {'day' if left == 1 else 'days'} on this rung ({done} of {needed} in a row so far)."


def _weights(kept: Kept, tick: LearningTick | None, table: Mapping[str, Standing]) -> tuple[Weight, ...]:
    nodes = dict(tick.candidates) if tick else {}
    if tick:
        nodes[RULE] = tick.rule_nodes
    heaviest = sorted(kept.weights, key=lambda one: (-one[1], one[0]))
    whole = sum(parts for _, parts in heaviest) or PARTS
    return tuple(
        Weight(name, WORDS.get(name, ""), 100 * parts / whole, nodes.get(name), table.get(name))
        for name, parts in heaviest
    )


@dataclass(frozen=True, slots=True)
class Saved:
    """One fleet's savings by day: ``(day, milli-GPU-hours, whether the day counts)``, oldest first."""

    name: str
    days: tuple[tuple[int, int, bool], ...]


def savings(days: Sequence[LearningDay], verdicts: Sequence[LearningEvent]) -> tuple[Saved, ...]:
    """What the learners saved by day, and what whom the gate chose for the day saved (nothing where it chose the rule).

    ``verdicts``: the gate's, newest first.
    """
    by_name: dict[str, dict[int, LearningDay]] = {}
    for one in days:
        by_name.setdefault(one.name, {})[one.day_s] = one
    found = [
        Saved(name, tuple((day_s, one.saving_milli, is_judged(one)) for day_s, one in by_name[name].items()))
        for name in (*LEARNERS, GATED)
        if name in by_name
    ]
    if GATED in by_name:
        return tuple(found)
    gated = []
    for day_s in sorted({one.day_s for one in days}):
        chosen = chosen_for(day_s, verdicts)
        row = by_name.get(chosen, {}).get(day_s)
        if chosen == RULE:
            gated.append((day_s, 0, any(is_judged(one) for one in days if one.day_s == day_s)))
        elif row is not None:
            gated.append((day_s, row.saving_milli, is_judged(row)))
    return (*found, Saved(GATED, tuple(gated))) if gated else tuple(found)


def chosen_for(day_s: int, verdicts: Sequence[LearningEvent]) -> str:
    """Whom the gate let act on a day. ``verdicts`` newest first; one is taken in soon after the day's midnight."""
    verdict = next((one for one in verdicts if one.at_s < day_s + DAY_S // 2), None)
    if verdict is None or day_s - verdict.at_s > VERDICT_LASTS_S or verdict.code not in _PASSED:
        return RULE
    return str(dict(verdict.facts).get("acting", RULE))


def saving_text(standing: Standing) -> str:
    """Mean and standard error, GPU-hours a day."""
    error = f" ± {standing.standard_error:,.1f}" if isfinite(standing.standard_error) else ""
    return f"{standing.mean:+,.1f}{error}" if isfinite(standing.mean) else "–"
