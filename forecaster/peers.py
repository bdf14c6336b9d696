"""Models of the statsforecast package on the same decisions, so that ours are judged beside what others would use.

They forecast steps, decisions need the maximum over a window. A model's point is the maximum of its steps' means in the
window; its quantiles are that point moved by the quantiles of its own earlier misses (logs, the last fourteen days, of
windows that are over): what our experts get too. Its own bands are of single steps and say nothing about a maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.core.errors import InputError
from forecaster.calibrate import LEAST, residual_quantiles
from forecaster.models.base import offsets
from forecaster.series import Array, Panel, carried_forward
from forecaster.split import assert_past
from forecaster.windows import Window, maxima

Ints = NDArray[np.int64]
NAMES = ("SeasonalNaive", "AutoTheta", "MSTL", "AutoETS")
HISTORY_DAYS = 14
LEAST_DAYS = 2
"""A decomposition by the day needs two of them."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one night's fit and of one decision's forecast, of one series at the end of its history."""

    fit_s: float
    forecast_s: float


@dataclass(frozen=True, slots=True)
class Peers:
    """``values``: (models, decisions, windows, levels) GPUs of the decisions at ``rows``; NaN before there are any."""

    names: tuple[str, ...]
    rows: Ints
    values: Array
    costs: tuple[Cost, ...]


def peers(
    total: Panel, stride: int, windows: Sequence[Window], levels: Sequence[float], names: Sequence[str] = NAMES
) -> Peers:
    """Walk a total (a panel of one column): a decision each ``stride`` rows, fitted at the first of each day."""
    makers = _makers(total.rows_a_day)
    rows = np.arange(0, total.rows, stride, dtype=np.int64)
    offset = offsets(total.until(total.rows_a_day))[0]
    made, costs = [], []
    for name in names:
        steps, cost = _walk(makers[name], total, rows, max(w.rows(total.step_s)[1] for w in windows) + 1)
        made.append(np.stack([_quantiles(steps, total, rows, w, offset, levels) for w in windows], axis=1))
        costs.append(cost)
    return Peers(tuple(names), rows, np.stack(made), tuple(costs))


def _makers(day: int) -> dict[str, Callable[[], Any]]:
    try:
        from statsforecast import models
    except ImportError as error:
        allowed = "a package that is installed: pip install 'tidegate[compare]'"
        raise InputError.one("--against", "statsforecast", allowed) from error
    return {
        "SeasonalNaive": lambda: models.SeasonalNaive(season_length=day),
        "AutoTheta": lambda: models.AutoTheta(season_length=day),
        "MSTL": lambda: models.MSTL(season_length=day, trend_forecaster=models.AutoETS(model="ZZN")),
        # It has no seasons of more than 24 steps; asked for one, it finds the same model fifty times slower.
        "AutoETS": lambda: models.AutoETS(season_length=1),
    }


def _walk(make: Callable[[], Any], total: Panel, rows: Ints, ahead: int) -> tuple[Array, Cost]:
    """Means of the steps from each decision's own row on, (decisions, ahead), and what the last ones cost."""
    filled = carried_forward(total.values)[:, 0]
    first = int(np.isnan(filled).sum())
    out, fitted, cost = np.full((len(rows), ahead), np.nan), None, Cost(np.nan, np.nan)
    day = total.rows_a_day
    for i, row in enumerate(rows):
        known = filled[max(first, row - HISTORY_DAYS * day) : row]
        if row - first <= LEAST_DAYS * day:
            continue
        assert_past(row - 1, row)
        if fitted is None or row // day != rows[i - 1] // day:
            begin = perf_counter()
            fitted = make().fit(known)
            cost = Cost(perf_counter() - begin, cost.forecast_s)
        begin = perf_counter()
        out[i] = _steps(fitted, known, ahead)
        cost = Cost(cost.fit_s, perf_counter() - begin)
    return out, cost


def _steps(fitted: Any, known: Array, ahead: int) -> Array:
    """The fitted model on what is known now; models that cannot be carried forward fit in no time."""
    go_on = getattr(fitted, "forward", None) or fitted.forecast
    return np.asarray(go_on(known, h=ahead)["mean"], dtype=np.float64)


def _quantiles(steps: Array, total: Panel, rows: Ints, window: Window, offset: float, levels: Sequence[float]) -> Array:
    """Quantiles of a window's maximum, (decisions, levels); NaN where earlier misses are too few."""
    first, last = window.rows(total.step_s)
    points = np.log(np.maximum(steps[:, first : last + 1].max(axis=1), 0.0) + offset)
    misses = np.log(maxima(total.values, window, total.step_s)[rows, 0] + offset) - points
    out = np.full((len(rows), len(levels)), np.nan)
    for i, row in enumerate(rows):
        over = (rows + last < row) & (rows >= row - HISTORY_DAYS * total.rows_a_day) & ~np.isnan(misses)
        if over.sum() >= LEAST:
            moved = residual_quantiles(misses[over, None], levels)[0]
            out[i] = np.maximum(np.exp(points[i] + moved) - offset, 0.0)
    return out
