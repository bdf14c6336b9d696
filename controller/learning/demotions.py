"""What can be wrong with a learner, as a table: how far it may still go, when it begins, when it is over.

Every test is written so that a NaN fails it: ``not reading <= limit`` begins a hold, only ``reading <= limit`` ends it.
None means that too little was seen to say: it begins nothing, and ends nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from controller.core.policy import LearningMode
from controller.core.quantities import DAY_S, HOUR_S
from controller.learning.monitors import Monitors

STALE_S = 900
"""Inputs older than this (three steps of the forecaster's grid) are no inputs."""
COVERAGE_LOST = 0.80
COVERAGE_REGAINED = 0.85
"""At a nominal 0.90; apart, so that a coverage near the limit does not switch to and fro."""
CUSUM_LIMIT = 5.0
"""h of Page's CUSUM: with k = 0.5 one false alarm in some 900 independent periods without a shift, 10 periods to notice
one of a standard deviation (Montgomery, Introduction to Statistical Quality Control, ch. 9)."""
LOSS_LIMIT = 1.0
"""Of what may be lost in a stay (``controller.learning.stop``)."""
CLIPPED_LIMIT = 0.01
INFIDELITY_LIMIT = 0.05


class Code(StrEnum):
    """What a ladder's event is about; the first six are causes of a demotion."""

    INPUTS = "INPUTS"
    COVERAGE = "COVERAGE"
    COST = "COST"
    LOSS = "LOSS"
    CLIPPING = "CLIPPING"
    INFIDELITY = "INFIDELITY"
    CEILING = "CEILING"
    VERDICT_EXPIRED = "VERDICT_EXPIRED"
    GOOD_DAYS = "GOOD_DAYS"
    SWITCHED_ON = "SWITCHED_ON"
    MODE_OFF = "MODE_OFF"
    KILL_FLAG = "KILL_FLAG"


@dataclass(frozen=True, slots=True)
class Cause:
    """One row of the table.

    ``leaves``: the highest rung while it lasts. ``keeps_rung``: afterwards the learner is back where it was, because
    nothing said that its choices were bad; else it climbs anew from ``leaves``. ``wait_s``: how long the reading must
    have been well. ``unit``, ``scale``: how an event keeps the reading, as a whole number. ``sampled``: the reading is
    about this moment only, so that time in which nobody looked counts as nothing (the others are about days). ``why``
    and ``again`` end the sentences for people.
    """

    code: Code
    leaves: LearningMode
    keeps_rung: bool
    wait_s: int
    bad: Callable[[Monitors], bool]
    well: Callable[[Monitors], bool]
    reading: Callable[[Monitors], float | None]
    unit: str
    why: str
    again: str
    scale: int = 1000
    sampled: bool = False


def _inputs_well(seen: Monitors) -> bool:
    # Two clocks may differ by seconds, so a small negative age is one.
    return seen.inputs_finite and seen.inputs_age_s is not None and abs(seen.inputs_age_s) <= STALE_S


def _above(value: float | None, limit: float) -> bool:
    return value is not None and not value <= limit


def _within(value: float | None, limit: float) -> bool:
    return value is not None and value <= limit


CAUSES = (
    Cause(
        code=Code.INPUTS,
        leaves=LearningMode.SHADOW,
        keeps_rung=True,
        wait_s=HOUR_S,
        bad=lambda seen: not _inputs_well(seen),
        well=_inputs_well,
        reading=lambda seen: seen.inputs_age_s,
        unit="inputs_age_s",
        why="its inputs are stale or not numbers",
        again="its inputs were fine for an hour",
        scale=1,
        sampled=True,
    ),
    Cause(
        code=Code.COVERAGE,
        leaves=LearningMode.ADVISE,
        keeps_rung=True,
        wait_s=DAY_S,
        bad=lambda seen: seen.coverage is not None and not seen.coverage >= COVERAGE_LOST,
        well=lambda seen: seen.coverage is not None and seen.coverage >= COVERAGE_REGAINED,
        reading=lambda seen: seen.coverage,
        unit="coverage_permille",
        why="the forecast's q .9 held in less than 80 % of the last 3 days",
        again="the forecast's q .9 was back at 85 % or more for a day",
    ),
    Cause(
        code=Code.COST,
        leaves=LearningMode.SHADOW,
        keeps_rung=False,
        wait_s=7 * DAY_S,
        bad=lambda seen: _above(seen.cost_cusum, CUSUM_LIMIT),
        well=lambda seen: _within(seen.cost_cusum, CUSUM_LIMIT),
        reading=lambda seen: seen.cost_cusum,
        unit="cusum_milli",
        why="it has cost more than the rule for too long",
        again="seven days have passed since it cost too much",
    ),
    Cause(
        code=Code.LOSS,
        leaves=LearningMode.SHADOW,
        keeps_rung=False,
        wait_s=7 * DAY_S,
        bad=lambda seen: _above(seen.loss_used, LOSS_LIMIT),
        well=lambda seen: _within(seen.loss_used, LOSS_LIMIT),
        reading=lambda seen: seen.loss_used,
        unit="loss_used_permille",
        why="since it acts it has lost more than 2 % of what the rule costs in a day",
        again="seven days have passed since it lost too much",
    ),
    Cause(
        code=Code.CLIPPING,
        leaves=LearningMode.ADVISE,
        keeps_rung=False,
        wait_s=DAY_S,
        bad=lambda seen: _above(seen.clipped_share, CLIPPED_LIMIT),
        well=lambda seen: _within(seen.clipped_share, CLIPPED_LIMIT),
        reading=lambda seen: seen.clipped_share,
        unit="clipped_permille",
        why="the shield changed more than 1 % of the last day's targets",
        again="the shield changed 1 % of its targets or fewer for a day",
    ),
    Cause(
        code=Code.INFIDELITY,
        leaves=LearningMode.SHADOW,
        keeps_rung=False,
        wait_s=DAY_S,
        bad=lambda seen: _above(seen.infidelity, INFIDELITY_LIMIT),
        well=lambda seen: _within(seen.infidelity, INFIDELITY_LIMIT),
        reading=lambda seen: seen.infidelity,
        unit="infidelity_permille",
        why="the replay that judges it is more than 5 % off what was paid",
        again="the replay that judges it was within 5 % of what was paid for a day",
    ),
)
OF_CODE = {cause.code: cause for cause in CAUSES}
