"""The mechanics of one pool: gangs queue, are admitted under quotas, packed on nodes, run, end and are evicted.

No policy in here: who may hold how much, how many nodes there are and who is evicted is decided outside. Time moves
from event to event (arrival, end, node ready); all that happens at one second is taken in before anything is admitted,
ends first. Every GPU-second that was bought is busy or idle, and every busy one is work or loss: ``check`` asserts it.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from controller.core.quantities import MILLI
from controller.worlds.simulated.jobs import Gang, Job
from controller.worlds.simulated.packing import Bins
from controller.worlds.simulated.parts import Account, Node
from controller.worlds.simulated.queue import Queue

_END, _NODE = 0, 1


class Cluster:
    """One pool of nodes of ``gpus_per_node`` GPUs. ``quotas``: by owner (all, for preemptible work only)."""

    def __init__(
        self, gpus_per_node: int, now_s: int = 0, *, on_end: Callable[[Gang, int], None] | None = None
    ) -> None:
        self.gpus_per_node = gpus_per_node
        self.now_s = now_s
        self.nodes: dict[str, Node] = {}
        self.gangs: dict[str, Gang] = {}
        self.quotas: dict[str, tuple[int, int]] = {}
        self.account = Account()
        self.held: dict[str, int] = {}
        self.waiting: dict[str, int] = {}
        self.changed: set[str] = set()
        self.changed_nodes: set[str] = set()
        self.counted: dict[str, int] = {}
        self.counted_firm: dict[str, int] = {}
        self._bins = Bins()
        self._queue = Queue()
        self._events: list[tuple[int, int, int, str, int]] = []
        self._seq = 0
        self._freed = False
        self._up = self._busy = self._booting = self._pending = 0
        self._on_end = on_end

    # what happens

    def submit(self, job: Job, now_s: int | None = None) -> Gang:
        """Queue a gang now (or at ``now_s``, once time has moved there); it is admitted with the next pass."""
        if job.name in self.gangs:
            raise ValueError(f"a gang of the name {job.name} is here already")
        self._seq += 1
        gang = Gang(job, self._seq, self.now_s if now_s is None else now_s)
        self.gangs[job.name] = gang
        self._enqueue(gang)
        return gang

    def withdraw(self, name: str) -> None:
        """Take a gang out, running or not: its owner no longer wants it. What it did counts as work."""
        gang = self.gangs[name]
        if gang.running:
            self._stop(gang)
            self.account.work += self._ran(gang) * gang.job.milli_gpus
        else:
            self._dequeue(gang)
        self._forget(gang)

    def evict(self, name: str) -> None:
        """Put a running gang back into the queue; it loses what it did since its last checkpoint."""
        gang = self.gangs[name]
        saved = gang.saved_at_s(self.now_s)
        kept = (saved - gang.started_at_s) if saved is not None and gang.started_at_s is not None else 0
        self._stop(gang)
        ran, amount = self._ran(gang), gang.job.milli_gpus
        self.account.work += kept * amount
        self.account.lost += (ran - kept) * amount
        self.account.evictions += 1
        gang.kept_s += kept
        gang.started_at_s, gang.nodes, gang.evict_at_s, gang.evict_for = None, (), None, ""
        gang.queued_at_s, gang.evictions, gang.epoch = self.now_s, gang.evictions + 1, gang.epoch + 1
        self._enqueue(gang)

    def add_node(
        self, name: str, ready_at_s: int | None, joined_at_s: int | None = None, gpus: int | None = None
    ) -> Node:
        """Ask for a node that will be ready at ``ready_at_s`` (now: at once; None: it never advertises its GPUs).

        ``gpus`` where it has other than ``gpus_per_node``.
        """
        joined = joined_at_s if joined_at_s is not None else (self.now_s if ready_at_s is None else ready_at_s)
        node = Node(name, self.gpus_per_node if gpus is None else gpus, self.now_s, joined, ready_at_s)
        self.nodes[name] = node
        self.changed_nodes.add(name)
        self.account.node_adds += 1
        self._booting += node.gpus * MILLI
        if ready_at_s is not None and ready_at_s <= self.now_s:
            self._open(node)
        elif ready_at_s is not None:
            heappush(self._events, (ready_at_s, _NODE, len(self.nodes), name, 0))
        return node

    def cordon(self, name: str, *, interrupted: bool = False) -> None:
        """Let no further pod onto a node."""
        node = self.nodes[name]
        if node.serving:
            self._bins.remove(name)
        node.cordoned = node.cordoned or not interrupted
        node.interrupted_at_s = self.now_s if interrupted else node.interrupted_at_s
        self.changed_nodes.add(name)

    def uncordon(self, name: str) -> None:
        """Open a cordoned node again."""
        node = self.nodes[name]
        node.cordoned = False
        if node.serving:
            self._bins.add(name, node.gpus * MILLI - node.used)
            self._freed = True
        self.changed_nodes.add(name)

    def remove_node(self, name: str) -> list[str]:
        """Take a node away; gangs with a pod on it are put back into the queue, their names returned."""
        node = self.nodes[name]
        if node.serving:
            self._bins.remove(name)
        node.cordoned = True
        hit = [gang.job.name for gang in self.gangs.values() if name in gang.nodes]
        for gang_name in hit:
            self.evict(gang_name)
        if node.up:
            self._up -= node.gpus * MILLI
        else:
            self._booting -= node.gpus * MILLI
        del self.nodes[name]
        self.changed_nodes.add(name)
        return hit

    def set_quota(self, team: str, milli_gpus: int, preemptible_milli_gpus: int = 0) -> None:
        """Bound what a team may be admitted to; what it holds already stays."""
        if self.quotas.get(team) != (milli_gpus, preemptible_milli_gpus):
            self.quotas[team] = (milli_gpus, preemptible_milli_gpus)
            self._freed = True

    # time

    def advance(self, to_s: int) -> None:
        """Let time pass until ``to_s``: ends and nodes that get ready, with an admission pass after each moment.

        At ``to_s`` itself nothing is admitted yet: what else happens at that second comes first (``admit``, or the
        next ``advance``, follows).
        """
        while self.now_s < to_s:
            self.admit()
            at = min(to_s, self._events[0][0]) if self._events else to_s
            self._move_to(at)
            while self._events and self._events[0][0] == at:
                self._happen(*heappop(self._events))

    def admit(self) -> None:
        """Start what is allowed and fits, in the order of the queue; a gang that must wait holds up no other."""
        if not self.has_news:
            return
        heads = self._queue.heads(everyone=self._freed)
        self._freed = False
        while heads:
            _, key = heappop(heads)
            gang = self._queue.head(key)
            if gang is not None and self._start(gang):
                after = self._queue.head(key)
                if after is not None:
                    heappush(heads, ((-after.job.priority, after.job.submit_s, after.seq), key))

    @property
    def has_news(self) -> bool:
        """Whether anything changed since the last pass that could let a gang start."""
        return self._freed or bool(self._queue.touched)

    def look_again(self) -> None:
        """Make the next pass look at every line."""
        self._freed = True

    # inside

    def _happen(self, at: int, kind: int, _: int, name: str, epoch: int) -> None:
        if kind == _NODE:
            node = self.nodes.get(name)
            if node is not None and not node.up:
                self._open(node)
            return
        gang = self.gangs.get(name)
        if gang is not None and gang.epoch == epoch and gang.end_s == at:
            self._stop(gang)
            self.account.work += self._ran(gang) * gang.job.milli_gpus
            self.account.done += 1
            if self._on_end:
                self._on_end(gang, at)
            self._forget(gang)

    def _move_to(self, at: int) -> None:
        passed = at - self.now_s
        assert passed >= 0, "time never goes back"
        account = self.account
        account.up += self._up * passed
        account.busy += self._busy * passed
        account.booting += self._booting * passed
        account.waiting += self._pending * passed
        self.now_s = at

    def _open(self, node: Node) -> None:
        amount = node.gpus * MILLI
        node.up, node.idle_since_s = True, self.now_s
        self._up += amount
        self._booting -= amount
        self.changed_nodes.add(node.name)
        if node.serving:
            self._bins.add(node.name, amount)
            self._freed = True

    def may_hold(self, gang: Gang) -> bool:
        """Whether quotas let a gang start."""
        team, amount = gang.job.counts_for, gang.job.milli_gpus
        quota = self.quotas.get(team)
        if quota is None:
            return True
        limit, only_preemptible = quota
        if self.counted.get(team, 0) + amount > limit:
            return False
        return gang.job.preemptible or self.counted_firm.get(team, 0) + amount <= limit - only_preemptible

    def _start(self, gang: Gang) -> bool:
        job = gang.job
        if not self.may_hold(gang):
            return False
        nodes = self._bins.place(job.pods, job.milli_gpus_per_pod)
        if nodes is None:
            return False
        self._dequeue(gang)
        gang.started_at_s, gang.nodes = self.now_s, nodes
        gang.waited_s += self.now_s - gang.queued_at_s
        if gang.first_start_s is None:
            gang.first_start_s = self.now_s
        self._use(gang, 1)
        if gang.end_s is not None:
            heappush(self._events, (gang.end_s, _END, gang.seq, job.name, gang.epoch))
        return True

    def _stop(self, gang: Gang) -> None:
        self._use(gang, -1)
        self._freed = True

    def _use(self, gang: Gang, sign: int) -> None:
        job = gang.job
        for name in gang.nodes:
            node = self.nodes[name]
            node.used += sign * job.milli_gpus_per_pod
            node.idle_since_s = self.now_s if not node.used else None
            if node.serving:
                self._bins.change(name, -sign * job.milli_gpus_per_pod)
            self.changed_nodes.add(name)
        amount = sign * job.milli_gpus
        self._count(job, amount)

    def _count(self, job: Job, amount: int) -> None:
        self._busy += amount
        self.held[job.team] = self.held.get(job.team, 0) + amount
        share = job.counts_for
        self.counted[share] = self.counted.get(share, 0) + amount
        if not job.preemptible:
            self.counted_firm[share] = self.counted_firm.get(share, 0) + amount
        self.changed.add(job.name)

    def _enqueue(self, gang: Gang) -> None:
        self._queue.add(gang)
        self._wait(gang, 1)

    def _dequeue(self, gang: Gang) -> None:
        self._wait(gang, -1)

    def _wait(self, gang: Gang, sign: int) -> None:
        amount = sign * gang.job.milli_gpus
        self._pending += amount
        self.waiting[gang.job.team] = self.waiting.get(gang.job.team, 0) + amount
        self.changed.add(gang.job.name)

    def _ran(self, gang: Gang) -> int:
        assert gang.started_at_s is not None
        return self.now_s - gang.started_at_s

    def _forget(self, gang: Gang) -> None:
        gang.gone = True
        del self.gangs[gang.job.name]
        self.changed.add(gang.job.name)

    # looking

    @property
    def free(self) -> int:
        """Milli-GPUs free on serving nodes."""
        return self._bins.total

    @property
    def demand(self) -> int:
        """Milli-GPUs held and waited for."""
        return self._busy + self._pending

    @property
    def busy(self) -> int:
        """Milli-GPUs held."""
        return self._busy

    def check(self) -> None:
        """Assert that GPU-seconds are conserved and every amount agrees with the gangs and nodes it counts."""
        running = [gang for gang in self.gangs.values() if gang.running]
        now = sum(self._ran(gang) * gang.job.milli_gpus for gang in running)
        assert self.account.busy == self.account.work + self.account.lost + now, "busy GPU-seconds are work or loss"
        assert self._busy == sum(gang.job.milli_gpus for gang in running)
        assert self._pending == sum(gang.job.milli_gpus for gang in self.gangs.values() if not gang.running)
        assert self._up == sum(node.gpus * MILLI for node in self.nodes.values() if node.up)
        assert self.account.busy <= self.account.up, "nothing runs on GPUs that are not there"
        used: dict[str, int] = {}
        for gang in running:
            for name in gang.nodes:
                used[name] = used.get(name, 0) + gang.job.milli_gpus_per_pod
        for node in self.nodes.values():
            assert node.used == used.get(node.name, 0) <= node.gpus * MILLI, f"node {node.name} holds what runs on it"

    # a state that can be kept

    def dump(self) -> dict[str, Any]:
        """The whole state as plain JSON."""
        return {
            "now_s": self.now_s,
            "seq": self._seq,
            "quotas": {team: list(quota) for team, quota in self.quotas.items()},
            "nodes": [{name: getattr(node, name) for name in Node.__slots__} for node in self.nodes.values()],
            "gangs": [gang.dump() for gang in self.gangs.values()],
            "account": {name: getattr(self.account, name) for name in Account.__slots__},
        }

    @classmethod
    def load(cls, data: dict[str, Any], gpus_per_node: int) -> Cluster:
        """The cluster of ``dump``: everything else follows from gangs and nodes."""
        cluster = cls(gpus_per_node, data["now_s"])
        cluster._seq = data["seq"]
        cluster.quotas = {team: (quota[0], quota[1]) for team, quota in data["quotas"].items()}
        for order, kept in enumerate(data["nodes"]):
            cluster._restore_node(Node(**kept), order)
        for kept in data["gangs"]:
            cluster._restore_gang(Gang.load(kept))
        cluster.account = Account(**data["account"])
        cluster._freed = True
        return cluster

    def _restore_node(self, node: Node, order: int) -> None:
        self.nodes[node.name] = node
        self.changed_nodes.add(node.name)
        if not node.up:
            self._booting += node.gpus * MILLI
            if node.ready_at_s is not None:
                heappush(self._events, (node.ready_at_s, _NODE, order, node.name, 0))
            return
        self._up += node.gpus * MILLI
        if node.serving:
            self._bins.add(node.name, node.gpus * MILLI - node.used)

    def _restore_gang(self, gang: Gang) -> None:
        self.gangs[gang.job.name] = gang
        if not gang.running:
            self._enqueue(gang)
            return
        job = gang.job
        self._count(job, job.milli_gpus)
        if gang.end_s is not None:
            heappush(self._events, (gang.end_s, _END, gang.seq, job.name, gang.epoch))
