"""Demand by team on an even grid, as the loop observed it: what the forecaster and the nightly tuning learn from.

A value observed at an instant stands for the step that ends there: at that moment it is the newest thing known, and a
forecaster that only reads steps that are over may read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from controller.core.demand import measure
from controller.core.forecast import TOTAL
from controller.core.policy import Policy
from controller.core.quantities import MILLI
from controller.core.snapshot import Snapshot
from forecaster.series import Array, Panel

STEP_S = 300
KEEP_S = 35 * 86_400


class DemandColumn(Protocol):
    """One series as the store gives it back: milli-GPUs on the grid; team "" is the pool's total."""

    @property
    def pool(self) -> str:
        """The pool."""

    @property
    def team(self) -> str:
        """The team."""

    @property
    def at_s(self) -> list[int]:
        """Instants."""

    @property
    def mean(self) -> list[int]:
        """Milli-GPUs wanted."""


class DemandRecorder:
    """One grid for all pools and teams; NaN where nothing was observed."""

    def __init__(self, timezone: str, step_s: int = STEP_S, keep_s: int = KEEP_S) -> None:
        self.timezone, self.step_s = timezone, step_s
        self._keep = keep_s // step_s
        self._columns: dict[tuple[str, str], int] = {}
        self._first: int | None = None
        self._rows = 0
        self._values = np.full((0, 0), np.nan)

    def observe(self, snapshot: Snapshot, policy: Policy) -> None:
        """Take in what a tick sees: every team of the policy in each of its pools, and each pool's total."""
        at_s = snapshot.taken_at_s
        seen = measure(snapshot, policy, at_s)
        for pool in policy.pools:
            for team in policy.teams:
                if team.in_pool(pool.name):
                    self.put(at_s, pool.name, team.name, seen.of(pool.name, team.name).total)
            self.put(at_s, pool.name, TOTAL, seen.pool_total(pool.name))

    def load(self, columns: Iterable[DemandColumn]) -> None:
        """Take in what was recorded before a restart, or a history that was loaded."""
        for column in columns:
            for at, value in zip(column.at_s, column.mean, strict=True):
                self.put(at, column.pool, column.team, value)

    def put(self, at_s: int, pool: str, team: str, milli_gpus: int) -> None:
        """One value observed at an instant; the highest of a step counts (a peak between two ticks is a peak)."""
        row = self._row(-(-at_s // self.step_s) - 1)
        column = self._column(pool, team)
        self._values[row, column] = np.fmax(self._values[row, column], milli_gpus / MILLI)

    def panel(self, pool: str) -> Panel:
        """A pool's teams and, as last column, its total."""
        teams = sorted(team for name, team in self._columns if name == pool and team != TOTAL)
        names = (*teams, TOTAL)
        columns = [self._columns[pool, name] for name in names]
        values: Array = self._values[: self._rows][:, columns]
        return Panel(names, (self._first or 0) * self.step_s, self.step_s, self.timezone, values)

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools of which anything was observed."""
        return tuple(sorted({pool for pool, _ in self._columns}))

    def _row(self, step: int) -> int:
        if self._first is None:
            self._first = step
        if step < self._first:
            grow = self._first - step
            self._values = np.concatenate([np.full((grow, self._values.shape[1]), np.nan), self._values])
            self._rows, self._first = self._rows + grow, step
        row = step - self._first
        if row >= len(self._values):
            room = max(row + 1 - len(self._values), len(self._values) // 2, 288)
            self._values = np.concatenate([self._values, np.full((room, self._values.shape[1]), np.nan)])
        self._rows = max(self._rows, row + 1)
        return self._trim(row)

    def _trim(self, row: int) -> int:
        spare = self._rows - 2 * self._keep
        if spare <= 0:
            return row
        drop = self._rows - self._keep
        self._values = self._values[drop:].copy()
        self._first, self._rows = (self._first or 0) + drop, self._keep
        return max(0, row - drop)

    def _column(self, pool: str, team: str) -> int:
        key = (pool, team)
        if key not in self._columns:
            self._columns[key] = len(self._columns)
            self._values = np.column_stack([self._values, np.full(len(self._values), np.nan)])
        return self._columns[key]
