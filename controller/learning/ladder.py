"""How far the learner may go now: off, shadow, advise, raise-only, full; up slowly, down at once.

It climbs one rung at a midnight after good days (with no patience: to the top at once), never above the ceiling that
the policy sets, and goes down by itself within the tick in which something is wrong (``controller.learning.demotions``
has the table). Some causes hold the learner down and then let it go back to where it was; the others cost it its rung,
and it climbs anew.

Pure and total: a state, this tick's readings, the policy's ceiling and the moment give the next state and what to tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from controller.core.canonical import plain
from controller.core.errors import InputError
from controller.core.policy import LearningMode
from controller.core.quantities import DAY_S, HOUR_S
from controller.core.reasons import Fact
from controller.learning.demotions import CAUSES, OF_CODE, STALE_S, Cause, Code
from controller.learning.gate import RULE, Verdict
from controller.learning.monitors import Monitors

RUNGS = tuple(LearningMode)
"""From the lowest to the highest."""
PATIENCE_DAYS = {LearningMode.SHADOW: 1, LearningMode.ADVISE: 1, LearningMode.RAISE_ONLY: 3}
"""Good days in a row on a rung before the next one."""
VERDICT_LASTS_S = 2 * DAY_S
"""A verdict holds for the day after its midnight; one nightly run may fail before the rule acts again."""
WHOLE_DAY_S = 22 * HOUR_S
"""A day without trouble counts from here on: the day of a clock change has 23 hours, a tick may come late."""
UNSEEN_S = DAY_S - WHOLE_DAY_S
"""A stretch without a step that a good day may hold; after a longer one nobody can say what kind of day it was."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A cause that is in force; ``well_since_s``: since when its reading has been well without a break."""

    code: Code
    begun_s: int
    well_since_s: int | None = None


@dataclass(frozen=True, slots=True)
class LadderState:
    """Where one pool's learner stands; integers and texts only.

    ``rung`` is in force, ``earned`` what it returns to once nothing holds it. ``chosen`` is the gate's. ``since_s``:
    when ``earned`` was reached, or the last hold or blind stretch ended if that was later; a good day begins there.
    ``judged_s``: the newest midnight whose verdict was taken in. ``seen_s``: the last step.
    """

    rung: LearningMode = LearningMode.OFF
    earned: LearningMode = LearningMode.OFF
    chosen: str = RULE
    good_days: int = 0
    since_s: int = 0
    judged_s: int | None = None
    seen_s: int | None = None
    holds: tuple[Hold, ...] = ()

    @property
    def acting(self) -> str:
        """Who sets the target: the gate's choice from raise-only on, else the rule."""
        return self.chosen if self.rung in (LearningMode.RAISE_ONLY, LearningMode.FULL) else RULE

    def to_plain(self) -> dict[str, Any]:
        """What JSON knows."""
        kept: dict[str, Any] = plain(self)
        return kept

    @classmethod
    def from_plain(cls, kept: Mapping[str, Any]) -> LadderState:
        """Read back what ``to_plain`` gave; ``InputError`` for anything else."""
        try:
            return cls(
                rung=LearningMode(kept["rung"]),
                earned=LearningMode(kept["earned"]),
                chosen=str(kept["chosen"]),
                good_days=int(kept["good_days"]),
                since_s=int(kept["since_s"]),
                judged_s=_moment(kept["judged_s"]),
                seen_s=_moment(kept["seen_s"]),
                holds=tuple(
                    Hold(OF_CODE[Code(one["code"])].code, int(one["begun_s"]), _moment(one["well_since_s"]))
                    for one in kept["holds"]
                ),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError.one("ladder", repr(error), "what LadderState.to_plain gave") from error


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened; ``rung`` and ``acting`` are those in force after the step."""

    at_s: int
    kind: str
    rung: str
    acting: str
    code: str
    facts: tuple[Fact, ...]
    sentence: str


_Told = tuple[str, str, tuple[Fact, ...], str]
"""Kind, code, facts and sentence of an event; the rest is known at the end of the step."""


def step(
    state: LadderState,
    seen: Monitors,
    ceiling: LearningMode,
    now_s: int,
    *,
    kill: bool = False,
    patience_days: int | None = None,
) -> tuple[LadderState, tuple[Event, ...]]:
    """One tick: to be taken before advice is asked for, since what is wrong must act in this tick.

    ``ceiling`` off or ``kill`` puts everything back to the beginning. ``patience_days``: good days on every rung, None
    for ``PATIENCE_DAYS``; 0 climbs to the ceiling in one step as soon as the verdict in force is on and nothing holds.
    Total: no reading raises.
    """
    if kill or ceiling is LearningMode.OFF:
        return _killed(state, now_s, Code.KILL_FLAG if kill else Code.MODE_OFF)
    told: list[_Told] = []
    after = _switched_on(_clocked(state, now_s), now_s, told)
    after = _held(after, seen, now_s, told)
    after = _under(after, ceiling, now_s, told)
    after = _expired(after, now_s, told)
    at_once = patience_days is not None and patience_days <= 0
    verdict = seen.verdict
    new = verdict is not None and (after.judged_s is None or verdict.midnight_s > after.judged_s)
    if verdict is not None and new and _in_force(verdict.midnight_s, now_s):
        after = _judged(after, verdict, told)
        if not at_once:
            after = _climbed(after, ceiling, now_s, patience_days, told)
    if at_once:
        after = _at_once(after, ceiling, now_s, told)
    after = replace(after, rung=_lowest(after.earned, *_limits(after)), seen_s=now_s)
    events = (Event(now_s, kind, after.rung, after.acting, code, facts, text) for kind, code, facts, text in told)
    return after, tuple(events)


def _killed(state: LadderState, now_s: int, code: Code) -> tuple[LadderState, tuple[Event, ...]]:
    # The newest midnight is remembered: switched on again at noon, last night's verdict must not count anew.
    off = LadderState(judged_s=state.judged_s, seen_s=now_s)
    if state.rung is LearningMode.OFF:
        return off, ()
    why = "the policy says off" if code is Code.MODE_OFF else "it was killed"
    facts: tuple[Fact, ...] = (("from", state.rung.value),)
    return off, (Event(now_s, "kill", off.rung, off.acting, code, facts, f"Learning is off: {why}. The rule acts."),)


def _clocked(state: LadderState, now_s: int) -> LadderState:
    """Make moments fit the clock: none lies ahead of it, and no good day reaches over a blind stretch."""
    blind = state.seen_s is not None and now_s - state.seen_s > UNSEEN_S
    holds = tuple(replace(hold, begun_s=min(hold.begun_s, now_s)) for hold in state.holds)
    return replace(state, since_s=now_s if blind else min(state.since_s, now_s), holds=holds)


def _switched_on(state: LadderState, now_s: int, told: list[_Told]) -> LadderState:
    if state.earned is not LearningMode.OFF:
        return state
    told.append(("recovery", Code.SWITCHED_ON, (), "Learning is on: it runs in shadow and is measured; the rule acts."))
    return replace(state, earned=LearningMode.SHADOW, since_s=now_s)


def _held(state: LadderState, seen: Monitors, now_s: int, told: list[_Told]) -> LadderState:
    """Begin, prolong and end holds; those that cost the rung take it."""
    before = {hold.code: hold for hold in state.holds}
    holds, earned = [], state.earned
    for cause in CAUSES:
        old = before.get(cause.code)
        new = _hold(cause, old, seen, now_s, state.seen_s)
        if new is not None:
            holds.append(new)
            if not cause.keeps_rung:
                earned = _lowest(earned, cause.leaves)
        if new is not None and old is None:
            limit: Fact = ("at_most", cause.leaves.value)
            text = f"Not above {cause.leaves.value}: {cause.why}."
            told.append(("demotion", cause.code, (_reading(cause, seen), limit), text))
        if new is None and old is not None:
            held: Fact = ("held_s", now_s - old.begun_s)
            text = f"No longer held at {cause.leaves.value}: {cause.again}."
            told.append(("recovery", cause.code, (_reading(cause, seen), held), text))
    # While anything is wrong, and at the moment when it ends, good days begin anew.
    disturbed = bool(holds or state.holds)
    return replace(
        state,
        holds=tuple(holds),
        earned=earned,
        since_s=now_s if disturbed else state.since_s,
        good_days=0 if disturbed else state.good_days,
    )


def _hold(cause: Cause, old: Hold | None, seen: Monitors, now_s: int, seen_s: int | None) -> Hold | None:
    if cause.bad(seen):
        return Hold(cause.code, old.begun_s if old else now_s)
    if old is None:
        return None
    if not cause.well(seen):
        return replace(old, well_since_s=None)
    unseen = cause.sampled and seen_s is not None and now_s - seen_s > STALE_S
    since = old.well_since_s
    # A clock that was set back begins the wait anew.
    if since is None or unseen or since > now_s:
        since = now_s
    return None if now_s - since >= cause.wait_s else replace(old, well_since_s=since)


def _under(state: LadderState, ceiling: LearningMode, now_s: int, told: list[_Told]) -> LadderState:
    """Down to the ceiling at once, and not back by itself when it is raised again."""
    if RUNGS.index(state.earned) <= RUNGS.index(ceiling):
        return state
    facts: tuple[Fact, ...] = (("at_most", ceiling.value), ("from", state.earned.value))
    told.append(("demotion", Code.CEILING, facts, f"Not above {ceiling.value}: the policy says so."))
    return replace(state, earned=ceiling, since_s=now_s, good_days=0)


def _expired(state: LadderState, now_s: int, told: list[_Told]) -> LadderState:
    """Nobody acts for ever on an old verdict, nor on one from a future that a clock has left again."""
    if state.judged_s is None or _in_force(state.judged_s, now_s):
        return state
    if state.chosen != RULE:
        facts: tuple[Fact, ...] = (("chosen", state.chosen), ("age_s", now_s - state.judged_s))
        text = f"The rule acts: the gate's last verdict, for {state.chosen}, is more than 2 days old."
        told.append(("gate", Code.VERDICT_EXPIRED, facts, text))
    return replace(state, chosen=RULE, judged_s=None, good_days=0)


def _in_force(midnight_s: int, now_s: int) -> bool:
    return 0 <= now_s - midnight_s <= VERDICT_LASTS_S


def _judged(state: LadderState, verdict: Verdict, told: list[_Told]) -> LadderState:
    """Take in a midnight: who is chosen, and whether the day that ended with it was good."""
    told.append(("gate", verdict.why, verdict.facts, verdict.sentence))
    good = verdict.on and not state.holds and verdict.midnight_s - state.since_s >= WHOLE_DAY_S
    return replace(
        state,
        judged_s=verdict.midnight_s,
        chosen=verdict.acting if verdict.on else RULE,
        good_days=state.good_days + 1 if good else 0,
    )


def _climbed(
    state: LadderState, ceiling: LearningMode, now_s: int, patience_days: int | None, told: list[_Told]
) -> LadderState:
    """One rung up at a midnight, after enough good days; a night without saving leaves none."""
    if state.earned is ceiling:
        return state
    needed = PATIENCE_DAYS[state.earned] if patience_days is None else patience_days
    if state.good_days < needed:
        return state
    rung = RUNGS[RUNGS.index(state.earned) + 1]
    days = "a good day" if state.good_days == 1 else f"{state.good_days} good days in a row"
    return _promoted(state, rung, now_s, f"Up to {rung.value}: {days}.", told)


def _at_once(state: LadderState, ceiling: LearningMode, now_s: int, told: list[_Told]) -> LadderState:
    """To the ceiling while the verdict in force is on: for demos, and for a history that the operator trusts."""
    if state.chosen == RULE or state.holds or state.earned is ceiling:
        return state
    return _promoted(state, ceiling, now_s, f"Up to {ceiling.value}: the policy asks for no good days.", told)


def _promoted(state: LadderState, rung: LearningMode, now_s: int, text: str, told: list[_Told]) -> LadderState:
    facts: tuple[Fact, ...] = (("from", state.earned.value), ("good_days", state.good_days))
    told.append(("promotion", Code.GOOD_DAYS, facts, text))
    return replace(state, earned=rung, since_s=now_s, good_days=0)


def _limits(state: LadderState) -> tuple[LearningMode, ...]:
    return tuple(OF_CODE[hold.code].leaves for hold in state.holds)


def _moment(value: Any) -> int | None:
    return None if value is None else int(value)


def _lowest(*rungs: LearningMode) -> LearningMode:
    return min(rungs, key=RUNGS.index)


def _reading(cause: Cause, seen: Monitors) -> Fact:
    value = cause.reading(seen)
    if value is None or not isfinite(cause.scale * value):
        return cause.unit, "unknown"
    return cause.unit, round(cause.scale * value)
