"""The one function that decides. Its body is the list of stages; precedence is read off that list.

Pure, total and deterministic: the same values give the same bytes, on any machine, in any process. The mode does not
change what is decided, only whether the loop applies it.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.core import demand as demands
from controller.core import guards, headroom, lending, nodes, partition, placement, reclaim, schedule, shield
from controller.core.actions import Action, Decision, Evict, PoolStanding, SetShare, TeamStanding
from controller.core.advice import Advice
from controller.core.demand import Demand
from controller.core.forecast import Forecasts
from controller.core.headroom import Target
from controller.core.lending import Division, TeamShare
from controller.core.nodes import Phase, Supply
from controller.core.placement import Placement
from controller.core.policy import Policy, Pool
from controller.core.quantities import MILLI
from controller.core.reasons import Reason, ReasonCode
from controller.core.snapshot import PoolObservation, Snapshot


def decide(
    snapshot: Snapshot, forecasts: Forecasts, policy: Policy, now_s: int, advice: Advice | None = None
) -> Decision:
    """Decide one tick at ``now_s`` (epoch seconds, UTC). Never raises on a valid snapshot and policy."""
    supplies, ignored = nodes.supplies(snapshot, now_s)
    demand = demands.measure(snapshot, policy, now_s)
    parts = [
        _pool(pool, seen, snapshot, forecasts, policy, now_s, advice or Advice(), supplies[pool.name], demand)
        for pool in policy.pools
        for seen in snapshot.pools
        if seen.name == pool.name
    ]
    divisions = [part.division for part in parts]
    violations = guards.check(snapshot, policy, supplies, divisions, demand, now_s)
    guarded, refused = shield.evictions(divisions, demand, guards.evictions(violations, snapshot, demand))
    actions: list[Action] = [action for part in parts for action in part.actions]
    evicted = {action.workload for action in actions if isinstance(action, Evict)}
    actions += [evict for evict in guarded if evict.workload not in evicted]
    return Decision(
        at_s=now_s,
        cluster=snapshot.cluster,
        policy=policy.name,
        mode=policy.mode,
        pools=tuple(part.standing for part in parts),
        teams=tuple(team for part in parts for team in part.teams),
        actions=tuple(actions),
        notes=tuple(note for part in parts for note in part.notes) + refused,
        violations=violations,
        ignored_nodes=ignored,
    )


@dataclass(frozen=True, slots=True)
class _PoolPart:
    """What one pool contributes to a decision."""

    division: Division
    standing: PoolStanding
    teams: tuple[TeamStanding, ...]
    actions: tuple[Action, ...]
    notes: tuple[Reason, ...]


def _pool(
    pool: Pool,
    seen: PoolObservation,
    snapshot: Snapshot,
    forecasts: Forecasts,
    policy: Policy,
    now_s: int,
    advice: Advice,
    supply: Supply,
    demand: Demand,
) -> _PoolPart:
    """Run the stages for one pool; the numbers are those of DESIGN's list, guards and explain follow for all pools."""
    ahead_s = now_s + seen.lead_s + policy.lending.notice_s
    can_have = nodes.obtainable(pool, seen, supply)
    # 1 bounds in force now and ahead
    limits = schedule.limits_in_force(policy, pool, can_have, now_s)
    limits_ahead = schedule.limits_in_force(policy, pool, can_have, ahead_s)
    # 2 demand (measured for all pools at once) · 3 entitlement · 4 lending and recall ahead of the owner's peak
    division = lending.divide(
        pool, policy, limits, limits_ahead, demand, forecasts, can_have, snapshot, now_s, seen.lead_s
    )
    team_demands = [demand.of(pool.name, share.team) for share in division.shares]
    runnable = _runnable(division, demand)
    # 5 headroom for the pool's total
    recent = next((r.points for r in snapshot.recent if r.pool == pool.name), ())
    target = headroom.target(pool, seen, recent, runnable, forecasts, advice.of(pool.name), policy.learning, now_s)
    # 6 placement: what fits in shape as well as in number
    placed = placement.check(supply, division, team_demands, seen.gpus_per_node, may_have=nodes.most_nodes(pool, seen))
    target = headroom.with_needed(target, placed.needed_nodes)
    # 7 reclaim
    available = can_have - sum(supply.used.values())
    moves, kept = reclaim.plan(pool, policy, division, demand, snapshot, available, now_s)
    # 8 partition layout
    waiting = [work for d in team_demands for work in d.waiting]
    layouts, uncut = partition.plan(supply, policy.sharing, waiting)
    # 10 shield
    wanted_nodes, capacity, clips = shield.capacity(pool, seen, supply, target, runnable, placed.shape)
    removals, young = shield.removals(pool, seen, supply, wanted_nodes, now_s)
    shares, above = shield.shares(division, _share_moves(division, snapshot))
    evicts, protected = shield.evictions([division], demand, [m for m in moves if isinstance(m, Evict)])
    notices = [m for m in moves if not isinstance(m, Evict)]
    notes = (*division.notes, *target.notes, *placed.notes, *kept, *uncut, *clips, *young, *above, *protected)
    notes += shield.losses(pool, supply)
    standing = _pool_standing(pool, supply, division, demand, target, wanted_nodes, placed, can_have)
    teams = tuple(_team_standing(share, demand, policy, now_s) for share in division.shares)
    return _PoolPart(division, standing, teams, (*shares, *capacity, *removals, *notices, *evicts, *layouts), notes)


def _runnable(division: Division, demand: Demand) -> int:
    """Milli-GPUs that may run: what is held, and what waits inside the shares. Nodes for more would stand idle."""
    stranger = demand.unowned.get(division.pool)
    total = stranger.held if stranger else 0
    for share in division.shares:
        d = demand.of(division.pool, share.team)
        total += max(d.held, min(d.total, share.share))
    return total


def _share_moves(division: Division, snapshot: Snapshot) -> list[SetShare]:
    """The shares that differ from those in force."""
    in_force = {s.team: (s.milli_gpus, s.preemptible_milli_gpus) for s in snapshot.shares if s.pool == division.pool}
    return [
        SetShare(division.pool, share.team, share.share, share.preemptible_share, _share_reason(share))
        for share in division.shares
        if in_force.get(share.team) != (share.share, share.preemptible_share)
    ]


def _share_reason(share: TeamShare) -> Reason:
    """Why a share is what it is: the strongest of the reasons that hold."""
    facts = {"share_milli_gpus": share.share, "entitlement_milli_gpus": share.entitlement}
    if share.preemptible_share:
        code = ReasonCode.LENT_TO_PREEMPTIBLE_ONLY
        facts["preemptible_milli_gpus"] = share.preemptible_share
    elif share.borrowed:
        code = ReasonCode.BORROWING_IDLE
        facts["borrowed_milli_gpus"] = share.borrowed
    elif share.lent:
        code = ReasonCode.LENT_OUT
        facts["lent_milli_gpus"] = share.lent
    elif share.share <= share.floor:
        code = ReasonCode.FLOOR_MET
        facts["floor_milli_gpus"] = share.floor
    else:
        code = ReasonCode.WITHIN_ENTITLEMENT
    return Reason(code, share.pool, share.team, facts=tuple(sorted(facts.items())))


def _team_standing(share: TeamShare, demand: Demand, policy: Policy, now_s: int) -> TeamStanding:
    d = demand.of(share.pool, share.team)
    return TeamStanding(
        pool=share.pool,
        team=share.team,
        floor=share.floor,
        ceiling=share.ceiling,
        entitlement=share.entitlement,
        share=share.share,
        preemptible_share=share.preemptible_share,
        demand=d.total,
        held=d.held,
        pending=d.pending,
        lent=share.lent,
        borrowed=share.borrowed,
        overhang=max(0, d.held - share.share),
        reserved=share.reserved,
        longest_wait_s=d.longest_wait_s,
        starved=d.wait_within_s(share.entitlement, now_s) > policy.starvation.max_wait_s,
        bounds_from=share.bounds_from,
    )


def _pool_standing(
    pool: Pool,
    supply: Supply,
    division: Division,
    demand: Demand,
    target: Target,
    wanted_nodes: int,
    placed: Placement,
    can_have: int,
) -> PoolStanding:
    stranger = demand.unowned.get(pool.name)
    held = sum(demand.of(pool.name, share.team).held for share in division.shares)
    unowned = stranger.held if stranger else 0
    return PoolStanding(
        pool=pool.name,
        max_milli_gpus=pool.limits.max_gpus * MILLI,
        obtainable_milli_gpus=can_have,
        supply_milli_gpus=supply.allocatable,
        free_milli_gpus=supply.free_total,
        demand_milli_gpus=demand.pool_total(pool.name),
        held_milli_gpus=held + unowned,
        unowned_milli_gpus=unowned,
        nodes_ready=supply.count(Phase.READY),
        nodes_booting=supply.count(Phase.REQUESTED, Phase.BOOTING),
        nodes_gpu_missing=supply.count(Phase.GPU_MISSING),
        nodes_cordoned=supply.count(Phase.CORDONED, Phase.INTERRUPTED),
        target_nodes=wanted_nodes,
        rule_nodes=target.rule_nodes,
        advised_nodes=target.advised_nodes,
        source=target.source.value,
        quantile_permille=target.quantile_permille,
        largest_gang_that_fits_milli_gpus=placed.largest_gang,
        stranded_milli_gpus=placed.stranded,
        micro_usd_per_hour=supply.micro_usd_per_hour,
        over_limit_gpus=max(0, supply.live_gpus - pool.limits.max_gpus),
    )
