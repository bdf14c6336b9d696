"""A day and a half ahead, by the hour, for people who plan: Holt-Winters with bands from its own past misses.

Decisions never use it: at this distance a team's demand is a habit, not a forecast. Bands come from forecasts that were
made from earlier days and then came true or did not, never from how well the model fits what it has seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from statsmodels.tsa.holtwinters import ExponentialSmoothing

from forecaster.series import Array, Panel, carried_forward

DAY_H = 24
HOURS = 36
LEVELS = (0.1, 0.5, 0.9)
ORIGINS = 4
"""Earlier days from which the misses are taken, each with a fit of its own."""
LEAST_DAYS = 2
"""Holt-Winters needs two whole seasons; with less, today is expected to go as yesterday did."""


@dataclass(frozen=True, slots=True)
class DayAhead:
    """``values``: (hours, levels) GPUs, the mean of each hour from ``start_s`` (epoch) on; ``model`` made it."""

    start_s: int
    values: Array
    levels: tuple[float, ...]
    model: str


def day_ahead(panel: Panel, name: str, now_s: int, hours: int = HOURS, levels: Sequence[float] = LEVELS) -> DayAhead:
    """Forecast a series from the rows before ``now_s``; no history at all gives zeros."""
    known = panel.until(max(0, panel.row(now_s)))
    hourly = by_the_hour(known.values[:, known.names.index(name)], 3600 // panel.step_s)
    start = panel.time(known.rows)
    if not len(hourly):
        return DayAhead(start, np.zeros((hours, len(levels))), tuple(levels), "no history")
    offset = max(0.5, 0.02 * float(hourly.mean()))
    logs = np.log(hourly + offset)
    middle, model = _expected(logs, hours)
    misses = _misses(logs, hours)
    bands = np.quantile(misses, levels) if len(misses) else np.zeros(len(levels))
    values = np.exp(middle[:, None] + bands[None, :]) - offset
    return DayAhead(start, np.maximum(values, 0.0), tuple(levels), model)


def by_the_hour(values: Array, rows_an_hour: int) -> Array:
    """Means of whole hours, the last ending with the last row; an unknown hour is that of the day before."""
    whole = len(values) // rows_an_hour * rows_an_hour
    if not whole:
        return np.array([])
    hours = values[len(values) - whole :].reshape(-1, rows_an_hour)
    count = (~np.isnan(hours)).sum(axis=1)
    means = np.where(count > 0, np.nansum(hours, axis=1) / np.maximum(count, 1), np.nan)
    for i in range(DAY_H, len(means)):
        if np.isnan(means[i]):
            means[i] = means[i - DAY_H]
    filled = carried_forward(means)
    return np.asarray(filled[~np.isnan(filled)])


def _expected(logs: Array, hours: int) -> tuple[Array, str]:
    """The expected log of the coming hours, by the best model that the history allows."""
    if np.ptp(logs) < 1e-9:
        return np.full(hours, logs[-1]), "constant"
    if len(logs) < DAY_H:
        return np.full(hours, logs[-1]), "last value"
    if len(logs) < LEAST_DAYS * DAY_H:
        return np.resize(logs[-DAY_H:], hours), "as the day before"
    with warnings.catch_warnings():
        # It warns where its optimiser stopped early; the bands show what that is worth.
        warnings.simplefilter("ignore")
        model = ExponentialSmoothing(
            logs,
            seasonal="add",
            seasonal_periods=DAY_H,
            initialization_method="heuristic" if len(logs) >= 72 else "estimated",
        )
        made = np.asarray(model.fit().forecast(hours), dtype=np.float64)
    seen = logs.max() + np.log(2), logs.min() - np.log(2)
    return np.clip(np.nan_to_num(made, nan=float(logs[-1])), seen[1], seen[0]), "Holt-Winters"


def _misses(logs: Array, hours: int) -> Array:
    """What came less what was expected, in logs, over the last days: each expected from the hours before it alone."""
    found = []
    for back in range(1, ORIGINS + 1):
        origin = len(logs) - back * DAY_H
        if origin < 1:
            break
        expected, _ = _expected(logs[:origin], hours)
        came = logs[origin : origin + hours]
        found.append(came - expected[: len(came)])
    return np.concatenate(found) if found else np.array([])
