"""What watches the learner, against its limits, as people read it."""

from __future__ import annotations

from dataclasses import dataclass

from controller.core.reasons import duration_text
from controller.learning.demotions import (
    CAUSES,
    CLIPPED_LIMIT,
    COVERAGE_LOST,
    CUSUM_LIMIT,
    INFIDELITY_LIMIT,
    LOSS_LIMIT,
    STALE_S,
    Cause,
    Code,
)
from controller.learning.ladder import LadderState
from controller.learning.monitors import Monitors


@dataclass(frozen=True, slots=True)
class Reading:
    """One monitor. ``state``: ``fine``, ``over``, ``held`` (well again, not for long enough) or ``unknown``."""

    code: str
    what: str
    value: str
    limit: str
    state: str
    then: str


_WHAT = {
    Code.INPUTS: "age of the inputs",
    Code.COVERAGE: "demand at or below the forecast's 90 % quantile, last 3 days",
    Code.COST: "cost above the rule's, summed (CUSUM)",
    Code.LOSS: "lost against the rule since it acts, of 2 % of the rule's day",
    Code.CLIPPING: "targets changed by the shield, last day",
    Code.INFIDELITY: "replay off from what was paid, last 7 days",
}
_LIMIT = {
    Code.INPUTS: f"at most {duration_text(STALE_S)}",
    Code.COVERAGE: f"at least {COVERAGE_LOST:.0%}".replace("%", " %"),
    Code.COST: f"at most {CUSUM_LIMIT:g} standard deviations",
    Code.LOSS: f"at most {LOSS_LIMIT:.0%}".replace("%", " %"),
    Code.CLIPPING: f"at most {CLIPPED_LIMIT:.0%}".replace("%", " %"),
    Code.INFIDELITY: f"at most {INFIDELITY_LIMIT:.0%}".replace("%", " %"),
}


def readings(seen: Monitors | None, ladder: LadderState | None, *, age_known: bool) -> tuple[Reading, ...]:
    """All monitors; ``seen`` None: nothing is known of any. ``age_known``: whether the inputs' age was kept."""
    held = {hold.code for hold in ladder.holds} if ladder else set()
    return tuple(
        Reading(
            cause.code.value,
            _WHAT[cause.code],
            _value(cause, seen if age_known or cause.code is not Code.INPUTS else None),
            _LIMIT[cause.code],
            _state(cause, seen if age_known or cause.code is not Code.INPUTS else None, cause.code in held),
            _then(cause),
        )
        for cause in CAUSES
    )


def _state(cause: Cause, seen: Monitors | None, held: bool) -> str:
    if seen is not None and cause.bad(seen):
        return "over"
    if held:
        return "held"
    return "unknown" if seen is None or cause.reading(seen) is None else "fine"


def _value(cause: Cause, seen: Monitors | None) -> str:
    value = None if seen is None else cause.reading(seen)
    if value is None:
        return "none" if seen is not None and cause.bad(seen) else "–"
    if value != value or abs(value) == float("inf"):
        return "not a number"
    if cause.code is Code.INPUTS:
        return duration_text(round(value))
    return f"{value:.1f}" if cause.code is Code.COST else f"{100 * value:.1f} %"


def _then(cause: Cause) -> str:
    after = "then back where it was" if cause.keeps_rung else "then it climbs anew"
    return f"not above {cause.leaves.value} until well for {_wait(cause.wait_s)}; {after}"


def _wait(seconds: int) -> str:
    days = seconds // 86_400
    if not days:
        return "an hour" if seconds == 3600 else duration_text(seconds)
    return "a day" if days == 1 else f"{days} days"
