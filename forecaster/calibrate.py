"""From residuals to quantiles, and the correction that keeps coverage.

A quantile is honest when demand lies below it as often as its level says. Experts' quantiles come from their own past
residuals; the mixture's are then tracked: each night a level moves by what its coverage missed (quantile tracking,
Angelopoulos, Candès & Tibshirani, *Conformal PID Control*, NeurIPS 2023).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forecaster.series import Array

LEAST = 36
"""Fewer residuals than this (three hours of them) say nothing about a tail."""
STEP = 0.5
FADE = 0.9
MOST_SPREAD = 0.5
SETTLED_DAYS = 2
"""The first days' forecasts had no residuals to make quantiles of: their coverage teaches nothing."""


def residual_quantiles(residuals: Array, levels: Sequence[float]) -> Array:
    """Quantiles of each series' residuals: (rows, series) → (series, levels); zeros where there are too few."""
    count = (~np.isnan(residuals)).sum(axis=0)
    out = np.zeros((residuals.shape[1], len(levels)))
    enough = count >= LEAST
    if enough.any():
        out[enough] = np.nanquantile(residuals[:, enough], levels, axis=0).T
    return out


def track(moved: Array, residuals: Array, levels: Sequence[float]) -> Array:
    """One night's step of the quantile tracker: raise levels exceeded too often, lower those exceeded too rarely.

    ``moved``: (series, levels), the correction so far, in logs. ``residuals``: (rows, series, levels), log truth minus
    log forecast of the decisions since the last step. The step is proportional to the error in coverage and to the
    residuals' middle spread, so an outlier moves nothing; what was learned fades, so a bad day is forgiven.
    """
    known = ~np.isnan(residuals)
    count = known.sum(axis=0)
    held = np.where(known, residuals <= 0, False).sum(axis=0) / np.maximum(count, 1)
    enough = count >= LEAST
    spread = np.zeros(moved.shape)
    if enough.any():
        low, high = np.nanquantile(residuals[:, enough], (0.25, 0.75), axis=0)
        spread[enough] = high - low
    step = STEP * (np.asarray(levels) - held) * np.minimum(spread, MOST_SPREAD)
    return np.asarray(FADE * moved + np.where(enough, step, 0.0))
