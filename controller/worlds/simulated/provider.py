"""Where a simulated pool's nodes come from: boot times, shortages, partial fills, and nodes that fail.

A draw depends on the seed and the node's number alone, never on how many draws came before: a simulation that was
stopped and continued goes on exactly as one that was not.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import NormalDist
from typing import Any

from controller.core.quantities import MILLI
from controller.worlds.simulated.cluster import Cluster
from controller.worlds.simulated.parts import Node

FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S = 180, 1800
"""After a refusal an offering is left alone for 3 minutes, doubling to 30 (CASES.md K4)."""
REMEMBERED_LEADS = 32
REACTIVE_IDLE_S = 600
"""Karpenter's and Cluster Autoscaler's usual time until an idle node is given back."""


@dataclass(frozen=True, slots=True)
class Boot:
    """Seconds from asking for a node to a pod running on it: fixed (p90 None) or lognormal through both quantiles.

    ``joined_permille`` of it passes until the node has joined; it advertises its GPUs at the end.
    """

    p50_s: int
    p90_s: int | None = None
    joined_permille: int = 800

    def draw(self, seed: int, number: int) -> int:
        """The boot time of one node."""
        if self.p90_s is None or self.p90_s <= self.p50_s:
            return self.p50_s
        sigma = math.log(self.p90_s / self.p50_s) / NormalDist().inv_cdf(0.9)
        uniform = random.Random(f"boot/{seed}/{number}").random()  # noqa: S311 - a simulation, not a secret
        return max(1, round(self.p50_s * math.exp(sigma * NormalDist().inv_cdf(min(max(uniform, 1e-9), 1 - 1e-9)))))


@dataclass(frozen=True, slots=True)
class Shortage:
    """In ``[start_s, stop_s)`` the provider gives at most ``nodes`` an ask: 0 is a stock-out, more a partial fill."""

    start_s: int
    stop_s: int
    nodes: int = 0


class FaultKind(StrEnum):
    """How a node fails."""

    DIES = "dies"
    INTERRUPTED = "interrupted"
    NO_GPU = "no-gpu"


@dataclass(frozen=True, slots=True)
class Fault:
    """At ``at_s`` the ``index``-th serving node (by name) fails; ``notice_s`` is the warning of an interruption.

    NO_GPU strikes the next node that is asked for from then on: it joins and never advertises a GPU.
    """

    at_s: int
    kind: FaultKind
    index: int = 0
    notice_s: int = 120


@dataclass(slots=True)
class Provider:
    """One pool's source of nodes: reconciles towards ``target`` as a provisioner does, backs off when refused."""

    pool: str
    boot: Boot
    seed: int = 0
    shortages: tuple[Shortage, ...] = ()
    faults: tuple[Fault, ...] = ()
    min_node_life_s: int = 0
    target: int | None = None
    target_changed_at_s: int | None = None
    number: int = 0
    refusals: int = 0
    refused_until_s: int | None = None
    leads: list[int] = field(default_factory=list)
    struck: int = 0
    dying: dict[str, int] = field(default_factory=dict)
    blind: int = 0

    def set_target(self, nodes: int, now_s: int) -> None:
        """Aim at so many nodes."""
        if nodes != self.target:
            self.target, self.target_changed_at_s = nodes, now_s

    def reconcile(self, cluster: Cluster) -> tuple[int, int]:
        """Ask for the nodes that are missing; return how many were asked for and given."""
        now = cluster.now_s
        missing = (self.target or 0) - sum(1 for node in cluster.nodes.values() if counts(node, now))
        if missing <= 0 or (self.refused_until_s is not None and now < self.refused_until_s):
            return max(0, missing), 0
        most = min((s.nodes for s in self.shortages if s.start_s <= now < s.stop_s), default=missing)
        given = min(missing, most)
        for _ in range(given):
            self._launch(cluster)
        if given < missing:
            back_off = min(FIRST_BACK_OFF_S << self.refusals, LONGEST_BACK_OFF_S)
            self.refusals, self.refused_until_s = self.refusals + 1, now + back_off
        else:
            self.refusals, self.refused_until_s = 0, None
        return missing, given

    def react(self, cluster: Cluster, max_nodes: int | None) -> None:
        """What a cluster does by itself: nodes for what is pending, idle ones given back."""
        now = cluster.now_s
        for name in sorted(cluster.nodes):
            idle = cluster.nodes[name].idle_since_s
            if idle is not None and now - idle >= REACTIVE_IDLE_S:
                self.give_back(cluster, name)
        usable = sum(1 for node in cluster.nodes.values() if counts(node, now))
        wanted = -(-cluster.demand // (cluster.gpus_per_node * MILLI))
        self.target = max(usable, wanted if max_nodes is None else min(wanted, max_nodes))
        self.reconcile(cluster)
        self.target = None

    def _launch(self, cluster: Cluster) -> None:
        self.number += 1
        lead = self.boot.draw(self.seed, self.number)
        name = f"{self.pool}-{self.number:05}"
        joined = cluster.now_s + lead * self.boot.joined_permille // 1000
        blind, self.blind = self.blind > 0, max(0, self.blind - 1)
        cluster.add_node(name, None if blind else cluster.now_s + lead, joined)
        if not blind:
            self.leads = [*self.leads[1 - REMEMBERED_LEADS :], lead]

    def next_s(self) -> int | None:
        """The next moment at which a node fails."""
        times = [fault.at_s for fault in self.faults[self.struck : self.struck + 1]] + list(self.dying.values())
        return min(times, default=None)

    def strike(self, cluster: Cluster) -> list[str]:
        """Let the faults of this moment happen; return the gangs that were put back."""
        hit: list[str] = []
        for name in sorted(name for name, at in self.dying.items() if at <= cluster.now_s):
            del self.dying[name]
            if name in cluster.nodes:
                hit += cluster.remove_node(name)
        while self.struck < len(self.faults) and self.faults[self.struck].at_s <= cluster.now_s:
            hit += self._fail(self.faults[self.struck], cluster)
            self.struck += 1
        return hit

    def _fail(self, fault: Fault, cluster: Cluster) -> list[str]:
        if fault.kind is FaultKind.NO_GPU:
            self.blind += 1
            return []
        serving = sorted(name for name, node in cluster.nodes.items() if node.serving)
        if not serving:
            return []
        name = serving[fault.index % len(serving)]
        if fault.kind is FaultKind.DIES:
            return cluster.remove_node(name)
        cluster.cordon(name, interrupted=True)
        self.dying[name] = cluster.now_s + fault.notice_s
        return []

    def give_back(self, cluster: Cluster, name: str) -> str:
        """Cordon a node, look again, and remove it if it is still empty; "" when done, else why not."""
        node = cluster.nodes.get(name)
        if node is None:
            return ""
        if node.used:
            return "a pod has come onto the node"
        if node.up and cluster.now_s - (node.ready_at_s or node.requested_at_s) < self.min_node_life_s:
            return "the provider bills a minimum node life that has not passed"
        self.dying.pop(name, None)
        cluster.remove_node(name)
        return ""

    def lead_s(self) -> int:
        """The p90 of the lead times seen lately; before any was seen, of the distribution."""
        if not self.leads:
            return self.boot.p90_s or self.boot.p50_s
        ranked = sorted(self.leads)
        return ranked[math.ceil(0.9 * len(ranked)) - 1]

    def obtainable_gpus(self, cluster: Cluster) -> int | None:
        """While the provider has lately refused: what is there. Else nothing limits."""
        if self.refused_until_s is None or cluster.now_s >= self.refused_until_s:
            return None
        return sum(node.gpus for node in cluster.nodes.values() if counts(node, cluster.now_s))

    def dump(self) -> dict[str, Any]:
        """What changes over time, as plain JSON."""
        names = ("target", "target_changed_at_s", "number", "refusals", "refused_until_s", "leads", "struck", "dying")
        return {name: getattr(self, name) for name in (*names, "blind")}

    def load(self, data: dict[str, Any]) -> None:
        """Take over a dumped state."""
        for name, value in data.items():
            setattr(self, name, value)


def counts(node: Node, now_s: int) -> bool:
    """Whether a provisioner still counts on a node: it serves, or may yet."""
    if node.cordoned or node.interrupted_at_s is not None:
        return False
    return node.up or now_s - node.joined_at_s < 900  # as in controller.core.nodes: then its GPUs are missing
