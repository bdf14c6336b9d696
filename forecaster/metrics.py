"""Scores of quantile forecasts; rows where the truth or the forecast is unknown do not count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forecaster.series import Array

LEVELS = (0.1, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
"""The levels that the weighted quantile loss averages over."""


def pinball(truth: Array, forecast: Array, level: float) -> Array:
    """Pinball (quantile) loss: ``level`` times what is missed above, ``1 − level`` times what is missed below."""
    missed = truth - forecast
    return np.maximum(level * missed, (level - 1) * missed)


def wql(truth: Array, forecasts: Array, levels: Sequence[float] = LEVELS) -> float:
    """Weighted quantile loss: twice the pinball loss over the sum of |truth|, averaged over levels.

    ``forecasts`` has shape (*truth.shape, levels). Gasthaus et al., AISTATS 2019, as GluonTS reports it.
    """
    known = ~np.isnan(truth) & ~np.isnan(forecasts).any(axis=-1)
    scale = np.abs(truth[known]).sum()
    if not scale:
        return float("nan")
    losses = [2 * pinball(truth[known], forecasts[known][..., i], level).sum() for i, level in enumerate(levels)]
    return float(np.mean(losses) / scale)


def mase(truth: Array, forecast: Array, naive: Array) -> float:
    """Mean absolute error over that of a naive forecast of the same rows; below 1 is better than naive."""
    known = ~np.isnan(truth) & ~np.isnan(forecast) & ~np.isnan(naive)
    reference = np.abs(truth[known] - naive[known]).mean() if known.any() else 0.0
    return float(np.abs(truth[known] - forecast[known]).mean() / reference) if reference else float("nan")


def coverage(truth: Array, forecast: Array) -> float:
    """Share of rows whose truth lies at or below the forecast quantile."""
    known = ~np.isnan(truth) & ~np.isnan(forecast)
    return float((truth[known] <= forecast[known]).mean()) if known.any() else float("nan")


def worst_day_coverage(truth: Array, forecast: Array, rows_a_day: int) -> float:
    """The lowest coverage of any day of which at least half is known."""
    days = []
    for start in range(0, len(truth), rows_a_day):
        day, said = truth[start : start + rows_a_day], forecast[start : start + rows_a_day]
        if (~np.isnan(day) & ~np.isnan(said)).sum() * 2 >= rows_a_day:
            days.append(coverage(day, said))
    return min(days, default=float("nan"))
