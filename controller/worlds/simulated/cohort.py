"""Quotas in a cohort as Kueue has them out of the box, for comparison: borrow freely, never reclaim.

A pass admits first what fits its team's nominal quota, then, with what is left over, everything else: Kueue sorts the
heads of its queues the same way (not borrowing before borrowing). A lent GPU comes back when its work ends.
"""

from __future__ import annotations

from collections.abc import Mapping

from controller.worlds.simulated.cluster import Cluster
from controller.worlds.simulated.jobs import Gang


class CohortCluster(Cluster):
    """A pool under nominal quotas (milli-GPUs by owner); an owner without one only borrows."""

    def __init__(self, gpus_per_node: int, now_s: int, *, nominal: Mapping[str, int]) -> None:
        super().__init__(gpus_per_node, now_s)
        self._nominal = dict(nominal)
        self._borrowing = False

    def may_hold(self, gang: Gang) -> bool:
        """Within the nominal quota, or in the second part of a pass, anything."""
        owner = gang.job.counts_for
        return self._borrowing or self.counted.get(owner, 0) + gang.job.milli_gpus <= self._nominal.get(owner, 0)

    def admit(self) -> None:
        """Admit within nominal quotas, then by borrowing."""
        if self.has_news:
            for self._borrowing in (False, True):
                self.look_again()
                super().admit()
