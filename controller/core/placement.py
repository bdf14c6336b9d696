"""Stage 6: does a gang fit on the nodes there are, and how many more would it take?

GPUs that are free in number can be useless in shape: eight free GPUs on eight nodes hold no pod of eight. Packing runs
on a histogram of free amounts, not on nodes, so its cost depends on shapes and not on cluster size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from controller.core.demand import TeamDemand
from controller.core.lending import Division
from controller.core.nodes import COMING, Supply
from controller.core.quantities import MILLI, ceil_div
from controller.core.reasons import Reason, ReasonCode, reason
from controller.core.snapshot import Workload


@dataclass(frozen=True, slots=True)
class Placement:
    """What fits in a pool; milli-GPUs.

    ``needed_nodes`` hold what runs where it runs and let all admissible work start: those in use, those that waiting
    work will take, and those that are missing for it.
    """

    pool: str
    largest_gang: int
    stranded: int
    needed_nodes: int
    shape: int
    notes: tuple[Reason, ...]


class Packing:
    """Free amounts and how many nodes have them; pods go where they leave least (best fit)."""

    def __init__(self, free: Iterable[int]) -> None:
        self.nodes: dict[int, int] = {}
        for amount in free:
            self._change(amount, 1)

    def _change(self, amount: int, by: int) -> None:
        count = self.nodes.get(amount, 0) + by
        if count:
            self.nodes[amount] = count
        else:
            self.nodes.pop(amount, None)

    def pods_that_fit(self, amount: int) -> int:
        """How many pods of ``amount`` milli-GPUs would find a place."""
        return sum(count * (free // amount) for free, count in self.nodes.items())

    def place(self, pods: int, amount: int) -> int:
        """Place up to ``pods`` pods, return how many found no place."""
        while pods:
            free = min((f for f in self.nodes if f >= amount), default=None)
            if free is None:
                return pods
            # A node that is filled with as many pods as it takes is exactly what best fit ends with.
            each = min(free // amount, pods)
            count = min(self.nodes[free], max(1, pods // each))
            self._change(free, -count)
            self._change(free - each * amount, count)
            pods -= each * count
        return 0

    def extend(self, pods: int, amount: int, full: int) -> int:
        """Place a gang's pods, opening empty nodes of ``full`` for those without a place; return how many."""
        unplaced = self.place(pods, amount)
        each = full // amount
        if not unplaced or not each:
            return 0
        opened = ceil_div(unplaced, each)
        self._change(full, opened)
        self.place(unplaced, amount)
        return opened

    def largest_gang(self, gpus_per_node: int) -> int:
        """The most that one gang of equal pods could take, over pod sizes of 1 to a node's GPUs."""
        sizes = range(1, gpus_per_node + 1)
        return max((size * MILLI * self.pods_that_fit(size * MILLI) for size in sizes), default=0)


def check(
    supply: Supply, division: Division, demands: Sequence[TeamDemand], gpus_per_node: int, *, may_have: int
) -> Placement:
    """See what of the waiting work that shares admit fits now, and how many nodes it would take if it does not.

    ``may_have`` is the number of nodes that may exist at most.
    """
    now = Packing(supply.free.values())
    largest = now.largest_gang(gpus_per_node)
    coming = [node.gpus * MILLI for node, phase in supply.nodes if phase in COMING]
    packing = Packing([*supply.free.values(), *coming])
    empty = Packing([*(free for name, free in supply.free.items() if not supply.used[name]), *coming])
    waiting = sorted(admissible(division, demands), key=lambda w: (-w.priority, w.submitted_at_s, w.name))
    notes: list[Reason] = []
    missing = 0
    for work in waiting:
        missing += _pack(packing, work, gpus_per_node, now, notes, supply)
    smallest = min((w.milli_gpus_per_pod for d in demands for w in d.waiting), default=0)
    stranded = sum(free for free in supply.free.values() if 0 < free < smallest)
    if stranded and waiting:
        notes.append(
            reason(ReasonCode.FRAGMENTED, pool=supply.pool, stranded_milli_gpus=stranded, smallest_milli_gpus=smallest)
        )
    notes += _above_share(division, demands)
    missing = min(missing, max(0, may_have - supply.counted))
    spare = sum(min(count, packing.nodes.get(free, 0)) for free, count in empty.nodes.items())
    needed = supply.counted - spare + missing
    return Placement(supply.pool, largest, stranded, needed, common_shape(demands, gpus_per_node), tuple(notes))


def _above_share(division: Division, demands: Sequence[TeamDemand]) -> Iterator[Reason]:
    """The oldest gang of each team that is larger than all the team may hold: it waits until the share has grown."""
    for demand in demands:
        share = division.of(demand.team)
        allowed = share.share if share else 0
        large = [work for work in demand.waiting if work.milli_gpus > allowed]
        if large:
            work = min(large, key=lambda w: (w.submitted_at_s, w.name))
            yield reason(
                ReasonCode.GANG_ABOVE_SHARE,
                pool=demand.pool,
                team=demand.team,
                subject=work.name,
                asked_milli_gpus=work.milli_gpus,
                share_milli_gpus=allowed,
            )


def _pack(
    packing: Packing, work: Workload, gpus_per_node: int, now: Packing, notes: list[Reason], supply: Supply
) -> int:
    if now.pods_that_fit(work.milli_gpus_per_pod) < work.pods and supply.free_total >= work.milli_gpus:
        notes.append(
            reason(
                ReasonCode.GANG_DOES_NOT_FIT,
                pool=supply.pool,
                subject=work.name,
                asked_milli_gpus=work.milli_gpus,
                free_milli_gpus=supply.free_total,
            )
        )
    return packing.extend(work.pods, work.milli_gpus_per_pod, gpus_per_node * MILLI)


def admissible(division: Division, demands: Sequence[TeamDemand]) -> list[Workload]:
    """Waiting gangs that fit inside their team's share beside what it holds, by priority and then age."""
    found = []
    for demand in demands:
        share = division.of(demand.team)
        room = share.share - demand.held if share else 0
        for work in sorted(demand.waiting, key=lambda w: (-w.priority, w.submitted_at_s, w.name)):
            if work.milli_gpus <= room:
                room -= work.milli_gpus
                found.append(work)
    return found


def common_shape(demands: Sequence[TeamDemand], gpus_per_node: int) -> int:
    """The milli-GPUs of the pod that most of the demand consists of, for warm capacity to be shaped like it."""
    amounts: dict[int, int] = {}
    for demand in demands:
        for work in (*demand.running, *demand.waiting):
            amounts[work.milli_gpus_per_pod] = amounts.get(work.milli_gpus_per_pod, 0) + work.milli_gpus
    return max(amounts, key=lambda a: (amounts[a], a), default=gpus_per_node * MILLI)
