"""What a world observed at one moment: nodes, work, shares in force, and the recent past that rules refer to.

Everything the core decides is derived from this value, so a restart in the middle of anything changes nothing. A
snapshot refuses to be born inconsistent (``InputError`` names the field); collections are sorted on the way in, so
the order in which an API listed things cannot matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from operator import attrgetter

from controller.core.errors import InputError, Problem


class WorkloadState(StrEnum):
    """Where a gang stands. Queued, suspended and gated work is pending: it is demand all the same."""

    PENDING = "pending"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """One physical GPU of a node that can be partitioned.

    ``profiles`` are the MIG instances it is cut into now (empty: whole GPU), ``used_milli_gpus`` what pods hold of it.
    """

    index: int
    profiles: tuple[str, ...] = ()
    used_milli_gpus: int = 0
    replicas: int = 1


@dataclass(frozen=True, slots=True)
class Node:
    """A node that exists or was asked for.

    ``pool`` is "" for a node outside every pool: it is listed and otherwise ignored. ``gpus`` is what its type
    carries, ``allocatable_milli_gpus`` what it advertises now (0 until the device plugin has registered).
    """

    name: str
    pool: str
    gpus: int
    allocatable_milli_gpus: int
    requested_at_s: int
    joined_at_s: int | None = None
    ready_at_s: int | None = None
    cordoned: bool = False
    idle_since_s: int | None = None
    interrupted_at_s: int | None = None
    cpu_milli: int = 0
    memory_mib: int = 0
    micro_usd_per_hour: int = 0
    model: str = ""
    devices: tuple[GpuDevice, ...] = ()


@dataclass(frozen=True, slots=True)
class Workload:
    """A gang: ``pods`` equal pods that start together or not at all. A plain pod is a gang of one.

    ``nodes`` has one entry a pod while running (a node may repeat). ``evict_at_s`` is the end of a notice that was
    given, ``evict_for`` the team it was given for. ``saved_at_s`` is the last checkpoint. CPU-only pods have
    ``milli_gpus_per_pod`` 0. ``gpu_busy_ppm`` is measured use of what it holds; None is unknown and never zero.
    """

    name: str
    namespace: str
    pool: str
    pods: int
    milli_gpus_per_pod: int
    state: WorkloadState
    submitted_at_s: int
    started_at_s: int | None = None
    priority: int = 0
    preemptible: bool = False
    expected_remaining_s: int | None = None
    saved_at_s: int | None = None
    nodes: tuple[str, ...] = ()
    cpu_milli_per_pod: int = 0
    memory_mib_per_pod: int = 0
    disruptions_allowed: int | None = None
    evict_at_s: int | None = None
    evict_for: str = ""
    evict_refused_since_s: int | None = None
    daemon: bool = False
    shared_gpu: bool = False
    mig_profile: str = ""
    gpu_busy_ppm: int | None = None
    idle_since_s: int | None = None

    @property
    def milli_gpus(self) -> int:
        """Milli-GPUs of the whole gang."""
        return self.pods * self.milli_gpus_per_pod

    @property
    def running(self) -> bool:
        """Whether the gang holds its GPUs now."""
        return self.state is WorkloadState.RUNNING


@dataclass(frozen=True, slots=True)
class ShareInForce:
    """A quota as the cluster enforces it now. ``preemptible_milli_gpus`` is the part only preemptible work may use."""

    pool: str
    team: str
    milli_gpus: int
    preemptible_milli_gpus: int = 0
    changed_at_s: int = 0


@dataclass(frozen=True, slots=True)
class PastEviction:
    """An eviction carried out lately, and for whom: what was freed is held for that team for a while."""

    workload: str
    pool: str
    team: str
    for_team: str
    milli_gpus: int
    at_s: int


@dataclass(frozen=True, slots=True)
class RecentDemand:
    """A pool's total demand over the last hours, as observed: ascending ``(at_s, milli_gpus)`` points."""

    pool: str
    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class PoolObservation:
    """What is known of a pool beside its nodes.

    ``gpus_per_node`` is the shape that new nodes have; ``obtainable_gpus`` the most that can be had now when a
    stock-out, a cloud quota or dead nodes limit it (None: the policy's maximum); ``target_nodes`` what was last asked
    for; ``lead_s`` the p90 of measured lead times; ``recent_targets`` the node targets advised over the last hours,
    before any hold, as recorded: ascending ``(at_s, nodes)``.
    """

    name: str
    gpus_per_node: int
    lead_s: int
    obtainable_gpus: int | None = None
    target_nodes: int | None = None
    target_changed_at_s: int | None = None
    recent_targets: tuple[tuple[int, int], ...] = ()
    micro_usd_per_node_hour: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One consistent observation of a cluster."""

    cluster: str
    taken_at_s: int
    pools: tuple[PoolObservation, ...]
    nodes: tuple[Node, ...] = ()
    workloads: tuple[Workload, ...] = ()
    shares: tuple[ShareInForce, ...] = ()
    evictions: tuple[PastEviction, ...] = ()
    recent: tuple[RecentDemand, ...] = ()
    incomplete: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for name, key in _ORDER.items():
            object.__setattr__(self, name, tuple(sorted(getattr(self, name), key=key)))
        problems = _problems(self)
        if problems:
            raise InputError(problems)


_ORDER = {
    "pools": attrgetter("name"),
    "nodes": attrgetter("name", "pool"),
    "workloads": attrgetter("name"),
    "shares": attrgetter("pool", "team"),
    "evictions": attrgetter("at_s", "workload"),
    "recent": attrgetter("pool"),
}


def _problems(snapshot: Snapshot) -> list[Problem]:
    pools = {pool.name for pool in snapshot.pools}
    problems = [*_repeated(snapshot), *_bad_pools(snapshot), *_bad_nodes(snapshot, pools)]
    problems += _bad_workloads(snapshot, pools)
    for share in snapshot.shares:
        if share.pool not in pools or min(share.milli_gpus, share.preemptible_milli_gpus) < 0:
            problems.append(
                Problem(
                    f"shares[{share.pool}/{share.team}]",
                    f"{share.milli_gpus}",
                    "a known pool, 0 or more milli-GPUs",
                )
            )
    return problems


def _repeated(snapshot: Snapshot) -> list[Problem]:
    problems = []
    for kind in ("pools", "nodes", "workloads"):
        items = getattr(snapshot, kind)
        for before, item in pairwise(items):
            if before.name != item.name:
                continue
            if kind == "nodes" and before.pool != item.pool:
                allowed = f"a node is in one pool, not in both {before.pool!r} and {item.pool!r}"
            else:
                allowed = "each name once"
            problems.append(Problem(f"{kind}[{item.name}]", item.name, allowed))
    return problems


def _bad_pools(snapshot: Snapshot) -> list[Problem]:
    problems = []
    for pool in snapshot.pools:
        if pool.gpus_per_node < 1:
            problems.append(Problem(f"pools[{pool.name}].gpus_per_node", str(pool.gpus_per_node), "1 or more"))
        if pool.lead_s < 0:
            problems.append(Problem(f"pools[{pool.name}].lead_s", str(pool.lead_s), "0 or more seconds"))
    return problems


def _bad_nodes(snapshot: Snapshot, pools: set[str]) -> list[Problem]:
    problems = []
    for node in snapshot.nodes:
        if node.pool and node.pool not in pools:
            problems.append(Problem(f"nodes[{node.name}].pool", node.pool, "a pool of the snapshot, or empty"))
        if node.gpus < 0 or node.allocatable_milli_gpus < 0:
            problems.append(Problem(f"nodes[{node.name}].gpus", str(node.gpus), "0 or more"))
    return problems


def _bad_workloads(snapshot: Snapshot, pools: set[str]) -> list[Problem]:
    problems = []
    nodes = {node.name for node in snapshot.nodes}
    for work in snapshot.workloads:
        path = f"workloads[{work.name}]"
        if work.pods < 1 or work.milli_gpus_per_pod < 0:
            problems.append(
                Problem(
                    f"{path}.pods",
                    f"{work.pods} x {work.milli_gpus_per_pod}",
                    "1 or more pods, 0 or more milli-GPUs",
                )
            )
        if work.pool not in pools and (work.pool or work.milli_gpus_per_pod):
            problems.append(Problem(f"{path}.pool", work.pool, "a pool of the snapshot"))
        if work.running and len(work.nodes) != work.pods:
            problems.append(
                Problem(
                    f"{path}.nodes",
                    str(len(work.nodes)),
                    f"one node for each of {work.pods} running pods",
                )
            )
        elif work.nodes and not nodes.issuperset(work.nodes):
            missing = sorted(set(work.nodes) - nodes)[0]
            problems.append(Problem(f"{path}.nodes", missing, "nodes of the snapshot"))
    return problems
