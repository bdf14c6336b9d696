"""Quotas in a cohort as Kueue has them out of the box, for comparison: borrow freely, never reclaim.

A pass admits first what fits its team's nominal quota, then, with what is left over, everything else: Kueue sorts the
heads of its queues the same way (not borrowing before borrowing). A lent GPU comes back when its work ends.
"""

from __future__ import annotations

from collections.abc import Mapping

from controller.worlds.simulated.cluster import Cluster


class CohortCluster(Cluster):
    """A pool under nominal quotas (milli-GPUs by team); a team without one has none and only borrows."""

    def __init__(self, gpus_per_node: int, now_s: int, *, nominal: Mapping[str, int]) -> None:
        super().__init__(gpus_per_node, now_s)
        self._nominal = dict(nominal)

    def admit(self) -> None:
        """Admit within nominal quotas, then by borrowing."""
        if not self.has_news:
            return
        self.quotas = {team: (self._nominal.get(team, 0), 0) for team in self.waiting}
        self.look_again()
        super().admit()
        self.quotas = {}
        self.look_again()
        super().admit()
