"""A demand series as snapshots: each team's demand as one gang of GPUs that it waits for.

Nothing is known of jobs or nodes in a series, so there are no nodes and all demand is pending. Good for what depends on
demand alone: shares, forecasts, headroom targets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from controller.core.quantities import MILLI
from controller.core.snapshot import PoolObservation, Snapshot, Workload, WorkloadState


def snapshots_of_demand(
    cluster: str, pool: PoolObservation, rows: Iterable[tuple[int, Mapping[str, float]]]
) -> Iterator[Snapshot]:
    """One snapshot a row ``(at_s, GPUs wanted by team)``; a gang's age counts from when its team's demand began."""
    since: dict[str, int] = {}
    for at_s, wanted in rows:
        since = {team: since.get(team, at_s) for team, gpus in wanted.items() if gpus > 0}
        work = tuple(
            _gang(team, round(wanted[team] * MILLI), began, pool.name) for team, began in sorted(since.items())
        )
        yield Snapshot(cluster, at_s, (pool,), workloads=tuple(one for pair in work for one in pair))


def _gang(team: str, milli_gpus: int, since_s: int, pool: str) -> list[Workload]:
    """Whole GPUs as one gang of single-GPU pods, and a shared one for the rest."""
    whole, rest = divmod(milli_gpus, MILLI)
    pending = WorkloadState.PENDING
    found = [Workload(f"{team}/whole", team, pool, whole, MILLI, pending, since_s)] if whole else []
    if rest:
        found.append(Workload(f"{team}/rest", team, pool, 1, rest, pending, since_s, shared_gpu=True))
    return found
