"""What an expert is, and the view of history that it gets: nothing at or after the decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from forecaster.calendars import second_of_day, weekday
from forecaster.series import Array, Panel, carried_forward
from forecaster.windows import Window, maxima


@dataclass(frozen=True, slots=True)
class Past:
    """Derived once from a panel and shared by the experts; every array has one row a decision.

    ``level``: log of the last known demand, smoothed over three rows, all before the decision's row. ``last``: the same
    unsmoothed. ``offset``: ε by series. ``truth(window)`` looks ahead and is for fitting and scoring on rows whose
    window has passed.
    """

    panel: Panel
    offset: Array
    last: Array
    level: Array

    def truth(self, window: Window) -> Array:
        """Log of the window's maximum."""
        return np.asarray(np.log(maxima(self.panel.values, window, self.panel.step_s) + self.offset))

    def calendar(self) -> tuple[Array, Array]:
        """Fraction of the local day, and weekday, by row."""
        return second_of_day(self.panel) / 86_400.0, weekday(self.panel).astype(np.float64)


def look_back(panel: Panel, offset: Array) -> Past:
    """Build the view. Row r of ``last`` and ``level`` is made of rows before r: the shift by one forbids leaks."""
    shifted = last_known(panel.values)
    smooth = np.mean([shifted, _earlier(shifted, 1), _earlier(shifted, 2)], axis=0)
    return Past(panel, offset, np.log(shifted + offset), np.log(smooth + offset))


def last_known(values: Array) -> Array:
    """What a decision at each row knows last: the newest known value of the rows before it."""
    filled = carried_forward(values)
    return np.vstack([np.full((1, filled.shape[1]), np.nan), filled[:-1]])


def _earlier(values: Array, rows: int) -> Array:
    """The values so many rows before, or the value itself where there is none."""
    earlier = np.vstack([values[:1]] * rows + [values[:-rows]])[: len(values)]
    return np.asarray(np.where(np.isnan(earlier), values, earlier))


def offsets(panel: Panel) -> Array:
    """ε by series: half a GPU, or two percent of the mean of what is known, whichever is more."""
    known = ~np.isnan(panel.values)
    count = np.maximum(known.sum(axis=0), 1)
    return np.asarray(np.maximum(0.5, 0.02 * np.where(known, panel.values, 0.0).sum(axis=0) / count))


class Expert(Protocol):
    """A model of where demand will be."""

    name: str

    def fit(self, past: Past, window: Window, before: int) -> None:
        """Learn from the decisions whose window ended before row ``before``."""

    def points(self, past: Past, window: Window, start: int, stop: int) -> Array:
        """Log of the expected maximum for decisions at rows ``[start, stop)``; shape (stop − start, series)."""
