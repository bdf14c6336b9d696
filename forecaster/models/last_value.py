"""Demand stays where it is. Within the hour, on training clusters, nothing beats it by much."""

from __future__ import annotations

from forecaster.models.base import Past
from forecaster.series import Array
from forecaster.windows import Window


class LastValue:
    """The last known value; its residuals make the quantiles."""

    name = "last_value"

    def fit(self, past: Past, window: Window, before: int) -> None:
        """Nothing to learn."""

    def points(self, past: Past, window: Window, start: int, stop: int) -> Array:
        """The last known value, unsmoothed."""
        return past.last[start:stop]
