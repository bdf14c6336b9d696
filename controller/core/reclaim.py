"""Stage 7: calling back what was lent, cheapest first, with notice, whole gangs, never below a floor.

Lowering a quota frees nothing and eager reclaim thrashes, so a recall needs somebody for whom it is done, takes no more
than half as much again as is asked for, and never takes a gang again that it took within the hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from controller.core.actions import Evict, GiveNotice, WithdrawNotice
from controller.core.demand import Demand, TeamDemand
from controller.core.lending import Division, TeamShare
from controller.core.policy import Policy, Pool, Reclaimable, Team
from controller.core.reasons import Reason, ReasonCode, reason
from controller.core.snapshot import Snapshot, Workload

Move = GiveNotice | WithdrawNotice | Evict


@dataclass(frozen=True, slots=True)
class Need:
    """GPUs a team is short of: ``asked`` is all it waits for inside its share, ``short`` what nothing free serves."""

    team: Team
    code: ReasonCode
    asked: int
    short: int
    hard: bool
    wait_s: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A running gang that stands on borrowed GPUs."""

    work: Workload
    team: Team
    preemptible: bool
    lost_milli_gpu_s: int

    def cost(self) -> tuple[int, int, int, int, int, str]:
        """Sort key, cheapest first; a gang that has its notice stays the choice, so that notices do not roam."""
        noticed = 0 if self.work.evict_at_s is not None else 1
        tier = 0 if self.preemptible else 1
        nodes = len(set(self.work.nodes))
        return noticed, tier, self.team.priority, self.lost_milli_gpu_s, nodes, self.work.name


@dataclass(slots=True)
class _Plan:
    moves: list[Move]
    notes: list[Reason]
    taken: set[str]
    refused: set[str]


def plan(
    pool: Pool, policy: Policy, division: Division, demand: Demand, snapshot: Snapshot, available: int, now_s: int
) -> tuple[tuple[Move, ...], tuple[Reason, ...]]:
    """Plan the recalls of a pool. ``available`` milli-GPUs are free, booting, or can still be had."""
    teams = {team.name: team for team in policy.teams}
    demands = {share.team: demand.of(pool.name, share.team) for share in division.shares}
    stuck = _stuck(snapshot, policy, demands, now_s)
    overhanging = sorted(_candidates(division, demands, teams, stuck, now_s), key=Candidate.cost)
    out = _Plan([], [], set(), set())
    left = available
    for need in _needs(division, demands, teams, policy, now_s):
        served = min(left, need.asked)
        left -= served
        short = replace(need, short=need.asked - served)
        if short.short > 0 and policy.lending.enabled:
            _recall(pool, policy, stuck, short, overhanging, out, now_s)
    for share in division.shares:
        _lower_to_ceiling(pool, policy, share, teams[share.team], demands[share.team], stuck, out, now_s)
    _withdraw(pool, demands, out)
    return tuple(out.moves), tuple(out.notes)


def _needs(
    division: Division, demands: dict[str, TeamDemand], teams: dict[str, Team], policy: Policy, now_s: int
) -> list[Need]:
    """Who is short: waiting inside its share now (starved first), then those whose peak is near."""
    now, ahead = [], []
    for share in division.shares:
        d, team = demands[share.team], teams[share.team]
        due = min(share.share, share.entitlement) - d.held
        asked = min(due, d.pending)
        waited = d.wait_within_s(share.entitlement, now_s)
        starved = waited > policy.starvation.max_wait_s
        if asked > 0:
            code = ReasonCode.RECLAIM_FOR_STARVED if starved else ReasonCode.RECLAIM_FOR_FLOOR
            now.append(Need(team, code, asked, 0, d.held < share.floor or starved, waited))
        if share.soon > 0:
            ahead.append(Need(team, ReasonCode.RECLAIM_AHEAD_OF_PEAK, share.soon, 0, False, 0))
    now.sort(key=lambda n: (n.code is not ReasonCode.RECLAIM_FOR_STARVED, not n.hard, -n.team.priority, n.team.name))
    ahead.sort(key=lambda n: (-n.team.priority, n.team.name))
    return now + ahead


def _stuck(snapshot: Snapshot, policy: Policy, demands: dict[str, TeamDemand], now_s: int) -> dict[str, ReasonCode]:
    """The running gangs that cannot be evicted now whoever asks, and why."""
    apart_s = policy.lending.min_between_evictions_s
    lately = {past.workload for past in snapshot.evictions if now_s - past.at_s < apart_s}
    found = {}
    for d in demands.values():
        for work in d.running:
            if work.name in lately:
                found[work.name] = ReasonCode.EVICTED_LATELY
            elif work.disruptions_allowed == 0:
                found[work.name] = ReasonCode.PROTECTED_BY_PDB
            elif work.evict_refused_since_s is not None:
                found[work.name] = ReasonCode.EVICTION_REFUSED
    return found


def _candidates(
    division: Division,
    demands: dict[str, TeamDemand],
    teams: dict[str, Team],
    stuck: dict[str, ReasonCode],
    now_s: int,
) -> Iterator[Candidate]:
    """Gangs beyond their team's share. What fits inside the share as whole gangs is kept, dearest first.

    Gangs that cannot be evicted are kept before all others, so that they never shield one that can. A gang bigger than
    its team's share fits no floor: it runs on lent GPUs (CASES.md S1).
    """
    for share in division.shares:
        d, team = demands[share.team], teams[share.team]
        if d.held <= share.share:
            continue
        room = share.share
        ranked = sorted(
            (_candidate(work, team, now_s) for work in d.running),
            key=lambda c: (c.work.name in stuck, c.cost()),
            reverse=True,
        )
        for candidate in ranked:
            if candidate.work.milli_gpus <= room:
                room -= candidate.work.milli_gpus
            else:
                yield candidate


def _candidate(work: Workload, team: Team, now_s: int) -> Candidate:
    kept_since = max(work.started_at_s or work.submitted_at_s, work.saved_at_s or 0)
    lost = work.milli_gpus * max(0, now_s - kept_since)
    return Candidate(work, team, work.preemptible or team.preemptible, lost)


def _recall(
    pool: Pool,
    policy: Policy,
    stuck: dict[str, ReasonCode],
    need: Need,
    candidates: Sequence[Candidate],
    out: _Plan,
    now_s: int,
) -> None:
    """Take the cheapest gangs until the need is met, within the blast radius; ``candidates`` are cheapest first.

    Why a gang stays is noted once, for the first who asked: two hundred teams that ask are not two hundred reasons.
    """
    limit = need.asked * policy.lending.blast_radius_permille // 1000
    freed = 0
    for candidate in candidates:
        if freed >= need.short:
            return
        work = candidate.work
        if work.name in out.taken or candidate.team.name == need.team.name:
            continue
        refusal = stuck.get(work.name) or _refusal(candidate, need, policy)
        # A hard need may take one gang that is too big: a floor does not wait for a gang of the right size.
        if refusal is None and freed + work.milli_gpus > limit and (freed or not need.hard):
            refusal = ReasonCode.BLAST_RADIUS
        if refusal is not None:
            if work.name not in out.refused:
                out.refused.add(work.name)
                out.notes.append(_note(refusal, pool, candidate, need))
            continue
        freed += work.milli_gpus
        _take(pool, policy, candidate, need, out, now_s)
    if freed < need.short and need.code is not ReasonCode.RECLAIM_AHEAD_OF_PEAK:
        out.notes.append(
            reason(
                ReasonCode.NOTHING_TO_RECLAIM,
                pool=pool.name,
                team=need.team.name,
                asked_milli_gpus=need.asked,
                short_milli_gpus=need.short - freed,
            )
        )


def _refusal(candidate: Candidate, need: Need, policy: Policy) -> ReasonCode | None:
    """Why one team's gang may not be recalled for another."""
    if candidate.preemptible and Reclaimable.PREEMPTIBLE in policy.lending.reclaim:
        return None
    lower = candidate.team.priority < need.team.priority
    if lower and Reclaimable.LOWER_PRIORITY in policy.lending.reclaim:
        return None
    return ReasonCode.PROTECTED_NOT_PREEMPTIBLE


def _note(code: ReasonCode, pool: Pool, candidate: Candidate, need: Need) -> Reason:
    return reason(
        code,
        pool=pool.name,
        team=candidate.team.name,
        subject=candidate.work.name,
        for_team=need.team.name,
        held_milli_gpus=candidate.work.milli_gpus,
    )


def _take(pool: Pool, policy: Policy, candidate: Candidate, need: Need, out: _Plan, now_s: int) -> None:
    """Evict a gang whose notice has run out (or needs none), give it notice, or wait for the one it has."""
    work, team = candidate.work, candidate.team
    out.taken.add(work.name)
    why = reason(
        need.code,
        pool=pool.name,
        team=team.name,
        subject=work.name,
        for_team=need.team.name,
        asked_milli_gpus=need.asked,
        freed_milli_gpus=work.milli_gpus,
        waited_s=need.wait_s,
    )
    if policy.lending.notice_s and work.evict_at_s is None:
        at = now_s + policy.lending.notice_s
        out.moves.append(GiveNotice(pool.name, team.name, work.name, need.team.name, at, work.milli_gpus, why))
    elif work.evict_at_s is not None and now_s < work.evict_at_s:
        out.notes.append(_running_notice(pool, candidate, need.team.name, now_s))
    else:
        out.moves.append(Evict(pool.name, team.name, work.name, need.team.name, work.milli_gpus, why))


def _running_notice(pool: Pool, candidate: Candidate, for_team: str, now_s: int) -> Reason:
    return reason(
        ReasonCode.NOTICE_RUNNING,
        pool=pool.name,
        team=candidate.team.name,
        subject=candidate.work.name,
        for_team=for_team,
        held_milli_gpus=candidate.work.milli_gpus,
        left_s=(candidate.work.evict_at_s or now_s) - now_s,
    )


def _lower_to_ceiling(
    pool: Pool,
    policy: Policy,
    share: TeamShare,
    team: Team,
    d: TeamDemand,
    stuck: dict[str, ReasonCode],
    out: _Plan,
    now_s: int,
) -> None:
    """A ceiling that was lowered below what is held recalls preemptible work only; the rest is tolerated (S2).

    Any preemptible gang may go, as long as what stays still fills the ceiling: were only those eligible that do not fit
    beside the work that must stay, a big gang that must stay would shield the small ones that need not.
    """
    over = d.held - share.ceiling
    if over <= 0:
        return
    over -= sum(work.milli_gpus for work in d.running if work.name in out.taken)
    for candidate in sorted((_candidate(work, team, now_s) for work in d.running), key=Candidate.cost):
        work = candidate.work
        if work.milli_gpus > over or not candidate.preemptible or work.name in stuck or work.name in out.taken:
            continue
        over -= work.milli_gpus
        need = Need(team, ReasonCode.RECLAIM_OVER_CEILING, d.held - share.ceiling, over, False, 0)
        _take(pool, policy, candidate, need, out, now_s)


def _withdraw(pool: Pool, demands: dict[str, TeamDemand], out: _Plan) -> None:
    """A gang that has notice and was not taken again may stay."""
    for d in demands.values():
        for work in d.running:
            if work.evict_at_s is not None and work.name not in out.taken:
                why = reason(
                    ReasonCode.NOTICE_WITHDRAWN, pool=pool.name, team=d.team, subject=work.name, for_team=work.evict_for
                )
                out.moves.append(WithdrawNotice(pool.name, d.team, work.name, why))
