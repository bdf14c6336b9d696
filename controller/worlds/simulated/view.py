"""What a simulated pool looks like from outside, kept as values that are built anew only where something changed."""

from __future__ import annotations

from collections.abc import Iterable

from controller.core import snapshot as core
from controller.core.quantities import MILLI
from controller.worlds.simulated.cluster import Cluster
from controller.worlds.simulated.jobs import Gang
from controller.worlds.simulated.parts import Node


class View:
    """The nodes and gangs of one pool as the core's values."""

    def __init__(self, pool: str, cluster: Cluster, micro_usd_per_node_hour: int = 0) -> None:
        self._pool, self._cluster, self._price = pool, cluster, micro_usd_per_node_hour
        self._work: dict[str, core.Workload] = {}
        self._nodes: dict[str, core.Node] = {}
        self._saving: set[str] = set()
        self._joining: set[str] = set()

    def workloads(self) -> Iterable[core.Workload]:
        """All gangs."""
        cluster = self._cluster
        self._work_changed(cluster.changed)
        cluster.changed.clear()
        for name in self._saving:
            gang = cluster.gangs[name]
            if self._work[name].saved_at_s != gang.saved_at_s(cluster.now_s):
                self._work[name] = self._workload(gang)
        return self._work.values()

    def _work_changed(self, names: Iterable[str]) -> None:
        for name in names:
            gang = self._cluster.gangs.get(name)
            self._saving.discard(name)
            if gang is None:
                self._work.pop(name, None)
                continue
            self._work[name] = self._workload(gang)
            if gang.running and gang.job.checkpoint_s is not None:
                self._saving.add(name)

    def _workload(self, gang: Gang) -> core.Workload:
        job = gang.job
        return core.Workload(
            name=job.name,
            namespace=job.team,
            pool=self._pool,
            pods=job.pods,
            milli_gpus_per_pod=job.milli_gpus_per_pod,
            state=core.WorkloadState.RUNNING if gang.running else core.WorkloadState.PENDING,
            submitted_at_s=gang.queued_at_s,
            started_at_s=gang.started_at_s,
            priority=job.priority,
            preemptible=job.preemptible,
            saved_at_s=gang.saved_at_s(self._cluster.now_s),
            nodes=gang.nodes,
            evict_at_s=gang.evict_at_s,
            evict_for=gang.evict_for,
        )

    def nodes(self) -> Iterable[core.Node]:
        """All nodes, those that were asked for and have not joined included."""
        cluster = self._cluster
        now = cluster.now_s
        joined = {name for name in self._joining if name in cluster.nodes and cluster.nodes[name].joined_at_s <= now}
        for name in cluster.changed_nodes | joined:
            node = cluster.nodes.get(name)
            self._joining.discard(name)
            if node is None:
                self._nodes.pop(name, None)
                continue
            self._nodes[name] = self._node(node, now)
            if node.joined_at_s > now:
                self._joining.add(name)
        cluster.changed_nodes.clear()
        return self._nodes.values()

    def _node(self, node: Node, now_s: int) -> core.Node:
        return core.Node(
            name=node.name,
            pool=self._pool,
            gpus=node.gpus,
            allocatable_milli_gpus=node.gpus * MILLI if node.up else 0,
            requested_at_s=node.requested_at_s,
            joined_at_s=node.joined_at_s if node.joined_at_s <= now_s else None,
            ready_at_s=node.ready_at_s if node.up else None,
            cordoned=node.cordoned,
            idle_since_s=node.idle_since_s,
            interrupted_at_s=node.interrupted_at_s,
            micro_usd_per_hour=self._price,
        )
