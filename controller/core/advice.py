"""What learning hands to the core: how much headroom to aim for. Advice moves within an envelope; off is ``Advice()``.

The rule's parameters are tuned by replay (``controller.learning.rule``); the defaults serve until there is history.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class HeadroomSource(StrEnum):
    """Who sets the headroom of a pool."""

    RULE = "rule"
    FORECAST = "forecast"
    LEARNER = "learner"


@dataclass(frozen=True, slots=True, order=True)
class RuleParameters:
    """The tuned rule: target = demand · (1 + buffer), held for ``hold_s`` (the most of the last ``hold_s``)."""

    buffer_permille: int = 100
    hold_s: int = 600


@dataclass(frozen=True, slots=True, order=True)
class PoolAdvice:
    """Advice for one pool.

    ``source`` FORECAST aims at the ``quantile_permille`` of the pool's total at the lead (None: what the wait weight
    implies) plus ``bias_milli_gpus``; LEARNER names the target in ``target_milli_gpus``. The rule's target is always
    computed beside it, as fallback and for the record.
    """

    pool: str
    source: HeadroomSource = HeadroomSource.RULE
    rule: RuleParameters = RuleParameters()
    quantile_permille: int | None = None
    window_s: int = 900
    hold_s: int = 0
    bias_milli_gpus: int = 0
    target_milli_gpus: int | None = None
    raise_only: bool = False
    model: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice for all pools; a pool without any follows the rule with its default parameters."""

    pools: tuple[PoolAdvice, ...] = ()

    def of(self, pool: str) -> PoolAdvice:
        """The advice for a pool, or the plain rule."""
        return next((advice for advice in self.pools if advice.pool == pool), PoolAdvice(pool))
