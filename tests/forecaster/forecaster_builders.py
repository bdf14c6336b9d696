"""Builders of small panels."""

from __future__ import annotations

import numpy as np

from forecaster.series import Panel

DAY = 288


def a_panel(values: np.ndarray, names: tuple[str, ...] = (), timezone: str = "UTC") -> Panel:
    """Values of shape (rows,) or (rows, teams), five minutes a row, from Monday 1970-01-05."""
    columns = np.atleast_2d(values.T).T.astype(float)
    return Panel(names or tuple(f"t{i}" for i in range(columns.shape[1])), 4 * 86_400, 300, timezone, columns)


def daily(days: int, seed: int = 0) -> np.ndarray:
    """A day that rises and falls between about 20 and 60 GPUs, with noise."""
    rows = np.arange(days * DAY)
    noise = np.random.default_rng(seed).normal(0, 1, len(rows))
    return np.maximum(40 - 20 * np.cos(2 * np.pi * rows / DAY) + noise, 0)
