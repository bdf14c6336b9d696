"""Best fit: a pod goes to the node on which it leaves least, so that whole nodes stay whole for gangs."""

from __future__ import annotations

from bisect import bisect_left, insort


class Bins:
    """Free milli-GPUs by node, and nodes by what they have free (sorted by name, so that ties never depend on luck)."""

    def __init__(self) -> None:
        self.free: dict[str, int] = {}
        self._nodes: dict[int, list[str]] = {}
        self._levels: list[int] = []
        self.total = 0

    def add(self, node: str, free: int) -> None:
        """Open a node for pods."""
        self.free[node] = free
        self.total += free
        self._insert(node, free)

    def remove(self, node: str) -> None:
        """Close a node; pods on it stay where they are."""
        free = self.free.pop(node)
        self.total -= free
        self._take(node, free)

    def change(self, node: str, by: int) -> None:
        """Free (positive) or use (negative) milli-GPUs of an open node."""
        free = self.free[node]
        self._take(node, free)
        self._insert(node, free + by)
        self.free[node] = free + by
        self.total += by

    def place(self, pods: int, amount: int) -> tuple[str, ...] | None:
        """Nodes for all pods of a gang, one entry a pod, or None when they do not all fit; nothing is used yet."""
        if pods * amount > self.total:
            return None
        chosen: list[str] = []
        for level in self._levels[bisect_left(self._levels, amount) :]:
            each = level // amount
            for node in self._nodes[level]:
                take = min(each, pods - len(chosen))
                chosen += [node] * take
                if len(chosen) == pods:
                    return tuple(chosen)
        return None

    def fits(self, pods: int, amount: int) -> bool:
        """Whether all pods of a gang find a place."""
        return self.place(pods, amount) is not None

    def _insert(self, node: str, level: int) -> None:
        nodes = self._nodes.get(level)
        if nodes is None:
            nodes = self._nodes[level] = []
            insort(self._levels, level)
        insort(nodes, node)

    def _take(self, node: str, level: int) -> None:
        nodes = self._nodes[level]
        del nodes[bisect_left(nodes, node)]
        if not nodes:
            del self._nodes[level]
            del self._levels[bisect_left(self._levels, level)]
