"""Demand moves as it moved on days that went like today.

Seasonal slots, weighted: each earlier day offers the move it made from the same time of day on, and counts the more,
the more its last hours resemble today's in slope and level. A day of history is enough to begin with. Moves are ratios,
so a day that is twice as busy moves twice as much.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forecaster.models.base import Past
from forecaster.series import Array
from forecaster.split import assert_past
from forecaster.windows import Window

DAYS_BACK = 14
SLOPES_S = (1800, 3600, 7200, 10_800)
"""How far back the resemblance of two days looks."""
BANDWIDTH = 0.15
"""Squared log distance at which a day's weight falls to 1/e."""
LEVEL_WEIGHT = 0.5
PRIOR = 0.3
"""Weight of "it stays where it is" beside the days: with no day alike, the forecast is the last value."""
DECAY = 0.97
"""By which a day counts less than the one after it."""


class Seasonal:
    """Analogous days, weighted by resemblance."""

    name = "seasonal"

    def fit(self, past: Past, window: Window, before: int) -> None:
        """Nothing to learn: the days are the model."""

    def points(self, past: Past, window: Window, start: int, stop: int) -> Array:
        """The level now times the weighted mean move."""
        mean, weight = self.moves(past, window, start, stop)
        return past.level[start:stop] + mean * weight / (weight + PRIOR)

    def moves(self, past: Past, window: Window, start: int, stop: int) -> tuple[Array, Array]:
        """The weighted mean log move of the days alike, and the sum of their weights; (rows, series) each."""
        day, level = past.panel.rows_a_day, past.level
        _, last = window.rows(past.panel.step_s)
        weighted = np.zeros((stop - start, level.shape[1]))
        weights = np.zeros_like(weighted)
        rows = np.arange(start, stop)
        for back in range(-(-(last + 1) // day), DAYS_BACK + 1):
            known = rows >= back * day
            if not known.any():
                break
            now, then = rows[known], rows[known] - back * day
            assert_past(then + last, now)
            ahead = _ahead(past, window, then)
            weight = np.exp(-_distance(level, now, then, past.panel.step_s) / BANDWIDTH) * DECAY ** (back - 1)
            weight = np.where(np.isnan(weight) | np.isnan(ahead), 0.0, weight)
            weighted[known] += weight * np.nan_to_num(ahead)
            weights[known] += weight
        return weighted / np.maximum(weights, 1e-12), weights


def _ahead(past: Past, window: Window, rows: NDArray[np.int64]) -> Array:
    """The log move that followed each row; the caller has made sure that its window is over."""
    first, last = window.rows(past.panel.step_s)
    peak = past.panel.values[rows + first]
    for k in range(first + 1, last + 1):
        peak = np.maximum(peak, past.panel.values[rows + k])
    return np.asarray(np.log(peak + past.offset) - past.level[rows])


def _distance(level: Array, now: NDArray[np.int64], then: NDArray[np.int64], step_s: int) -> Array:
    """Squared distance of two days up to here: their level, and how far it moved; unknown (NaN) at the beginning."""
    distance = LEVEL_WEIGHT * (level[now] - level[then]) ** 2
    for seconds in SLOPES_S:
        back = seconds // step_s
        slopes = [level[rows] - level[np.maximum(rows - back, 0)] for rows in (now, then)]
        distance = distance + np.where((then >= back)[:, None], (slopes[0] - slopes[1]) ** 2, np.nan)
    return np.asarray(distance)
