"""Gradient boosting over all series at once: what the slopes, the hour and the days alike say together.

One quantile model a level, global over teams (a team's own history is short), on moves relative to the team's level, so
that large and small teams teach each other. scikit-learn's histogram boosting; deterministic by its seed.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from forecaster.models.base import Past
from forecaster.models.seasonal import Seasonal
from forecaster.series import Array
from forecaster.split import known_before
from forecaster.windows import Window, maxima

BACKS_S = (300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600)
MOST_ROWS = 40_000
"""Enough for trees of this size; more rows cost time and no longer help."""
LEAST_ROWS = 500


class Boosted:
    """The median move by boosting; its residuals make the quantiles, as for the other experts."""

    name = "boosted"

    def __init__(self, seed: int = 0, history_days: int = 28) -> None:
        self.seed = seed
        self.history_days = history_days
        self._models: dict[Window, HistGradientBoostingRegressor] = {}
        self._seasonal = Seasonal()

    def fit(self, past: Past, window: Window, before: int) -> None:
        """Fit on the decisions of the last weeks whose window has passed."""
        _, last = window.rows(past.panel.step_s)
        stop = before - last
        start = max(0, stop - self.history_days * past.panel.rows_a_day)
        self._models.pop(window, None)
        if stop - start < LEAST_ROWS // max(1, len(past.panel.names)):
            return
        features = self._features(past, window, start, stop)
        moves = (_log_ahead(past, window, start, stop, before) - past.level[start:stop]).reshape(-1)
        usable = np.flatnonzero(~np.isnan(moves))
        if len(usable) < LEAST_ROWS:
            return
        if len(usable) > MOST_ROWS:
            usable = np.random.default_rng(self.seed).choice(usable, MOST_ROWS, replace=False)
            usable.sort()
        model = HistGradientBoostingRegressor(
            loss="absolute_error",
            max_iter=80,
            learning_rate=0.06,
            max_leaf_nodes=15,
            min_samples_leaf=40,
            l2_regularization=1.0,
            random_state=self.seed,
            early_stopping=False,
        )
        # One thread: on a busy or CPU-limited machine the threads of OpenMP spin for each other, many times slower.
        with threadpool_limits(limits=1, user_api="openmp"):
            self._models[window] = model.fit(features[usable], moves[usable])

    def points(self, past: Past, window: Window, start: int, stop: int) -> Array:
        """The level plus the predicted move; before there is a model, the level."""
        level = past.level[start:stop]
        model = self._models.get(window)
        if model is None or stop == start:
            return level
        features = self._features(past, window, start, stop)
        with threadpool_limits(limits=1, user_api="openmp"):
            move = model.predict(features).reshape(level.shape)
        return np.asarray(level + move)

    def _features(self, past: Past, window: Window, start: int, stop: int) -> Array:
        """(rows · series, features): slopes, spread, place in the day and week, height in the last day, days alike."""
        step, day = past.panel.step_s, past.panel.rows_a_day
        level = past.level
        columns = []
        for back_s in BACKS_S:
            back = max(1, back_s // step)
            columns.append(level[start:stop] - _shifted(level, back, start, stop))
        recent = np.stack([_shifted(past.last, k, start, stop) for k in range(12)])
        columns += [recent.std(axis=0), past.last[start:stop] - level[start:stop]]
        yesterday = np.stack([_shifted(level, k, start, stop) for k in range(0, day, max(1, day // 24))])
        columns += [level[start:stop] - np.fmax.reduce(yesterday), level[start:stop] - np.fmin.reduce(yesterday)]
        mean, weight = self._seasonal.moves(past, window, start, stop)
        columns += [mean, weight]
        fraction, weekday = past.calendar()
        for column in (np.sin(2 * np.pi * fraction), np.cos(2 * np.pi * fraction), weekday):
            columns.append(np.repeat(column[start:stop, None], level.shape[1], axis=1))
        return np.stack([column.reshape(-1) for column in columns], axis=1)


def _log_ahead(past: Past, window: Window, start: int, stop: int, before: int) -> Array:
    """The truth of decisions ``[start, stop)``, computed from rows before ``before`` only."""
    cut = known_before(past.panel, before)
    return np.asarray(np.log(maxima(cut.values[start:], window, cut.step_s)[: stop - start] + past.offset))


def _shifted(values: Array, back: int, start: int, stop: int) -> Array:
    """Rows ``[start − back, stop − back)``; the first row stands in for those before the beginning."""
    index = np.maximum(np.arange(start - back, stop - back), 0)
    return values[index]
