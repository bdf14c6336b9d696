"""The forecaster as the loop, the benchmark and the scores use it: one engine, refitted nightly, walked forward.

``rolling`` is the backtest and ``Forecaster`` the service; both walk ``_Engine``. A night's refit sees decisions whose
window has passed; the day that follows is forecast with what that night knew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from controller.core.forecast import TOTAL, Forecasts, SeriesForecast, WindowForecast
from controller.core.quantities import MILLI
from forecaster.calibrate import SETTLED_DAYS, residual_quantiles, track
from forecaster.metrics import LEVELS
from forecaster.mixture import mix, weights
from forecaster.models.base import Expert, Past, look_back, offsets
from forecaster.models.boosted import Boosted
from forecaster.models.last_value import LastValue
from forecaster.models.seasonal import Seasonal
from forecaster.series import DAY_S, Array, Panel
from forecaster.split import known_before, origins
from forecaster.windows import Window

RESIDUAL_DAYS = 14
MEMORY_DAYS = 7
TICK_DAYS = 15
"""What a tick reads: the seasonal expert's fourteen days, and the hours before the first of them."""
MODELS: dict[str, Callable[[], Expert]] = {"last_value": LastValue, "seasonal": Seasonal, "boosted": Boosted}
CHEAP = ("last_value", "seasonal")
ALL = ("last_value", "seasonal", "boosted")


@dataclass(frozen=True, slots=True)
class Rolling:
    """Forecasts as they were made. ``values``: (rows, series, windows, levels), GPUs; row i decides at ``start + i``.

    ``by_expert`` has the same for each expert alone, in the order of ``experts``.
    """

    names: tuple[str, ...]
    start: int
    windows: tuple[Window, ...]
    levels: tuple[float, ...]
    values: Array
    experts: tuple[str, ...] = ()
    by_expert: Array | None = None

    def of(self, name: str, window: Window, level: float) -> Array:
        """One series' forecasts at a level (interpolated between levels), by row."""
        values = self.values[:, self.names.index(name), self.windows.index(window)]
        return np.asarray([np.interp(level, self.levels, row) for row in values])


@dataclass(slots=True)
class _Night:
    """What one refit knows of one window: residual quantiles by expert, weights, corrections."""

    residuals: Array
    shares: Array
    moved: Array


@dataclass(slots=True)
class _Memory:
    """Forecasts of one window as they were made; ``tracked`` rows of them the tracker has seen."""

    points: list[Array] = field(default_factory=list)
    experts: list[Array] = field(default_factory=list)
    mixed: list[Array] = field(default_factory=list)
    tracked: int = 0

    def remember(self, points: Array, experts: Array, mixed: Array) -> None:
        """Keep what was forecast; rows follow each other without a hole, from row 0 on."""
        self.points.append(points)
        self.experts.append(experts)
        self.mixed.append(mixed)


class _Engine:
    def __init__(
        self, windows: Sequence[Window], levels: Sequence[float], experts: Sequence[str], refit_boosted: int
    ) -> None:
        self.windows, self.levels = tuple(windows), tuple(levels)
        self.experts = [MODELS[name]() for name in experts]
        self.refit_boosted = refit_boosted
        self.memory = {window: _Memory() for window in windows}
        self.nights: dict[Window, _Night] = {}
        self.nth = 0

    def refit(self, past: Past, row: int) -> None:
        """Learn from what is known before ``row``."""
        for window in self.windows:
            for expert in self.experts:
                if not isinstance(expert, Boosted) or self.nth % self.refit_boosted == 0 or self.nth < 4:
                    expert.fit(past, window, row)
            self.nights[window] = self._night(past, window, row)
        self.nth += 1

    def _night(self, past: Past, window: Window, row: int) -> _Night:
        """Residuals are of forecasts as they were made, never of rows that their model was fitted on."""
        _, last = window.rows(past.panel.step_s)
        passed = max(0, row - last)
        known = known_before(past.panel, row)
        truth = Past(known, past.offset, past.last, past.level).truth(window)
        day = past.panel.rows_a_day
        first = _settled(passed, day, RESIDUAL_DAYS)
        made = self.memory[window].points
        series = past.panel.values.shape[1]
        points = np.concatenate(made, axis=1) if made else np.zeros((len(self.experts), 0, series))
        residuals = np.stack([residual_quantiles(truth[first:passed] - p[first:passed], self.levels) for p in points])
        shares, moved = self._judge(past, window, truth, passed)
        return _Night(residuals, shares, moved)

    def _judge(self, past: Past, window: Window, truth: Array, passed: int) -> tuple[Array, Array]:
        """Weights and tracked corrections from the forecasts that were made and whose window has passed."""
        memory = self.memory[window]
        series = past.panel.values.shape[1]
        rows = passed
        if not memory.mixed or rows <= 0:
            even = np.full((len(self.experts), series, len(self.levels)), 1 / len(self.experts))
            return even, np.zeros((series, len(self.levels)))
        recent = slice(_settled(rows, past.panel.rows_a_day, MEMORY_DAYS), rows)
        experts = np.concatenate(memory.experts, axis=1)[:, recent]
        real = truth[:passed]
        shares = weights(np.exp(real[recent]) - past.offset, experts, self.levels, past.panel.rows_a_day)
        mixed = np.concatenate(memory.mixed)[memory.tracked : rows]
        residuals = real[memory.tracked :, :, None] - np.log(mixed + past.offset[:, None])
        memory.tracked = rows
        if rows < SETTLED_DAYS * past.panel.rows_a_day:
            return shares, self.nights[window].moved
        return shares, track(self.nights[window].moved, residuals, self.levels)

    def walk(self, past: Past, start: int, stop: int, *, remember: bool = True) -> tuple[Array, Array]:
        """Forecast decisions ``[start, stop)`` with what the last refit knew: (experts, rows, …) and mixed."""
        by_window, mixed = [], []
        for window in self.windows:
            night = self.nights[window]
            points = np.stack([expert.points(past, window, start, stop) for expert in self.experts])
            made = self._quantiles(past, window, points)
            raw = mix(made, night.shares)
            moved = np.exp(np.log(raw + past.offset[:, None]) + night.moved) - past.offset[:, None]
            final = np.sort(np.maximum(moved, 0.0), axis=-1)
            if remember:
                self.memory[window].remember(points, made, final)
            by_window.append(made)
            mixed.append(final)
        return np.stack(by_window, axis=-2), np.stack(mixed, axis=-2)

    def _quantiles(self, past: Past, window: Window, points: Array) -> Array:
        """Points and residual quantiles to GPUs: (experts, rows, series) → (experts, rows, series, levels)."""
        moved = points[..., None] + self.nights[window].residuals[:, None]
        quantiles = np.exp(moved) - past.offset[:, None]
        return np.asarray(np.maximum(np.nan_to_num(quantiles, nan=0.0, posinf=0.0), 0.0))


def _settled(rows: int, day: int, most_days: int) -> int:
    """Where to begin to learn from forecasts: not with the first days', as soon as a day of better ones is there."""
    return max(0, rows - most_days * day, min(SETTLED_DAYS * day, rows - day))


def rolling(
    panel: Panel,
    *,
    windows: Sequence[Window],
    levels: Sequence[float] = LEVELS,
    start: int = 0,
    stop: int | None = None,
    refit_s: int = DAY_S,
    experts: Sequence[str] = CHEAP,
    refit_boosted: int = 1,
) -> Rolling:
    """Forecast every decision at rows ``[start, stop)`` as it would have been made then.

    ``panel`` has its total as a column if the total is wanted. Walking begins at row 0 whatever ``start`` is. ε, the
    scale, is that of the rows before ``start``, or of the first day: forecasts *within* the first day know its mean.
    """
    stop = panel.rows if stop is None else stop
    engine, past = _begin(panel, windows, levels, experts, refit_boosted, start)
    made, mixed = [], []
    for begin, end in origins(start, stop, refit_s // panel.step_s):
        engine.refit(past, begin)
        one, both = engine.walk(past, begin, end)
        if begin >= start:
            made.append(one)
            mixed.append(both)
    values = np.concatenate(mixed) if mixed else np.zeros((0, len(panel.names), len(windows), len(levels)))
    by_expert = np.concatenate(made, axis=1) if made else None
    return Rolling(panel.names, start, tuple(windows), tuple(levels), values, tuple(experts), by_expert)


def _begin(
    panel: Panel,
    windows: Sequence[Window],
    levels: Sequence[float],
    experts: Sequence[str],
    refit_boosted: int,
    start: int,
) -> tuple[_Engine, Past]:
    engine = _Engine(windows, levels, experts, refit_boosted)
    return engine, look_back(panel, offsets(panel.until(max(start, panel.rows_a_day))))


class Forecaster:
    """The service: ``fit`` nightly, ``forecasts`` every tick. Holds no clock and no source of its own."""

    def __init__(
        self,
        lead_s: int,
        *,
        experts: Sequence[str] = ALL,
        levels: Sequence[float] = LEVELS,
        history_days: int = 28,
        refit_boosted: int = 7,
    ) -> None:
        self.windows: tuple[Window, ...] = (Window(lead_s, 900), Window(lead_s, 3600))
        self.levels, self.experts, self.history_days = tuple(levels), tuple(experts), history_days
        self.refit_boosted = refit_boosted
        self._origin_s = 0
        self._engine: _Engine | None = None
        self._offset: Array | None = None
        self._names: tuple[str, ...] = ()

    def fit(self, panel: Panel, now_s: int) -> None:
        """Walk the last weeks as ``rolling`` does, so that weights and corrections come from honest forecasts."""
        panel = self._recent(panel, now_s, self.history_days)
        if panel.rows < 2:
            self._engine = None
            return
        engine, past = _begin(panel, self.windows, self.levels, self.experts, self.refit_boosted, 0)
        for begin, end in origins(panel.rows, panel.rows, panel.rows_a_day):
            engine.refit(past, begin)
            engine.walk(past, begin, end)
        engine.nth = 0
        engine.refit(past, panel.rows)
        self._engine, self._offset, self._names = engine, past.offset, panel.names
        self._origin_s = panel.origin_s

    def walked(self) -> tuple[int, Rolling] | None:
        """The last fit's weeks as forecast day by day, and the moment of their first row; None before a fit."""
        if self._engine is None:
            return None
        values = [np.concatenate(self._engine.memory[window].mixed) for window in self.windows]
        return self._origin_s, Rolling(self._names, 0, self.windows, self.levels, np.stack(values, axis=-2))

    @staticmethod
    def _recent(panel: Panel, now_s: int, days: int) -> Panel:
        """The rows before ``now_s`` of the last days, with the total."""
        row = panel.row(now_s)
        first = max(0, row - days * panel.rows_a_day)
        cut = Panel(panel.names, panel.time(first), panel.step_s, panel.timezone, panel.values[first : max(0, row)])
        return cut.with_total()

    def forecasts(self, panel: Panel, now_s: int, pool: str) -> Forecasts:
        """Forecast the decision at ``now_s`` for each series that the last fit knew; none before the first fit."""
        if self._engine is None or self._offset is None:
            return Forecasts()
        recent = self._recent(panel, now_s, min(self.history_days, TICK_DAYS))
        columns = [recent.names.index(name) if name in recent.names else -1 for name in self._names]
        known = np.column_stack([recent.values[:, c] if c >= 0 else np.full(recent.rows, np.nan) for c in columns])
        # The decision's own row does not exist yet; an unknown one stands in for it.
        values = np.vstack([known, np.full((1, known.shape[1]), np.nan)])
        whole = Panel(self._names, recent.origin_s, recent.step_s, recent.timezone, values)
        past = look_back(whole, self._offset)
        _, mixed = self._engine.walk(past, whole.rows - 1, whole.rows, remember=False)
        return _to_core(self._names, self.windows, self.levels, mixed[0], np.isnan(past.last[-1]), pool, now_s)


def _to_core(
    names: tuple[str, ...],
    windows: Sequence[Window],
    levels: Sequence[float],
    values: Array,
    unknown: Array,
    pool: str,
    now_s: int,
) -> Forecasts:
    """Into exact integers: levels in permille, milli-GPUs rounded up."""
    permille = tuple(round(level * 1000) for level in levels)
    series = []
    for i, name in enumerate(names):
        if unknown[i]:
            continue
        made = tuple(
            WindowForecast(
                w.lead_s, w.lead_s + w.length_s, permille, tuple(int(np.ceil(v * MILLI - 1e-6)) for v in values[i, k])
            )
            for k, w in enumerate(windows)
        )
        series.append(SeriesForecast(pool, name if name != TOTAL else TOTAL, now_s, made, "mixture"))
    return Forecasts(tuple(series))
