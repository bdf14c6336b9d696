"""Where in the day and the week a row lies, in the team's local time (clock changes included)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from forecaster.series import DAY_S, Panel

Ints = NDArray[np.int64]


def local_seconds(panel: Panel) -> Ints:
    """Local wall-clock seconds since the local Monday 1970-01-05 00:00, one a row."""
    at = panel.origin_s + np.arange(panel.rows, dtype=np.int64) * panel.step_s
    return at + _offsets(panel) - 4 * DAY_S


def _offsets(panel: Panel) -> Ints:
    """UTC offsets by row; computed by the hour, since zones change on the hour."""
    if panel.timezone == "UTC":
        return np.zeros(panel.rows, dtype=np.int64)
    zone = ZoneInfo(panel.timezone)
    at = panel.origin_s + np.arange(panel.rows, dtype=np.int64) * panel.step_s
    hours = np.unique(at // 3600)
    known = [datetime.fromtimestamp(int(h) * 3600, UTC).astimezone(zone).utcoffset() or timedelta() for h in hours]
    table = np.array([int(offset.total_seconds()) for offset in known], dtype=np.int64)
    return table[np.searchsorted(hours, at // 3600)]


def second_of_day(panel: Panel) -> Ints:
    """Seconds since local midnight."""
    return local_seconds(panel) % DAY_S


def weekday(panel: Panel) -> Ints:
    """Monday 0 … Sunday 6."""
    return local_seconds(panel) // DAY_S % 7
