"""Stage 10, the last word: nothing leaves the core that breaks a bound, whatever a forecast or a learner said.

The stages before aim; the shield clips, and each clip leaves a reason. It trusts none of them: shares are summed and
compared with ceilings again, evictions are held against floors again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.core.actions import Evict, RemoveNode, SetCapacity, SetShare
from controller.core.demand import Demand
from controller.core.headroom import Target
from controller.core.lending import Division
from controller.core.nodes import Phase, Supply, affordable_nodes
from controller.core.policy import Pool
from controller.core.quantities import MILLI, ceil_div
from controller.core.reasons import Reason, ReasonCode, reason
from controller.core.snapshot import Node, PoolObservation


def capacity(
    pool: Pool, seen: PoolObservation, supply: Supply, target: Target, demand: int, shape: int
) -> tuple[int, tuple[SetCapacity, ...], tuple[Reason, ...]]:
    """Clip a target to minimum, maximum, budget, what can be had and step size; ask only for what differs."""
    notes: list[Reason] = []
    nodes = _clipped(target.nodes, pool, seen, notes)
    step = pool.limits.max_step_nodes
    if step is not None and nodes > supply.counted + step:
        _note(notes, ReasonCode.CLIPPED_TO_STEP, pool, nodes, supply.counted + step)
        nodes = supply.counted + step
    over = max(0, supply.live_gpus - pool.limits.max_gpus)
    if over:
        notes.append(reason(ReasonCode.OVER_LIMIT, pool=pool.name, live_gpus=supply.live_gpus, over_gpus=over))
    if nodes == seen.target_nodes and nodes <= supply.counted:
        return nodes, (), tuple(notes)
    # A node that was lost or never served is replaced by asking for the same number again: a target is a level.
    headroom = max(0, nodes * seen.gpus_per_node * MILLI - demand)
    return nodes, (SetCapacity(pool.name, nodes, headroom, shape, target.reason),), tuple(notes)


def _clipped(nodes: int, pool: Pool, seen: PoolObservation, notes: list[Reason]) -> int:
    """Minimum first, then the upper limits: what may not be exceeded wins over what should be kept."""
    least = ceil_div(pool.limits.min_gpus, seen.gpus_per_node)
    if nodes < least:
        _note(notes, ReasonCode.CLIPPED_TO_MIN, pool, nodes, least)
        nodes = least
    limits = [(pool.limits.max_gpus // seen.gpus_per_node, ReasonCode.CLIPPED_TO_MAX)]
    affordable = affordable_nodes(pool, seen)
    if affordable is not None:
        limits.append((affordable, ReasonCode.CLIPPED_TO_BUDGET))
    if seen.obtainable_gpus is not None:
        limits.append((seen.obtainable_gpus // seen.gpus_per_node, ReasonCode.CLIPPED_TO_OBTAINABLE))
    for limit, code in limits:
        if nodes > limit:
            _note(notes, code, pool, nodes, limit)
            nodes = limit
    return nodes


def _note(notes: list[Reason], code: ReasonCode, pool: Pool, asked: int, allowed: int) -> None:
    notes.append(reason(code, pool=pool.name, asked_nodes=asked, allowed_nodes=allowed))


def removals(
    pool: Pool, seen: PoolObservation, supply: Supply, nodes: int, now_s: int
) -> tuple[tuple[RemoveNode, ...], tuple[Reason, ...]]:
    """Give back idle nodes beyond the target, the longest idle first; busy, young and booting ones stay."""
    gone = [
        RemoveNode(pool.name, node.name, reason(ReasonCode.NODE_GPU_MISSING, pool=pool.name, subject=node.name))
        for node, at in supply.nodes
        if at is Phase.GPU_MISSING and not supply.used[node.name]
    ]
    # A node that never advertised its GPUs is given back once its replacement serves, or at once where the replacement
    # would lift the pool over its maximum.
    coming = max(0, nodes - supply.counted) * seen.gpus_per_node
    over = supply.live_gpus + coming > pool.limits.max_gpus
    out = gone if over or supply.count(Phase.READY) >= nodes else []
    # The target is never above the maximum, so a lowered maximum is a surplus like any other.
    surplus = supply.counted - nodes
    if pool.limits.max_step_nodes is not None:
        surplus = min(surplus, pool.limits.max_step_nodes)
    idle = sorted(
        (node for node, at in supply.nodes if at is Phase.READY and not supply.used[node.name]),
        key=lambda node: (node.idle_since_s if node.idle_since_s is not None else now_s, node.name),
    )
    notes = []
    taken = 0
    for node in idle:
        if taken >= surplus:
            break
        age = now_s - (node.ready_at_s if node.ready_at_s is not None else node.requested_at_s)
        if age < pool.limits.min_node_life_s:
            notes.append(
                reason(
                    ReasonCode.NODE_TOO_YOUNG,
                    pool=pool.name,
                    subject=node.name,
                    age_s=age,
                    least_s=pool.limits.min_node_life_s,
                )
            )
            continue
        taken += 1
        out.append(RemoveNode(pool.name, node.name, _idle_reason(pool, node, nodes, supply.counted, now_s)))
    return tuple(out), tuple(notes)


def _idle_reason(pool: Pool, node: Node, target: int, counted: int, now_s: int) -> Reason:
    idle = now_s - (node.idle_since_s if node.idle_since_s is not None else now_s)
    return reason(
        ReasonCode.NODE_IDLE, pool=pool.name, subject=node.name, idle_s=idle, target_nodes=target, nodes=counted
    )


def losses(pool: Pool, supply: Supply) -> tuple[Reason, ...]:
    """Nodes that the cloud is about to take away: out of supply at once (CASES.md K9)."""
    return tuple(
        reason(ReasonCode.NODE_INTERRUPTED, pool=pool.name, subject=node.name, used_milli_gpus=supply.used[node.name])
        for node, at in supply.nodes
        if at is Phase.INTERRUPTED
    )


def shares(division: Division, moves: Iterable[SetShare]) -> tuple[tuple[SetShare, ...], tuple[Reason, ...]]:
    """Let no share above its ceiling through, nor shares that sum to more than can be had."""
    kept, notes = [], []
    exceeded = sum(share.share for share in division.shares) > division.total
    for move in moves:
        share = division.of(move.team)
        ceiling = share.ceiling if share else 0
        if exceeded or move.milli_gpus > ceiling:
            notes.append(
                reason(
                    ReasonCode.OVER_CEILING,
                    pool=move.pool,
                    team=move.team,
                    asked_milli_gpus=move.milli_gpus,
                    ceiling_milli_gpus=ceiling,
                )
            )
        else:
            kept.append(move)
    return tuple(kept), tuple(notes)


def evictions(
    divisions: Sequence[Division], demand: Demand, moves: Iterable[Evict]
) -> tuple[tuple[Evict, ...], tuple[Reason, ...]]:
    """Let no eviction for another team through that pushes its own below what its floor protects."""
    floors = {(share.pool, share.team): share.floor for d in divisions for share in d.shares}
    left = {key: demand.of(*key).held for key in floors}
    kept, notes = [], []
    for move in moves:
        key = (move.pool, move.team)
        gang_fits_floor = move.milli_gpus <= floors.get(key, 0)
        if (
            move.for_team
            and move.for_team != move.team
            and gang_fits_floor
            and left[key] - move.milli_gpus < floors[key]
        ):
            held = {"held_milli_gpus": left[key], "floor_milli_gpus": floors[key]}
            notes.append(
                reason(ReasonCode.PROTECTED_BY_FLOOR, pool=move.pool, team=move.team, subject=move.workload, **held)
            )
            continue
        left[key] = left.get(key, 0) - move.milli_gpus
        kept.append(move)
    return tuple(kept), tuple(notes)
