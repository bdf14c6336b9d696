"""What is watched while a learner acts: cost against the rule, coverage, clipping, and whether the replay is true.

Small frozen sums that take in one observation at a time and can be put away as a plain dict, so that a restart goes on
where it stopped. They only measure; ``controller.learning.ladder`` has the thresholds. A reading is None where too
little was seen to say, and NaN where something that should be a number is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, isfinite, isnan, nan, sqrt
from typing import Any

from controller.core.errors import InputError
from controller.core.quantities import DAY_S, HOUR_S
from controller.learning.gate import Verdict, is_cost

DRIFT = 0.5
"""k: half the shift, in standard deviations, that is to be found soon (Page 1954; Montgomery, ch. 9)."""
WARM_UP = 5
"""Periods before the spread of the regret is known at all; a learner that may act has had more than that in shadow."""
MEMORY = 56
"""Periods over which the spread is taken: eight weeks of days, so that a pool that grew is judged by what it is now."""
LEAST_SPREAD = 0.01
"""The spread is never taken to be below this share of the rule's cost: a learner that copied the rule for weeks and
then differed by a minute has not failed."""
MOST = 10.0
"""Standard deviations that one period counts at most, and all together: enough to alarm at once, little enough to be
lived down."""


@dataclass(frozen=True, slots=True)
class Cusum:
    """One-sided CUSUM of regret against the rule (Page 1954): ``sum = max(0, sum + regret / s.d. - DRIFT)``, to MOST.

    One observation is one period, best a day: hours of one day are not independent, and an autocorrelated regret alarms
    far more often than the tables say. ``n``, ``mean`` and ``variance`` (of the population) follow Welford's
    recurrence, after ``MEMORY`` periods with old ones fading; a period is measured by the spread of those before it.
    """

    sum: float = 0.0
    n: int = 0
    mean: float = 0.0
    variance: float = 0.0
    mean_rule_cost: float = 0.0

    def observe(self, regret: float, rule_cost: float) -> Cusum:
        """Take in a period: cost less the rule's cost, and the rule's cost, in GPU-hours.

        A value that is no cost (``gate.is_cost``) makes the reading NaN until the next period, and is not learned from.
        Periods without known demand are not observed at all.
        """
        if not (is_cost(regret) and is_cost(rule_cost)):
            return replace(self, sum=nan)
        before = 0.0 if isnan(self.sum) else self.sum
        after = before if self.n < WARM_UP else _bounded(before + self._standardised(regret) - DRIFT, 0.0)
        weight = 1 / min(self.n + 1, MEMORY)
        off = regret - self.mean
        return Cusum(
            sum=after,
            n=self.n + 1,
            mean=self.mean + weight * off,
            variance=(1 - weight) * (self.variance + weight * off * off),
            mean_rule_cost=self.mean_rule_cost + weight * (rule_cost - self.mean_rule_cost),
        )

    @property
    def spread(self) -> float:
        """Sample standard deviation of the periods so far, never below ``LEAST_SPREAD`` of the rule's cost."""
        n = min(self.n, MEMORY)
        sample = sqrt(self.variance * n / (n - 1)) if n > 1 else 0.0
        return max(sample, LEAST_SPREAD * abs(self.mean_rule_cost))

    def _standardised(self, regret: float) -> float:
        if self.spread == 0.0:
            return 0.0 if regret == 0.0 else MOST if regret > 0.0 else -MOST
        return _bounded(regret / self.spread, -MOST)

    def restarted(self) -> Cusum:
        """The sum at zero again, as after an alarm; what is known of the spread stays."""
        return replace(self, sum=0.0)


@dataclass(frozen=True, slots=True)
class Tally:
    """How often something held over the last ``keep_s`` seconds, in buckets of an hour: ``(hour, times, of)``."""

    keep_s: int
    buckets: tuple[tuple[int, int, int], ...] = ()

    def observe(self, at_s: int, held: bool) -> Tally:
        """Take in one observation; what is ``keep_s`` or more away from it is forgotten, also ahead of it.

        A clock that jumped ahead and back must not leave a future behind that nothing replaces.
        """
        hour = at_s - at_s % HOUR_S
        counts = {start: (times, of) for start, times, of in self.buckets}
        times, of = counts.get(hour, (0, 0))
        counts[hour] = (times + int(held), of + 1)
        kept = [(start, *counts[start]) for start in sorted(counts) if abs(start - hour) < self.keep_s]
        return replace(self, buckets=tuple(kept))

    @property
    def times(self) -> int:
        """How often it held."""
        return sum(times for _, times, _ in self.buckets)

    @property
    def of(self) -> int:
        """Of how many observations."""
        return sum(of for _, _, of in self.buckets)


@dataclass(frozen=True, slots=True)
class Fidelity:
    """Live cost beside the replay's for the same targets, by day: ``(day_s, live, replayed)`` in GPU-hours."""

    days: tuple[tuple[int, float, float], ...] = ()

    def observe(self, day_s: int, live: float, replayed: float) -> Fidelity:
        """Take in a day (again: the later account counts); the last seven are kept, those that the gate judges."""
        known = {day: (lived, again) for day, lived, again in self.days} | {day_s: (live, replayed)}
        # Half a day of slack: local midnights are 23 or 25 hours apart when clocks change.
        near = 7 * DAY_S - DAY_S // 2
        return Fidelity(tuple((day, *known[day]) for day in sorted(known) if abs(day - day_s) < near))

    @property
    def ratio(self) -> float | None:
        """Sum of the days' absolute differences over the replay's cost; errors of two days do not cancel out."""
        if not self.days:
            return None
        apart = sum(abs(live - replayed) for _, live, replayed in self.days)
        whole = sum(abs(replayed) for _, _, replayed in self.days)
        if not (isfinite(apart) and isfinite(whole)):
            return nan
        return apart / whole if whole else (inf if apart else 0.0)


@dataclass(frozen=True, slots=True)
class Monitors:
    """One tick's readings, as the ladder sees them.

    ``inputs_age_s``: age of the oldest input that the advice needs, None: there is none. ``inputs_finite``: no NaN
    among them. ``coverage``: share of the last 3 days' demand at or below the forecast's q .9. ``cost_cusum``: in
    standard deviations. ``loss_used``: what it lost since it acts, of what it may lose; it loses nothing while it does
    not. ``clipped_share``: of the last day's ticks. ``infidelity``: share. ``verdict``: the gate's, where a midnight
    has passed (handing the same one in again does nothing).
    """

    inputs_age_s: float | None
    inputs_finite: bool = True
    coverage: float | None = None
    cost_cusum: float | None = None
    clipped_share: float | None = None
    infidelity: float | None = None
    loss_used: float | None = 0.0
    verdict: Verdict | None = None


def _bounded(value: float, least: float) -> float:
    return max(least, min(MOST, value))


_MOMENTS = ("mean", "variance", "mean_rule_cost")
COVERAGE_S = 3 * DAY_S
LEAST_FORECASTS = 288
"""Forecasts that must have come due before coverage says anything: a day of 5-minute steps."""
LEAST_TICKS = 100
"""Until so many ticks were seen, clipping is taken as a share of this many: one clipped tick is never above 1 %."""


@dataclass(frozen=True, slots=True)
class Watch:
    """All monitors of one pool."""

    cusum: Cusum = Cusum()
    coverage: Tally = Tally(COVERAGE_S)
    clipping: Tally = Tally(DAY_S)
    fidelity: Fidelity = Fidelity()

    def forecast_due(self, at_s: int, actual: float, quantile: float) -> Watch:
        """A q .9 forecast came due. Unknown demand is not judged; a forecast that is not a number has missed."""
        if isnan(actual):
            return self
        return replace(self, coverage=self.coverage.observe(at_s, actual <= quantile))

    def ticked(self, at_s: int, clipped: bool) -> Watch:
        """A tick; ``clipped``: the learner acted, and the shield changed what it wanted."""
        return replace(self, clipping=self.clipping.observe(at_s, clipped))

    def day_over(self, regret: float, rule_cost: float) -> Watch:
        """A day's regret against the rule is known (GPU-hours)."""
        return replace(self, cusum=self.cusum.observe(regret, rule_cost))

    def replayed(self, day_s: int, live: float, again: float) -> Watch:
        """A day's live account and its replay with the same targets are known (GPU-hours)."""
        return replace(self, fidelity=self.fidelity.observe(day_s, live, again))

    def cost_alarmed(self) -> Watch:
        """After the ladder acted on the CUSUM: it begins anew."""
        return replace(self, cusum=self.cusum.restarted())

    def read(
        self,
        inputs_age_s: float | None,
        *,
        inputs_finite: bool = True,
        loss_used: float | None = 0.0,
        verdict: Verdict | None = None,
    ) -> Monitors:
        """The readings for one step of the ladder."""
        judged, ticks = self.coverage.of, self.clipping.of
        return Monitors(
            inputs_age_s=inputs_age_s,
            inputs_finite=inputs_finite,
            coverage=self.coverage.times / judged if judged >= LEAST_FORECASTS else None,
            cost_cusum=self.cusum.sum if self.cusum.n or isnan(self.cusum.sum) else None,
            loss_used=loss_used,
            clipped_share=self.clipping.times / max(ticks, LEAST_TICKS) if ticks else None,
            infidelity=self.fidelity.ratio,
            verdict=verdict,
        )

    def to_plain(self) -> dict[str, Any]:
        """What JSON knows; a NaN is null."""
        return {
            "cusum": {
                "sum": _number(self.cusum.sum),
                "n": self.cusum.n,
                **{name: getattr(self.cusum, name) for name in _MOMENTS},
            },
            "coverage": [list(one) for one in self.coverage.buckets],
            "clipping": [list(one) for one in self.clipping.buckets],
            "fidelity": [[day, _number(live), _number(again)] for day, live, again in self.fidelity.days],
        }

    @classmethod
    def from_plain(cls, kept: Mapping[str, Any]) -> Watch:
        """Read back what ``to_plain`` gave; ``InputError`` for anything else."""
        try:
            cost = kept["cusum"]
            return cls(
                Cusum(_float(cost["sum"]), int(cost["n"]), *(float(cost[name]) for name in _MOMENTS)),
                Tally(COVERAGE_S, tuple((int(a), int(b), int(c)) for a, b, c in kept["coverage"])),
                Tally(DAY_S, tuple((int(a), int(b), int(c)) for a, b, c in kept["clipping"])),
                Fidelity(tuple((int(day), _float(live), _float(again)) for day, live, again in kept["fidelity"])),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError.one("watch", repr(error), "what Watch.to_plain gave") from error


def _number(value: float) -> float | None:
    return value if isfinite(value) else None


def _float(value: float | None) -> float:
    return nan if value is None else float(value)
