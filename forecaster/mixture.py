"""Which expert to believe, by series, window and level: weights from their rolling pinball loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forecaster.metrics import pinball
from forecaster.series import Array

SHARPNESS = 16.0
"""Weight falls with the sixteenth power of relative loss: an expert 5 % worse has half the weight."""
FIXED_SHARE = 0.02
"""No expert is written off: what it is given so that it can come back (Herbster & Warmuth, 1998)."""
HALF_LIFE_DAYS = 3.0


def weights(truth: Array, forecasts: Array, levels: Sequence[float], rows_a_day: int) -> Array:
    """Weights of shape (experts, series, levels) that sum to 1 over experts.

    ``truth``: (rows, series); ``forecasts``: (experts, rows, series, levels), the newest row last. Without any past all
    experts count the same.
    """
    experts, rows = forecasts.shape[:2]
    if rows == 0:
        return np.full((experts, *forecasts.shape[2:]), 1.0 / experts)
    fresh = 0.5 ** (np.arange(rows)[::-1] / (HALF_LIFE_DAYS * rows_a_day))
    losses = np.stack(
        [np.stack([pinball(truth, f[..., i], level) for i, level in enumerate(levels)], axis=-1) for f in forecasts]
    )
    known = ~np.isnan(losses).any(axis=0)
    weighted = np.where(known, losses, 0.0) * fresh[None, :, None, None]
    total = weighted.sum(axis=1)
    best = total.min(axis=0)
    relative = (best + 1e-9) / (total + 1e-9)
    raw = relative**SHARPNESS
    shares = raw / raw.sum(axis=0)
    return np.asarray((1 - FIXED_SHARE) * shares + FIXED_SHARE / experts)


def mix(forecasts: Array, shares: Array) -> Array:
    """The weighted mean of quantiles, sorted so that they never cross: (experts, rows, series, levels) → (rows, …)."""
    mixed = (forecasts * shares[:, None]).sum(axis=0)
    return np.sort(mixed, axis=-1)
