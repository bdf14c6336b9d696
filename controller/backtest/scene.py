"""A fixed fleet and the demand on it: what the ways of sharing are compared on.

Teams of which the trace has jobs are run job by job; of the others only a series is known, and it becomes units of one
GPU that come and go with it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from controller.backtest.traces import partitions
from controller.core.errors import InputError
from controller.core.policy import Bounds, Lending, Mode, Policy, Pool, PoolLimits, Team
from controller.core.quantities import MILLI, PPM, Amount
from controller.worlds.simulated import Cluster, Job
from controller.worlds.simulated.trace import load_input
from forecaster.history import panel_from_parquet
from forecaster.series import Panel

POOL = "fleet"
MINUTE_S = 60
TICK_S = 300


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes that never change: GPUs of each, by the partition (team, or "") that it belongs to."""

    nodes: tuple[tuple[str, int], ...]

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return sum(gpus for _, gpus in self.nodes)

    @property
    def gpus_per_node(self) -> int:
        """The size of the largest node: the shape of gangs."""
        return max(gpus for _, gpus in self.nodes)

    @property
    def partitions(self) -> dict[str, int]:
        """GPUs by team; empty where nodes are not partitioned."""
        found: Counter[str] = Counter()
        for team, gpus in self.nodes:
            if team:
                found[team] += gpus
        return dict(sorted(found.items()))

    def build(self, cluster: Cluster, team: str | None = None) -> Cluster:
        """Put the nodes into a cluster, those of one team only where one is named."""
        for number, (owner, gpus) in enumerate(self.nodes):
            if team is None or owner == team:
                cluster.add_node(f"{POOL}-{number:05}", cluster.now_s, gpus=gpus)
        return cluster


def read_fleet(folder: Path, policy: Policy | None) -> Fleet:
    """Partitions of ``nodes.csv``, else its whole cluster, else the maximum of the policy's first pool."""
    for scope in ("team", "cluster"):
        rows = [row for row in partitions(folder, scope) if row.gpus_per_node > 0 and row.nodes > 0]
        if rows:
            owner = scope == "team"
            return Fleet(
                tuple((row.name if owner else "", row.gpus_per_node) for row in rows for _ in range(row.nodes))
            )
    if policy is None:
        allowed = "team partitions in nodes.csv, or a policy given with --policy"
        raise InputError.one("--trace", folder, allowed)
    pool = policy.pools[0]
    return Fleet((("", pool.gpus_per_node),) * (pool.limits.max_gpus // pool.gpus_per_node))


@dataclass(frozen=True, slots=True)
class Scene:
    """Fleet, policy and demand. ``series`` has the teams that have no jobs; NaN in it is a gap for everybody."""

    fleet: Fleet
    policy: Policy
    teams: tuple[str, ...]
    left_out: tuple[str, ...]
    begin_s: int
    end_s: int
    jobs: tuple[Job, ...]
    series: Panel | None
    gaps: frozenset[int] = frozenset()
    _owners: dict[str, Team] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def grid_s(self) -> int:
        """How often is looked: each minute where jobs come and go at any second, else each step of the series."""
        return MINUTE_S if self.jobs else TICK_S

    def in_gap(self, at_s: int) -> bool:
        """Whether a moment lies in a gap of the trace."""
        return at_s // TICK_S in self.gaps

    def owner(self, team: str) -> Team:
        """The policy's team that a team of the trace belongs to."""
        if team not in self._owners:
            found = self.policy.team_of(team)
            assert found is not None, "teams that nobody owns were left out"
            self._owners[team] = found
        return self._owners[team]


def load_scene(folder: Path, policy: Policy | None = None) -> Scene:
    """Read fleet and demand; bad input is an ``InputError``. Teams without a partition or an owner are left out."""
    fleet = read_fleet(folder, policy)
    rules = partition_policy(fleet, folder) if policy is None else _on_fleet(policy, fleet)
    panel = panel_from_parquet(folder) if (folder / "demand_5min.parquet").exists() else None
    given = load_input(folder, rules, begin_after_s=0)
    working = {job.team for _, job in given.jobs}
    names = sorted(working | set(panel.names if panel else ()))
    teams = tuple(
        name for name in names if rules.team_of(name) is not None and (not fleet.partitions or name in fleet.partitions)
    )
    jobs = tuple(job for _, job in given.jobs if job.team in teams)
    series = None
    if panel is not None:
        shown = [name for name in panel.names if name in teams and name not in working]
        columns = [panel.names.index(name) for name in shown]
        series = replace(panel, names=tuple(shown), values=panel.values[:, columns]) if shown else None
    gaps = frozenset[int]() if panel is None else _gaps(panel)
    left_out = tuple(name for name in names if name not in teams)
    return Scene(fleet, rules, teams, left_out, given.begin_s, given.end_s, jobs, series, gaps)


def _gaps(panel: Panel) -> frozenset[int]:
    unknown = np.flatnonzero(np.isnan(panel.values).any(axis=1))
    return frozenset(panel.time(int(row)) // TICK_S for row in unknown)


def partition_policy(fleet: Fleet, folder: Path) -> Policy:
    """Partitions as floors, all the rest open: ceiling 100 %, everything may be recalled.

    A floor's owner is served in the same tick: no notice, and a unit may be recalled as often as it takes (an hour
    between two evictions protects gangs, a unit of one GPU is as good as any other). Each eviction is counted.
    """
    if not fleet.partitions:
        raise InputError.one("--policy", "", f"needed: nodes.csv of {folder.name} has no team partitions")
    teams = tuple(
        Team(name, (name,), bounds=Bounds(Amount(milli_gpus=gpus * MILLI), Amount(ppm=PPM)), preemptible=True)
        for name, gpus in fleet.partitions.items()
    )
    lending = Lending(notice_s=0, min_between_evictions_s=0)
    return _on_fleet(Policy("partitions", Mode.ENFORCE, "UTC", (_pool(fleet),), teams, lending), fleet)


def _pool(fleet: Fleet) -> Pool:
    limits = PoolLimits(fleet.gpus, fleet.gpus, min_node_life_s=0)
    return Pool(POOL, (), limits, gpus_per_node=fleet.gpus_per_node)


def _on_fleet(policy: Policy, fleet: Fleet) -> Policy:
    """The policy over this fleet: one pool of its size, applied for real."""
    pool = replace(_pool(fleet), wait_weight=policy.pools[0].wait_weight)
    teams = tuple(replace(team, pools=()) for team in policy.teams)
    return replace(policy, mode=Mode.ENFORCE, pools=(pool,), teams=teams)


class Arrivals:
    """Lets time pass in a cluster, with all that the scene brings."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._jobs = scene.jobs
        self._next = 0
        self._units: dict[str, list[str]] = {team: [] for team in (scene.series.names if scene.series else ())}
        self._count = 0
        self._row = 0

    def until(self, at_s: int, cluster: Cluster) -> None:
        """Until ``at_s``, what happens at that second included; nothing is admitted at it yet."""
        while self._next < len(self._jobs) and self._jobs[self._next].submit_s <= at_s:
            job = self._jobs[self._next]
            cluster.advance(max(job.submit_s, cluster.now_s))
            if job.team in self._scene.teams:
                cluster.submit(job)
            self._next += 1
        cluster.advance(at_s)
        series = self._scene.series
        while series is not None and self._row < series.rows and series.time(self._row) <= at_s:
            for team, wanted in zip(series.names, series.values[self._row], strict=True):
                # A gap changes nothing: what ran before it is taken to go on.
                if team in self._scene.teams and not np.isnan(wanted):
                    self._scale(team, round(float(wanted)), cluster)
            self._row += 1

    def _scale(self, team: str, wanted: int, cluster: Cluster) -> None:
        units = self._units[team]
        owner = self._scene.owner(team)
        for _ in range(wanted - len(units)):
            self._count += 1
            name = f"{team}-{self._count:07}"
            cluster.submit(Job(name, team, cluster.now_s, None, 1, MILLI, 0, owner.preemptible, owner=owner.name))
            units.append(name)
        if wanted < len(units):
            # Work that still waits is given up before work that runs; among equals the oldest is done first.
            ranked = sorted(units, key=lambda name: (cluster.gangs[name].running, name))
            for name in ranked[: len(units) - wanted]:
                cluster.withdraw(name)
                units.remove(name)
