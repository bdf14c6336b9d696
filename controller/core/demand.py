"""Stage 2: what each team wants in each pool. Demand is running plus pending work, never usage.

Usage is demand cut off by the quota: who forecasts or divides by it never sees who waits. Queued, suspended and
gated work is pending, and each gang is in exactly one state, so nothing is counted twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from controller.core.policy import Policy, Team
from controller.core.quantities import whole_gpus_up
from controller.core.snapshot import Snapshot, Workload

SETTLING_S = 30
"""Pending for less than this is not yet a wait: the scheduler may be about to bind it (CASES.md S3)."""


@dataclass(slots=True)
class _Tally:
    running: list[Workload] = field(default_factory=list)
    waiting: list[Workload] = field(default_factory=list)
    held: int = 0
    pending: int = 0
    preemptible_held: int = 0


@dataclass(frozen=True, slots=True)
class TeamDemand:
    """One team in one pool; amounts in milli-GPUs, exact (a 1g slice of an 80 GB GPU is 125)."""

    pool: str
    team: str
    held: int = 0
    pending: int = 0
    preemptible_held: int = 0
    longest_wait_s: int = 0
    running: tuple[Workload, ...] = ()
    waiting: tuple[Workload, ...] = ()

    @property
    def total(self) -> int:
        """Held plus pending."""
        return self.held + self.pending

    def wait_within_s(self, amount: int, now_s: int) -> int:
        """The longest wait of a gang that would fit beside what is held inside ``amount`` milli-GPUs; 0 for none.

        Who waits for more than its team may have is not kept waiting by others.
        """
        waits = (now_s - work.submitted_at_s for work in self.waiting if self.held + work.milli_gpus <= amount)
        return max(waits, default=0)

    @property
    def whole(self) -> int:
        """The total in whole GPUs, rounded up once for the team: three pods of half a GPU want two GPUs."""
        return whole_gpus_up(self.total)


@dataclass(frozen=True, slots=True)
class Demand:
    """All demand of a snapshot. ``unowned`` is work in a pool whose namespace no team owns."""

    by_team: dict[tuple[str, str], TeamDemand]
    unowned: dict[str, TeamDemand]
    team_of: dict[str, str]

    def of(self, pool: str, team: str) -> TeamDemand:
        """A team's demand in a pool; nothing where it has none."""
        return self.by_team.get((pool, team)) or TeamDemand(pool, team)

    def pool_total(self, pool: str) -> int:
        """Milli-GPUs that all work of a pool holds and waits for, unowned work included."""
        owned = sum(demand.total for (name, _), demand in self.by_team.items() if name == pool)
        unowned = self.unowned.get(pool)
        return owned + (unowned.total if unowned else 0)

    def owner(self, workload: Workload) -> str:
        """The team that owns a workload, or ""."""
        return self.team_of.get(workload.namespace, "")


def measure(snapshot: Snapshot, policy: Policy, now_s: int) -> Demand:
    """Sum the work of a snapshot by pool and team, in one pass."""
    owners: dict[str, Team | None] = {}
    tallies: dict[tuple[str, str], _Tally] = {}
    for work in snapshot.workloads:
        if work.namespace not in owners:
            owners[work.namespace] = policy.team_of(work.namespace)
        if not work.milli_gpus_per_pod:
            continue
        team = owners[work.namespace]
        name = team.name if team and team.in_pool(work.pool) else ""
        tally = tallies.setdefault((work.pool, name), _Tally())
        _add(tally, work, preemptible=work.preemptible or bool(team and team.preemptible))
    demands = {key: _closed(key, tally, now_s) for key, tally in tallies.items()}
    return Demand(
        by_team={key: demand for key, demand in demands.items() if key[1]},
        unowned={pool: demand for (pool, team), demand in demands.items() if not team},
        team_of={namespace: team.name for namespace, team in owners.items() if team},
    )


def _add(tally: _Tally, work: Workload, *, preemptible: bool) -> None:
    amount = work.milli_gpus
    if work.running:
        tally.running.append(work)
        tally.held += amount
        tally.preemptible_held += amount if preemptible else 0
    else:
        tally.waiting.append(work)
        tally.pending += amount


def _closed(key: tuple[str, str], tally: _Tally, now_s: int) -> TeamDemand:
    waits = [now_s - work.submitted_at_s for work in tally.waiting]
    longest = max((wait for wait in waits if wait >= SETTLING_S), default=0)
    return TeamDemand(
        *key,
        held=tally.held,
        pending=tally.pending,
        preemptible_held=tally.preemptible_held,
        longest_wait_s=longest,
        running=tuple(tally.running),
        waiting=tuple(tally.waiting),
    )
