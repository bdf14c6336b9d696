"""What is forecast: the maximum demand over a window that begins a lead after the decision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecaster.series import Array


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """``[lead_s, lead_s + length_s]`` after the decision."""

    lead_s: int
    length_s: int

    def rows(self, step_s: int) -> tuple[int, int]:
        """First and last row of the window, counted from the decision's own row (which it does not know yet)."""
        first = self.lead_s // step_s
        last = max(first, -(-(self.lead_s + self.length_s) // step_s) - 1)
        return first, last


def standard_windows(lead_s: int) -> tuple[Window, ...]:
    """The windows that decisions use: the quarter of an hour after the lead, and the hour after it."""
    return Window(lead_s, 900), Window(lead_s, 3600)


def maxima(values: Array, window: Window, step_s: int) -> Array:
    """For a decision at each row, the maximum over the window; NaN where any of it is unknown or yet to come."""
    first, last = window.rows(step_s)
    out = np.full_like(values, np.nan)
    rows = len(values) - last
    if rows > 0:
        out[:rows] = np.max([values[k : k + rows] for k in range(first, last + 1)], axis=0)
    return out
