"""What a tick needs of the ticks before it: demand and advised targets of the last hours, taken from the record.

It is derived from decisions only, so after a restart it is filled from the newest stored tick and the loop goes on as
if it had never stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from controller.core.actions import Decision
from controller.core.snapshot import RecentDemand
from controller.worlds.base import Past

REMEMBER_S = 6 * 3600
"""Longer than any hold that tuning may choose."""

Points = list[tuple[int, int]]


class Memory:
    """Points of the last ``REMEMBER_S``, by pool."""

    def __init__(self, remember_s: int = REMEMBER_S) -> None:
        self._remember_s = remember_s
        self._demand: dict[str, Points] = {}
        self._targets: dict[str, Points] = {}

    def past(self) -> Past:
        """What a world is handed for its next observation."""
        return Past(
            recent=tuple(RecentDemand(pool, tuple(points)) for pool, points in sorted(self._demand.items())),
            targets=tuple((pool, tuple(points)) for pool, points in sorted(self._targets.items())),
        )

    def remember(self, decision: Decision) -> None:
        """Take in one tick."""
        runnable: dict[str, int] = {}
        for team in decision.teams:
            amount = max(team.held, min(team.demand, team.share))
            runnable[team.pool] = runnable.get(team.pool, 0) + amount
        for pool in decision.pools:
            demand = runnable.get(pool.pool, 0) + pool.unowned_milli_gpus
            self._add(self._demand, pool.pool, decision.at_s, demand)
            if pool.advised_nodes is not None:
                self._add(self._targets, pool.pool, decision.at_s, pool.advised_nodes)

    def _add(self, kept: dict[str, Points], pool: str, at_s: int, value: int) -> None:
        points = kept.setdefault(pool, [])
        if not points or points[-1][0] < at_s:
            points.append((at_s, value))
        old = sum(1 for at, _ in points[:2] if at <= at_s - self._remember_s)
        del points[:old]

    def restore(self, snapshot: bytes, decision: bytes) -> int:
        """Fill from the canonical bytes of the newest stored tick (what it was handed, what it decided); its moment."""
        seen: dict[str, Any] = json.loads(snapshot)
        self._demand = {one["pool"]: _points(one["points"]) for one in seen["recent"]}
        self._targets = {p["name"]: _points(p["recent_targets"]) for p in seen["pools"] if p["recent_targets"]}
        decided: dict[str, Any] = json.loads(decision)
        at_s: int = decided["at_s"]
        for pool in decided["pools"]:
            mine = [team for team in decided["teams"] if team["pool"] == pool["pool"]]
            demand = sum(max(team["held"], min(team["demand"], team["share"])) for team in mine)
            self._add(self._demand, pool["pool"], at_s, demand + pool["unowned_milli_gpus"])
            if pool["advised_nodes"] is not None:
                self._add(self._targets, pool["pool"], at_s, pool["advised_nodes"])
        return at_s


def _points(pairs: Iterable[Iterable[int]]) -> Points:
    return [(at, value) for at, value in pairs]
