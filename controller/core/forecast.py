"""What the forecaster hands to the core: quantiles of the maximum demand in windows ahead, in exact integers."""

from __future__ import annotations

from dataclasses import dataclass, field

TOTAL = ""
"""The series name of a pool's total. The total has quantiles of its own: team quantiles do not add up to them."""


@dataclass(frozen=True, slots=True, order=True)
class WindowForecast:
    """Quantiles of the maximum demand over ``[issued + start_s, issued + end_s]``.

    ``levels_permille`` ascend (900 is the 0.9 quantile) and ``milli_gpus`` has one non-decreasing value a level.
    """

    start_s: int
    end_s: int
    levels_permille: tuple[int, ...]
    milli_gpus: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.start_s < self.end_s:
            raise ValueError("a forecast window starts at or after its issue and has a length")
        if len(self.levels_permille) != len(self.milli_gpus) or not self.milli_gpus:
            raise ValueError("a forecast window has one value a level")
        if any(a >= b for a, b in zip(self.levels_permille, self.levels_permille[1:], strict=False)):
            raise ValueError("forecast levels ascend")
        if any(a > b for a, b in zip(self.milli_gpus, self.milli_gpus[1:], strict=False)) or self.milli_gpus[0] < 0:
            raise ValueError("forecast quantiles never cross and are never negative")

    def at(self, level_permille: int) -> int:
        """Milli-GPUs at a level: linear between the levels given, flat outside them, rounded up."""
        levels, values = self.levels_permille, self.milli_gpus
        if level_permille <= levels[0]:
            return values[0]
        for low, high, below, above in zip(levels, levels[1:], values, values[1:], strict=False):
            if level_permille <= high:
                return below - (-(above - below) * (level_permille - low) // (high - low))
        return values[-1]


@dataclass(frozen=True, slots=True, order=True)
class SeriesForecast:
    """One team's (or with ``team == TOTAL`` one pool's) forecast, as issued at one moment."""

    pool: str
    team: str
    issued_at_s: int
    windows: tuple[WindowForecast, ...]
    model: str = ""

    def covering(self, start_s: int, end_s: int) -> WindowForecast | None:
        """The shortest window that covers ``[start_s, end_s]`` from the issue, else the one that reaches furthest."""
        covers = [w for w in self.windows if w.start_s <= start_s and w.end_s >= end_s]
        if covers:
            return min(covers, key=lambda w: (w.end_s - w.start_s, w.start_s))
        return max(self.windows, key=lambda w: (w.end_s, -w.start_s), default=None)


@dataclass(frozen=True, slots=True)
class Forecasts:
    """All forecasts known at a tick; an absent series means: the rule decides alone."""

    series: tuple[SeriesForecast, ...] = ()
    _by_key: dict[tuple[str, str], SeriesForecast] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", tuple(sorted(self.series)))
        self._by_key.update({(s.pool, s.team): s for s in self.series})
        if len(self._by_key) != len(self.series):
            raise ValueError("two forecasts for one team and pool")

    def of(self, pool: str, team: str = TOTAL) -> SeriesForecast | None:
        """The forecast of a team, or of the pool's total."""
        return self._by_key.get((pool, team))
