"""The simulated world: jobs and services of teams on pools whose nodes come and go as the decisions ask.

It answers the loop exactly as a cluster would. Its state is plain JSON (``dump``), so that a demo that was stopped
goes on where it was, and a crash in between asks for nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from controller.core.actions import (
    Action,
    Decision,
    Evict,
    GiveNotice,
    RemoveNode,
    SetCapacity,
    SetShare,
    WithdrawNotice,
    action_id,
)
from controller.core.snapshot import PastEviction, PoolObservation, ShareInForce, Snapshot
from controller.worlds.base import Outcome, Past, Status
from controller.worlds.simulated.cluster import Cluster
from controller.worlds.simulated.jobs import Gang, Job
from controller.worlds.simulated.provider import Provider
from controller.worlds.simulated.view import View

REMEMBER_EVICTIONS_S = 2 * 3600


@dataclass(frozen=True, slots=True)
class Service:
    """A team's replicas over time: ascending ``(at_s, replicas)``; the highest ordinals go first."""

    team: str
    pool: str
    milli_gpus_per_replica: int
    steps: tuple[tuple[int, int], ...]
    priority: int = 0
    owner: str = ""


@dataclass(slots=True)
class PoolSetup:
    """One pool: what its nodes are, where they come from, how many are there at the start.

    Until a decision sets a target, the pool scales as clusters do by default: nodes for what is pending, given back
    after ten idle minutes, at most ``max_nodes``.
    """

    provider: Provider
    gpus_per_node: int = 8
    nodes: int = 0
    micro_usd_per_node_hour: int = 0
    max_nodes: int | None = None


class SimulatedWorld:
    """Pools, jobs (by the pool they ask for) and services. ``now_s`` moves only by ``advance``."""

    def __init__(
        self,
        cluster: str,
        start_s: int,
        pools: Sequence[PoolSetup],
        jobs: Iterable[tuple[str, Job]] = (),
        services: Sequence[Service] = (),
    ) -> None:
        self.cluster = cluster
        self._now = start_s
        self._setups = {setup.provider.pool: setup for setup in sorted(pools, key=lambda s: s.provider.pool)}
        self.pools = {name: Cluster(setup.gpus_per_node, start_s) for name, setup in self._setups.items()}
        self._views = {
            name: View(name, self.pools[name], s.micro_usd_per_node_hour) for name, s in self._setups.items()
        }
        self._jobs = sorted(jobs, key=lambda item: (item[1].submit_s, item[1].name))
        self._next_job = 0
        self._services = tuple(services)
        self._steps = sorted((at, i, n) for i, service in enumerate(services) for at, n in service.steps)
        self._next_step = 0
        self._replicas = [0] * len(self._services)
        self._evictions: list[PastEviction] = []
        self._shares: dict[tuple[str, str], ShareInForce] = {}
        for name, setup in self._setups.items():
            self._start_nodes(name, setup)
        self._arrive()

    def _view(self, name: str) -> View:
        return View(name, self.pools[name], self._setups[name].micro_usd_per_node_hour)

    def _start_nodes(self, pool: str, setup: PoolSetup) -> None:
        for _ in range(setup.nodes):
            setup.provider.number += 1
            self.pools[pool].add_node(f"{pool}-{setup.provider.number:05}", self._now)

    # the world protocol

    @property
    def now_s(self) -> int:
        """Simulated time, epoch seconds."""
        return self._now

    def observe(self, past: Past) -> Snapshot:
        """What is at this moment; work and nodes that did not change are the same objects as before."""
        recent = [one for one in past.recent if one.pool in self.pools]
        return Snapshot(
            cluster=self.cluster,
            taken_at_s=self._now,
            pools=tuple(self._observe_pool(name, past) for name in self.pools),
            nodes=tuple(node for view in self._views.values() for node in view.nodes()),
            workloads=tuple(work for view in self._views.values() for work in view.workloads()),
            shares=tuple(self._shares.values()),
            evictions=tuple(self._evictions),
            recent=tuple(recent),
        )

    def _observe_pool(self, name: str, past: Past) -> PoolObservation:
        setup, cluster = self._setups[name], self.pools[name]
        provider = setup.provider
        return PoolObservation(
            name=name,
            gpus_per_node=setup.gpus_per_node,
            lead_s=provider.lead_s(),
            obtainable_gpus=provider.obtainable_gpus(cluster),
            target_nodes=provider.target,
            target_changed_at_s=provider.target_changed_at_s,
            recent_targets=past.targets_of(name),
            micro_usd_per_node_hour=setup.micro_usd_per_node_hour,
        )

    def apply(self, decision: Decision) -> list[Outcome]:
        """Carry out a decision; quotas and evictions take effect together, before anything is admitted again."""
        outcomes = []
        for action in decision.actions:
            why = self._apply(action)
            status = (
                Status.APPLIED if not why else (Status.DEFERRED if isinstance(action, RemoveNode) else Status.REFUSED)
            )
            outcomes.append(Outcome(action_id(action), status, why))
        return outcomes

    def _apply(self, action: Action) -> str:
        if action.pool not in self.pools:
            return f"there is no pool {action.pool}"
        match action:
            case SetShare():
                self._set_share(action)
                return ""
            case SetCapacity():
                return self._set_capacity(action)
            case RemoveNode():
                return self._setups[action.pool].provider.give_back(self.pools[action.pool], action.node)
            case GiveNotice() | WithdrawNotice():
                return self._notice(action)
            case Evict():
                return self._evict(action)
            case _:
                return "simulated GPUs are not partitioned"

    def _set_share(self, action: SetShare) -> None:
        self.pools[action.pool].set_quota(action.team, action.milli_gpus, action.preemptible_milli_gpus)
        share = ShareInForce(action.pool, action.team, action.milli_gpus, action.preemptible_milli_gpus, self._now)
        known = self._shares.get((action.pool, action.team))
        if known is None or (known.milli_gpus, known.preemptible_milli_gpus) != (
            share.milli_gpus,
            share.preemptible_milli_gpus,
        ):
            self._shares[action.pool, action.team] = share

    def _set_capacity(self, action: SetCapacity) -> str:
        provider = self._setups[action.pool].provider
        provider.set_target(action.nodes, self._now)
        asked, given = provider.reconcile(self.pools[action.pool])
        return "" if given >= asked else f"{given} of {asked} nodes: the provider has no more now"

    def _notice(self, action: GiveNotice | WithdrawNotice) -> str:
        cluster = self.pools[action.pool]
        gang = cluster.gangs.get(action.workload)
        if gang is None or not gang.running:
            return "the gang no longer runs"
        if isinstance(action, GiveNotice):
            gang.evict_at_s, gang.evict_for = action.evict_at_s, action.for_team
        else:
            gang.evict_at_s, gang.evict_for = None, ""
        cluster.changed.add(action.workload)
        return ""

    def _evict(self, action: Evict) -> str:
        cluster = self.pools[action.pool]
        gang = cluster.gangs.get(action.workload)
        if gang is None or not gang.running:
            return "the gang no longer runs"
        amount = gang.job.milli_gpus
        cluster.evict(action.workload)
        self._evictions.append(
            PastEviction(action.workload, action.pool, action.team, action.for_team, amount, self._now)
        )
        return ""

    # time

    def advance(self, to_s: int) -> None:
        """Let time pass, with all that happens in it."""
        while True:
            at = min(to_s, *self._next_moments(), to_s)
            for cluster in self.pools.values():
                cluster.advance(at)
            self._now = at
            for name, setup in self._setups.items():
                setup.provider.strike(self.pools[name])
            self._arrive()
            if at == to_s:
                break
        self._evictions = [past for past in self._evictions if past.at_s > self._now - REMEMBER_EVICTIONS_S]
        for name, setup in self._setups.items():
            cluster = self.pools[name]
            cluster.admit()
            if setup.provider.target is None:
                setup.provider.react(cluster, setup.max_nodes)
            else:
                setup.provider.reconcile(cluster)

    def _next_moments(self) -> list[int]:
        moments = []
        if self._next_job < len(self._jobs):
            moments.append(self._jobs[self._next_job][1].submit_s)
        if self._next_step < len(self._steps):
            moments.append(self._steps[self._next_step][0])
        for setup in self._setups.values():
            at = setup.provider.next_s()
            if at is not None:
                moments.append(at)
        return [max(at, self._now) for at in moments]

    def _arrive(self) -> None:
        while self._next_job < len(self._jobs) and self._jobs[self._next_job][1].submit_s <= self._now:
            pool, job = self._jobs[self._next_job]
            self.pools[pool].submit(job)
            self._next_job += 1
        while self._next_step < len(self._steps) and self._steps[self._next_step][0] <= self._now:
            _, index, replicas = self._steps[self._next_step]
            self._scale(index, replicas)
            self._next_step += 1

    def _scale(self, index: int, replicas: int) -> None:
        service, have = self._services[index], self._replicas[index]
        cluster = self.pools[service.pool]
        for ordinal in range(have, replicas):
            name = f"{service.team}-{ordinal:04}"
            amount = service.milli_gpus_per_replica
            cluster.submit(Job(name, service.team, self._now, None, 1, amount, service.priority, owner=service.owner))
        for ordinal in range(have - 1, replicas - 1, -1):
            cluster.withdraw(f"{service.team}-{ordinal:04}")
        self._replicas[index] = replicas

    def lead_s(self, pool: str) -> int:
        """A pool's lead as measured lately."""
        return self._setups[pool].provider.lead_s()

    @property
    def ends_s(self) -> int | None:
        """When the last of the input arrives; None without any."""
        moments = [self._jobs[-1][1].submit_s] if self._jobs else []
        moments += [self._steps[-1][0]] if self._steps else []
        return max(moments, default=None)

    def gang(self, name: str) -> Gang | None:
        """A gang that is queued or running."""
        return next((c.gangs[name] for c in self.pools.values() if name in c.gangs), None)

    def check(self) -> None:
        """Assert that GPU-seconds are conserved in each pool."""
        for cluster in self.pools.values():
            cluster.check()

    # a state that can be kept

    def dump(self) -> dict[str, Any]:
        """The state as plain JSON; the input (jobs, services, setups) is not part of it."""
        return {
            "now_s": self._now,
            "next_job": self._next_job,
            "next_step": self._next_step,
            "replicas": self._replicas,
            "pools": {name: cluster.dump() for name, cluster in self.pools.items()},
            "providers": {name: setup.provider.dump() for name, setup in self._setups.items()},
            "evictions": [[getattr(past, name) for name in PastEviction.__slots__] for past in self._evictions],
            "shares": [[getattr(share, name) for name in ShareInForce.__slots__] for share in self._shares.values()],
        }

    def load(self, data: dict[str, Any]) -> None:
        """Go on from a dumped state of a world with the same input."""
        self._now = data["now_s"]
        self._next_job, self._next_step = data["next_job"], data["next_step"]
        self._replicas = list(data["replicas"])
        for name, setup in self._setups.items():
            self.pools[name] = Cluster.load(data["pools"][name], setup.gpus_per_node)
            self._views[name] = self._view(name)
            setup.provider.load(data["providers"][name])
        self._evictions = [PastEviction(*past) for past in data["evictions"]]
        shares = [ShareInForce(*share) for share in data["shares"]]
        self._shares = {(share.pool, share.team): share for share in shares}
