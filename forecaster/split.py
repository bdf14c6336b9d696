"""Splits that cannot leak: rolling origins, and the guard that every read of history passes.

A forecast decided at row r may use rows before r, nothing else. The guard is checked in production too: a forecast that
has seen the future looks better in every score and is worthless, so it must fail loudly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from forecaster.series import Panel


class LookAheadError(AssertionError):
    """Code asked for demand at or after the moment of its decision: a fault in tidegate, never in its input."""


def assert_past(newest_read: int | NDArray[np.int64], decision: int | NDArray[np.int64]) -> None:
    """Raise ``LookAheadError`` unless every row read lies before the row of its decision (shapes broadcast)."""
    late = np.asarray(newest_read) >= np.asarray(decision)
    if late.any():
        raise LookAheadError(f"{int(late.sum())} reads at or after their decision")


def known_before(panel: Panel, decision: int) -> Panel:
    """The panel as it was known at a decision: later rows do not exist in it, whatever the panel holds."""
    known = panel.until(max(0, decision))
    assert_past(known.rows - 1, max(0, decision))
    return known


def origins(start: int, stop: int, every: int) -> Iterator[tuple[int, int]]:
    """Rolling origin over rows ``[0, stop)``: (refit row, end of what it forecasts), with a refit exactly at ``start``.

    Walking begins at row 0 so that what is forecast from ``start`` on rests on forecasts made before it, as in service.
    """
    if stop <= 0:
        return
    edges = [0, *range(start % every or every, stop, every)]
    yield from zip(edges, [*edges[1:], stop], strict=True)
