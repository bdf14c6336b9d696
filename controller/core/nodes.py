"""What a pool can serve with: each node's phase, and what is free on it.

Ready is not usable. A node counts as booting until its GPUs are allocatable, and as ``gpu_missing`` when they still
are not fifteen minutes after it joined: then it is replaced once, because the replacement counts as booting in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from controller.core.policy import Pool
from controller.core.quantities import MILLI
from controller.core.snapshot import Node, PoolObservation, Snapshot

GPU_MISSING_AFTER_S = 900
"""Device plugins have registered long before; users reported nodes that never advertise a GPU (CASES.md K1)."""


class Phase(StrEnum):
    """Where a node is in its life."""

    REQUESTED = "requested"
    BOOTING = "booting"
    READY = "ready"
    GPU_MISSING = "gpu_missing"
    CORDONED = "cordoned"
    INTERRUPTED = "interrupted"
    GONE = "gone"


TRANSITIONS: Mapping[Phase, frozenset[Phase]] = {
    Phase.REQUESTED: frozenset(
        {Phase.BOOTING, Phase.READY, Phase.GPU_MISSING, Phase.CORDONED, Phase.INTERRUPTED, Phase.GONE}
    ),
    Phase.BOOTING: frozenset({Phase.READY, Phase.GPU_MISSING, Phase.CORDONED, Phase.INTERRUPTED, Phase.GONE}),
    Phase.READY: frozenset({Phase.BOOTING, Phase.GPU_MISSING, Phase.CORDONED, Phase.INTERRUPTED, Phase.GONE}),
    Phase.GPU_MISSING: frozenset({Phase.READY, Phase.CORDONED, Phase.INTERRUPTED, Phase.GONE}),
    Phase.CORDONED: frozenset({Phase.BOOTING, Phase.READY, Phase.GPU_MISSING, Phase.INTERRUPTED, Phase.GONE}),
    Phase.INTERRUPTED: frozenset({Phase.GONE}),
    Phase.GONE: frozenset(),
}
"""The moves that a node can make between two observations, which may lie far apart; anything else is a fault of the
observer. A device plugin that dies takes a ready node back: its GPUs are missing again."""

SERVING = frozenset({Phase.READY})
COMING = frozenset({Phase.REQUESTED, Phase.BOOTING})


def phase(node: Node, now_s: int) -> Phase:
    """A node's phase, from what was observed of it."""
    if node.interrupted_at_s is not None:
        return Phase.INTERRUPTED
    if node.cordoned:
        return Phase.CORDONED
    if node.allocatable_milli_gpus > 0:
        return Phase.READY
    if node.joined_at_s is None:
        return Phase.REQUESTED
    return Phase.GPU_MISSING if now_s - node.joined_at_s >= GPU_MISSING_AFTER_S else Phase.BOOTING


@dataclass(frozen=True, slots=True)
class Supply:
    """A pool's nodes by phase; milli-GPUs. ``free`` and ``used`` are by name of serving node."""

    pool: str
    nodes: tuple[tuple[Node, Phase], ...]
    allocatable: int
    free: dict[str, int]
    used: dict[str, int]
    counts: dict[Phase, int]
    live_gpus: int
    micro_usd_per_hour: int

    def count(self, *phases: Phase) -> int:
        """Nodes in any of the phases."""
        return sum(self.counts.get(p, 0) for p in phases)

    @property
    def counted(self) -> int:
        """Nodes that serve or are about to: what a target number of nodes is compared with."""
        return self.count(Phase.READY, Phase.REQUESTED, Phase.BOOTING)

    @property
    def free_total(self) -> int:
        """Free milli-GPUs on serving nodes."""
        return sum(self.free.values())


def supplies(snapshot: Snapshot, now_s: int) -> tuple[dict[str, Supply], tuple[str, ...]]:
    """Each pool's supply, and the names of nodes outside every pool, which are otherwise ignored."""
    by_pool: dict[str, list[tuple[Node, Phase]]] = {pool.name: [] for pool in snapshot.pools}
    ignored = []
    for node in snapshot.nodes:
        if node.pool:
            by_pool[node.pool].append((node, phase(node, now_s)))
        else:
            ignored.append(node.name)
    used = _used(snapshot)
    return {name: _supply(name, nodes, used) for name, nodes in by_pool.items()}, tuple(ignored)


def _used(snapshot: Snapshot) -> dict[str, int]:
    used: dict[str, int] = {}
    for work in snapshot.workloads:
        amount = work.milli_gpus_per_pod
        if amount:
            for node in work.nodes:
                used[node] = used.get(node, 0) + amount
    return used


def _supply(pool: str, nodes: list[tuple[Node, Phase]], used: dict[str, int]) -> Supply:
    counts: dict[Phase, int] = {}
    free: dict[str, int] = {}
    held: dict[str, int] = {}
    allocatable = cost = gpus = 0
    for node, at in nodes:
        counts[at] = counts.get(at, 0) + 1
        cost += node.micro_usd_per_hour
        gpus += node.gpus
        held[node.name] = used.get(node.name, 0)
        if at in SERVING:
            allocatable += node.allocatable_milli_gpus
            free[node.name] = max(0, node.allocatable_milli_gpus - held[node.name])
    return Supply(pool, tuple(nodes), allocatable, free, held, counts, gpus, cost)


def most_nodes(pool: Pool, seen: PoolObservation) -> int:
    """The most nodes that may exist: by the policy's maximum and budget and by what can be had now."""
    gpus = pool.limits.max_gpus
    if seen.obtainable_gpus is not None:
        gpus = min(gpus, seen.obtainable_gpus)
    nodes = gpus // seen.gpus_per_node
    affordable = affordable_nodes(pool, seen)
    return nodes if affordable is None else min(nodes, affordable)


def affordable_nodes(pool: Pool, seen: PoolObservation) -> int | None:
    """How many nodes the hourly budget pays for; None without a budget or without a price."""
    budget = pool.limits.max_micro_usd_per_hour
    if budget is None or seen.micro_usd_per_node_hour <= 0:
        return None
    return budget // seen.micro_usd_per_node_hour


def obtainable(pool: Pool, seen: PoolObservation, supply: Supply) -> int:
    """Milli-GPUs that can be had: what may exist, and never less than what serves inside the pool's maximum."""
    possible = most_nodes(pool, seen) * seen.gpus_per_node * MILLI
    return max(possible, min(supply.allocatable, pool.limits.max_gpus * MILLI))
