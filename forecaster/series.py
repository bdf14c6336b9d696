"""Demand on an even grid: one column a team, NaN where nobody knows.

A gap is not zero demand. It stays NaN through fitting, forecasting and scoring, so that an outage of the metrics never
teaches anybody that nights are quiet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from controller.core.errors import InputError
from controller.core.forecast import TOTAL

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Panel:
    """Demand of several teams. ``values`` has shape (rows, teams): mean GPUs wanted in each ``step_s`` seconds.

    Row k covers ``[origin_s + k·step_s, origin_s + (k+1)·step_s)``, epoch seconds. Demand is running plus pending.
    """

    names: tuple[str, ...]
    origin_s: int
    step_s: int
    timezone: str
    values: Array

    def __post_init__(self) -> None:
        if self.values.shape[1:] != (len(self.names),):
            raise ValueError("a panel has one column a name")
        if DAY_S % self.step_s:
            raise ValueError("a day is a whole number of steps")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def rows_a_day(self) -> int:
        """Rows in a day."""
        return DAY_S // self.step_s

    def row(self, at_s: int) -> int:
        """The row that begins at or contains an instant; a decision then knows the rows before it."""
        return (at_s - self.origin_s) // self.step_s

    def time(self, row: int) -> int:
        """The instant at which a row begins."""
        return self.origin_s + row * self.step_s

    def select(self, patterns: Sequence[str]) -> Panel:
        """The teams that match any glob; no match is an error that names the teams there are."""
        keep = [i for i, name in enumerate(self.names) if any(fnmatchcase(name, p) for p in patterns)]
        if not keep:
            shown = ", ".join(self.names[:12]) + (", …" if len(self.names) > 12 else "")
            raise InputError.one("--team", " ".join(patterns), f"a glob that matches one of: {shown}")
        return replace(self, names=tuple(self.names[i] for i in keep), values=self.values[:, keep])

    def until(self, row: int) -> Panel:
        """The rows before ``row``."""
        return replace(self, values=self.values[:row])

    def scaled(self, factor: float) -> Panel:
        """Every value times a factor."""
        return replace(self, values=self.values * factor)

    def masked(self, gaps: Sequence[tuple[int, int]], prefix: str = "") -> Panel:
        """NaN in ``[from, to)`` seconds after the origin, for teams whose name begins with ``prefix``."""
        values = self.values.copy()
        seconds = np.arange(self.rows) * self.step_s
        columns = [i for i, name in enumerate(self.names) if name.startswith(prefix)]
        for start, stop in gaps:
            rows = np.flatnonzero((seconds + self.step_s > start) & (seconds < stop))
            values[rows[:, None], np.array(columns, dtype=np.int64)] = np.nan
        return replace(self, values=values)

    def total(self) -> Array:
        """The sum of all teams, NaN where any is unknown."""
        return np.asarray(self.values.sum(axis=1), dtype=np.float64)

    def with_total(self) -> Panel:
        """The panel with the total as a last column of its own (unless it has one already)."""
        if TOTAL in self.names:
            return self
        return replace(self, names=(*self.names, TOTAL), values=np.column_stack([self.values, self.total()]))

    def renamed(self, aliases: dict[str, str]) -> Panel:
        """Join the histories of teams that were renamed (old name → new name); both present at once are added."""
        names = tuple(sorted({aliases.get(name, name) for name in self.names}))
        values = np.full((self.rows, len(names)), np.nan)
        for old, column in zip(self.names, self.values.T, strict=True):
            j = names.index(aliases.get(old, old))
            values[:, j] = np.where(np.isnan(values[:, j]), column, values[:, j] + np.nan_to_num(column))
        return replace(self, names=names, values=values)


DAY_S = 86_400


def carried_forward(values: Array) -> Array:
    """The last known value at each row (along axis 0); leading unknowns stay NaN."""
    known = ~np.isnan(values)
    rows = np.arange(len(values)).reshape(-1, *([1] * (values.ndim - 1)))
    last = np.maximum.accumulate(np.where(known, rows, -1), axis=0)
    filled = np.take_along_axis(values, np.maximum(last, 0), axis=0)
    return np.where(last >= 0, filled, np.nan)
