"""Stage 4: shares. What a team does not want now serves another, and comes back before its owner's peak.

Four passes over a pool: every team's demand up to its entitlement (which holds its floor); then what is left is lent to
demand beyond entitlements, by priority and then weight, up to ceilings; what owners are forecast to want again is kept
out of that, save for preemptible work; then what nobody wants goes back to its owners. Shares sum to at most what can
be had. docs/designs/0004 has the reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from controller.core.demand import Demand, TeamDemand
from controller.core.forecast import Forecasts, SeriesForecast
from controller.core.policy import Policy, Pool, Reclaimable, Team
from controller.core.quantities import whole_gpus_down, whole_gpus_up
from controller.core.reasons import Reason, ReasonCode, reason
from controller.core.schedule import Limits
from controller.core.shares import entitlements, waterfill
from controller.core.snapshot import Snapshot, Workload

STALE_AFTER_S = 900
"""A forecast older than this is not used: three ticks of five minutes have failed."""
SOON_PERMILLE = 500
"""GPUs are recalled ahead of a peak that is more likely than not: evicting for less would mostly be in vain."""


@dataclass(frozen=True, slots=True)
class TeamShare:
    """One team's share in one pool; milli-GPUs.

    ``preemptible_share`` is the part of ``share`` that only preemptible work may use. ``reserved`` is what is kept for
    the team because it will want it again; ``soon`` the part of that which it is likely to want within the notice.
    """

    pool: str
    team: str
    floor: int
    ceiling: int
    bounds_from: str
    entitlement: int
    share: int
    preemptible_share: int
    reserved: int
    soon: int

    @property
    def lent(self) -> int:
        """How far the share lies below the entitlement."""
        return max(0, self.entitlement - self.share)

    @property
    def borrowed(self) -> int:
        """How far the share lies above the entitlement."""
        return max(0, self.share - self.entitlement)


@dataclass(frozen=True, slots=True)
class Division:
    """A pool's division: ``total`` milli-GPUs over ``shares`` (by team name), with notes on what shaped it."""

    pool: str
    total: int
    shares: tuple[TeamShare, ...]
    notes: tuple[Reason, ...] = ()

    def of(self, team: str) -> TeamShare | None:
        """A team's share."""
        return next((share for share in self.shares if share.team == team), None)


@dataclass(slots=True)
class _Book:
    """The running account of one division; lists run parallel to the pool's teams."""

    teams: list[Team]
    wants: list[int]
    entitled: list[int]
    ceilings: list[int]
    left: int
    given: list[int] = field(default_factory=list)

    def raise_to(self, highs: Sequence[int], budget: int) -> list[int]:
        """Raise what was given towards ``highs`` out of ``budget``, water-filling; return the additions."""
        tops = [max(high, have) for high, have in zip(highs, self.given, strict=True)]
        rank = [(team.priority, team.name) for team in self.teams]
        weights = [team.weight for team in self.teams]
        filled = waterfill(sum(self.given) + budget, self.given, tops, weights, rank)
        added = [after - before for after, before in zip(filled, self.given, strict=True)]
        self.given = list(filled)
        self.left -= sum(added)
        return added


def divide(
    pool: Pool,
    policy: Policy,
    limits: Sequence[Limits],
    limits_ahead: Sequence[Limits],
    demand: Demand,
    forecasts: Forecasts,
    obtainable: int,
    snapshot: Snapshot,
    now_s: int,
    lead_s: int,
) -> Division:
    """Divide what can be had of a pool (``obtainable``, milli-GPUs) among its teams.

    ``limits_ahead`` are the bounds in force once the lead and the notice have passed: what they will allow or protect
    is prepared for now.
    """
    by_name = {team.name: team for team in policy.teams}
    teams = [by_name[limit.team] for limit in limits]
    demands = [demand.of(pool.name, team.name) for team in teams]
    unowned = demand.unowned.get(pool.name)
    total = max(0, whole_gpus_down(obtainable - whole_gpus_up(unowned.held if unowned else 0)))
    due = entitlements(limits, policy, total)
    due_ahead = due if limits_ahead == limits else entitlements(limits_ahead, policy, total)
    held = [_held_for(pool.name, d, policy, snapshot, now_s) for d in demands]
    book = _Book(
        teams=teams,
        wants=[
            max(d.whole, min(due[d.team], whole_gpus_up(d.total + freed)))
            for d, freed in zip(demands, held, strict=True)
        ],
        entitled=[due[team.name] for team in teams],
        ceilings=_ceilings(limits, limits_ahead, demands),
        left=total,
    )
    book.given = [min(want, part) for want, part in zip(book.wants, book.entitled, strict=True)]
    book.left -= sum(book.given)
    ahead = [max(due_ahead[team.name], due[team.name]) for team in teams]
    reserved, soon, notes = _reserves(pool, policy, book, ahead, forecasts, now_s, lead_s)
    preemptible = [0] * len(teams)
    if policy.lending.enabled:
        preemptible = _lend(policy, book, demands, sum(reserved), sum(soon))
        preemptible = _not_into_overhang(book, demands, total, preemptible)
    _give_back(book, pool.name, snapshot)
    shares = tuple(
        TeamShare(pool.name, team.name, limit.floor, limit.ceiling, limit.bounds_from, part, given, only, kept, near)
        for team, limit, part, given, only, kept, near in zip(
            teams, limits, book.entitled, book.given, preemptible, reserved, soon, strict=True
        )
    )
    notes += [
        reason(ReasonCode.HELD_FOR_OWNER, pool=pool.name, team=d.team, held_milli_gpus=freed)
        for d, freed in zip(demands, held, strict=True)
        if freed
    ]
    return Division(pool.name, total, shares, tuple(notes) + _shape_notes(policy, shares, demands, unowned))


def _held_for(pool: str, demand: TeamDemand, policy: Policy, snapshot: Snapshot, now_s: int) -> int:
    """What was freed for a team lately and neither bound nor waited for since: its work may be away for a moment.

    Lent again at once it would be recalled again (CASES.md S1).
    """
    lately = [
        past
        for past in snapshot.evictions
        if past.pool == pool
        and past.for_team == demand.team != past.team
        and now_s - past.at_s < policy.lending.hold_freed_s
    ]
    if not lately:
        return 0
    first = min(past.at_s for past in lately)
    bound = sum(work.milli_gpus for work in demand.running if (work.started_at_s or 0) >= first)
    return max(0, sum(past.milli_gpus for past in lately) - bound - demand.pending)


def _ceilings(limits: Sequence[Limits], ahead: Sequence[Limits], demands: Sequence[TeamDemand]) -> list[int]:
    """A ceiling that is about to be lowered is not grown into any more; what is held stays until it is."""
    return [
        min(now.ceiling, max(later.ceiling, whole_gpus_up(d.held)))
        for now, later, d in zip(limits, ahead, demands, strict=True)
    ]


def _reserves(
    pool: Pool, policy: Policy, book: _Book, ahead: Sequence[int], forecasts: Forecasts, now_s: int, lead_s: int
) -> tuple[list[int], list[int], list[Reason]]:
    """What each owner will want again beyond its share now: at the pool's quantile, and more likely than not soon."""
    none = [0] * len(book.teams)
    if not (policy.lending.enabled and policy.lending.forecast_aware):
        return none, list(none), []
    notes, reserved, soon = [], [], []
    for team, part, given in zip(book.teams, ahead, book.given, strict=True):
        series = forecasts.of(pool.name, team.name)
        if series is None or now_s - series.issued_at_s > STALE_AFTER_S:
            notes += _unusable(pool.name, team.name, series, now_s)
            reserved.append(0)
            soon.append(0)
            continue
        later = max(series.windows, key=lambda w: (w.end_s, -w.start_s)).at(pool.quantile_permille)
        near_window = series.covering(policy.lending.notice_s, policy.lending.notice_s + 900)
        near = (
            near_window.at(SOON_PERMILLE)
            if near_window and near_window.start_s <= policy.lending.notice_s + lead_s
            else 0
        )
        reserved.append(max(0, min(part, whole_gpus_up(later)) - given))
        soon.append(max(0, min(part, whole_gpus_up(near)) - given))
    reserved = _within(book, reserved)
    return reserved, [min(a, b) for a, b in zip(_within(book, soon), reserved, strict=True)], notes


def _unusable(pool: str, team: str, series: SeriesForecast | None, now_s: int) -> list[Reason]:
    if series is None:
        return []  # no forecaster, or a team too new for one: nothing has failed, nothing to report every tick
    age = now_s - series.issued_at_s
    return [reason(ReasonCode.FORECAST_STALE, pool=pool, team=team, age_s=age, allowed_s=STALE_AFTER_S)]


def _within(book: _Book, wanted: list[int]) -> list[int]:
    """Cut reserves down to what is left, where bounds that are about to change make them exceed it."""
    if sum(wanted) <= book.left:
        return wanted
    rank = [(team.priority, team.name) for team in book.teams]
    return list(waterfill(book.left, [0] * len(wanted), wanted, [team.weight for team in book.teams], rank))


def _lend(policy: Policy, book: _Book, demands: Sequence[TeamDemand], reserved: int, soon: int) -> list[int]:
    """Lend by priority and then weight; return what may be used by preemptible work only."""
    for_all = book.left - reserved
    highs = [min(want, ceiling) for want, ceiling in zip(book.wants, book.ceilings, strict=True)]
    for priority in sorted({team.priority for team in book.teams}, reverse=True):
        tops = [high if team.priority == priority else 0 for team, high in zip(book.teams, highs, strict=True)]
        for_all -= sum(book.raise_to(tops, max(0, for_all)))
    only = [0] * len(book.teams)
    if Reclaimable.PREEMPTIBLE not in policy.lending.reclaim:
        return only
    for_preemptible = max(0, book.left - soon)
    room = [
        min(high, given + _preemptible_wanted(team, d))
        for team, high, given, d in zip(book.teams, highs, book.given, demands, strict=True)
    ]
    for priority in sorted({team.priority for team in book.teams}, reverse=True):
        tops = [top if team.priority == priority else 0 for team, top in zip(book.teams, room, strict=True)]
        added = book.raise_to(tops, for_preemptible)
        for_preemptible -= sum(added)
        only = [a + b for a, b in zip(only, added, strict=True)]
    return only


def _not_into_overhang(book: _Book, demands: Sequence[TeamDemand], total: int, only: list[int]) -> list[int]:
    """Let borrowers grow only into GPUs that are free once owners have what they want now.

    A lowered share frees nothing until its work is gone. Were another borrower's share raised by as much, it would take
    the GPUs that are being recalled for an owner. Returns ``only``, cut along.
    """
    firm = [
        max(min(want, part), whole_gpus_up(d.held))
        for want, part, d in zip(book.wants, book.entitled, demands, strict=True)
    ]
    room = max(0, total - sum(firm))
    grown = [max(0, given - least) for given, least in zip(book.given, firm, strict=True)]
    if sum(grown) <= room:
        return only
    kept = [0] * len(grown)
    weights = [team.weight for team in book.teams]
    rank = [(team.priority, team.name) for team in book.teams]
    for priority in sorted({team.priority for team in book.teams}, reverse=True):
        tops = [g if team.priority == priority else 0 for team, g in zip(book.teams, grown, strict=True)]
        added = waterfill(room, [0] * len(tops), tops, weights, rank)
        room -= sum(added)
        kept = [a + b for a, b in zip(kept, added, strict=True)]
    cuts = [g - k for g, k in zip(grown, kept, strict=True)]
    book.given = [given - cut for given, cut in zip(book.given, cuts, strict=True)]
    book.left += sum(cuts)
    return [max(0, part - cut) for part, cut in zip(only, cuts, strict=True)]


def _preemptible_wanted(team: Team, demand: TeamDemand) -> int:
    def amount(work: Workload) -> int:
        return work.milli_gpus if team.preemptible or work.preemptible else 0

    return whole_gpus_down(sum(map(amount, demand.running)) + sum(map(amount, demand.waiting)))


def _give_back(book: _Book, pool: str, snapshot: Snapshot) -> None:
    """Return what nobody wants to its owners, first where it is already: a share that need not move does not."""
    in_force = {share.team: whole_gpus_down(share.milli_gpus) for share in snapshot.shares if share.pool == pool}
    kept = [min(part, in_force.get(team.name, 0)) for team, part in zip(book.teams, book.entitled, strict=True)]
    for highs in (kept, book.entitled):
        book.raise_to(highs, book.left)


def _shape_notes(
    policy: Policy, shares: Sequence[TeamShare], demands: Sequence[TeamDemand], unowned: TeamDemand | None
) -> tuple[Reason, ...]:
    notes = []
    for share, d in zip(shares, demands, strict=True):
        where = {"pool": share.pool, "team": share.team}
        if d.whole > share.ceiling:
            notes.append(
                reason(ReasonCode.OVER_CEILING, **where, asked_milli_gpus=d.total, ceiling_milli_gpus=share.ceiling)
            )
        elif d.whole > share.share and not policy.lending.enabled:
            notes.append(
                reason(ReasonCode.LENDING_OFF, **where, asked_milli_gpus=d.total, share_milli_gpus=share.share)
            )
        elif d.whole > share.share:
            notes.append(
                reason(ReasonCode.SHORTAGE_SHARED, **where, asked_milli_gpus=d.total, share_milli_gpus=share.share)
            )
        if d.held > share.share:
            notes.append(
                reason(
                    ReasonCode.OVERHANG_TOLERATED,
                    **where,
                    bound_milli_gpus=share.share,
                    held_milli_gpus=d.held,
                    overhang_milli_gpus=d.held - share.share,
                )
            )
    if unowned and unowned.total:
        names = len(unowned.running) + len(unowned.waiting)
        notes.append(reason(ReasonCode.UNOWNED_WORK, pool=unowned.pool, gangs=names, held_milli_gpus=unowned.held))
    return tuple(notes)
