"""Demand moves as it moved on days that went like today.

Seasonal slots, weighted: each earlier day offers the move it made from the same time of day on, and counts the more,
the more its last hours resemble today's in slope and level. A day of history is enough to begin with. Moves are ratios,
so a day that is twice as busy moves twice as much.
"""

from __future__ import annotations

import numpy as np

from forecaster.models.base import Past
from forecaster.series import Array
from forecaster.windows import Window, maxima

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
        day = past.panel.rows_a_day
        _, last = window.rows(past.panel.step_s)
        first = max(0, start - DAYS_BACK * day - max(SLOPES_S) // past.panel.step_s)
        level = past.level[first:stop]
        ahead = self._ahead(past, window, first, stop, last)
        slopes = [_slope(level, seconds // past.panel.step_s) for seconds in SLOPES_S]
        weighted = np.zeros((stop - start, level.shape[1]))
        weights = np.zeros_like(weighted)
        rows = np.arange(start - first, stop - first)
        for back in range(-(-(last + 1) // day), DAYS_BACK + 1):
            there = rows - back * day
            known = there >= 0
            if not known.any():
                break
            now, then = rows[known], there[known]
            distance = LEVEL_WEIGHT * (level[now] - level[then]) ** 2
            for slope in slopes:
                distance = distance + (slope[now] - slope[then]) ** 2
            weight = np.exp(-distance / BANDWIDTH) * DECAY ** (back - 1)
            weight = np.where(np.isnan(weight) | np.isnan(ahead[then]), 0.0, weight)
            weighted[known] += weight * np.nan_to_num(ahead[then])
            weights[known] += weight
        return weighted / np.maximum(weights, 1e-12), weights

    @staticmethod
    def _ahead(past: Past, window: Window, first: int, stop: int, last: int) -> Array:
        """The log move that followed each row; rows are at least a day old when used, so their window has passed."""
        values = past.panel.values[first : min(stop + last, past.panel.rows)]
        return (np.log(maxima(values, window, past.panel.step_s) + past.offset))[: stop - first] - past.level[
            first:stop
        ]


def _slope(level: Array, back: int) -> Array:
    """How far the level has moved in the last ``back`` rows; unknown at the start."""
    out = np.full_like(level, np.nan)
    if back < len(level):
        out[back:] = level[back:] - level[:-back]
    return out
