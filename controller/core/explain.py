"""Stage 11: a decision in sentences. One template a reason; the numbers are the reason's own.

Written for the engineer who is woken at night: who, how much, since when, because of what.
"""

from __future__ import annotations

from collections.abc import Iterator

from controller.core.actions import (
    Action,
    Decision,
    Evict,
    GiveNotice,
    PoolStanding,
    RemoveNode,
    Repartition,
    SetCapacity,
    SetShare,
    TeamStanding,
    WithdrawNotice,
)
from controller.core.policy import Mode
from controller.core.quantities import gpus_text
from controller.core.reasons import Reason, ReasonCode, duration_text, fact_text

SENTENCES: dict[ReasonCode, str] = {
    ReasonCode.FLOOR_MET: "{team} may hold {share_milli_gpus} GPUs: its floor of {floor_milli_gpus} is kept",
    ReasonCode.WITHIN_ENTITLEMENT: "{team} may hold {share_milli_gpus} GPUs, within the {entitlement_milli_gpus} due to it",
    ReasonCode.BORROWING_IDLE: (
        "{team} may hold {share_milli_gpus} GPUs: the {entitlement_milli_gpus} due to it and {borrowed_milli_gpus} that others do not want now"
    ),
    ReasonCode.LENT_OUT: (
        "{team} may hold {share_milli_gpus} GPUs: it does not want {lent_milli_gpus} of the {entitlement_milli_gpus} due to it, and others do"
    ),
    ReasonCode.LENT_TO_PREEMPTIBLE_ONLY: (
        "{team} may hold {share_milli_gpus} GPUs, {preemptible_milli_gpus} of them only with preemptible work: their owner is forecast to want them again"
    ),
    ReasonCode.OVER_CEILING: "{team} asks for {asked_milli_gpus} GPUs; its ceiling is {ceiling_milli_gpus}",
    ReasonCode.OVERHANG_TOLERATED: (
        "{team} holds {held_milli_gpus} GPUs, {overhang_milli_gpus} more than the {bound_milli_gpus} it may hold: tolerated until it drains or is recalled"
    ),
    ReasonCode.SHORTAGE_SHARED: "{team} asks for {asked_milli_gpus} GPUs and may hold {share_milli_gpus}: the others are held, due to another team, or kept for its next peak",
    ReasonCode.STARVED: "{team} has waited {waited_s} for GPUs it is entitled to; {allowed_s} is allowed",
    ReasonCode.LENDING_OFF: "{team} asks for {asked_milli_gpus} GPUs and may hold {share_milli_gpus}: lending is off in the policy",
    ReasonCode.UNOWNED_WORK: "{gangs} jobs in {pool} belong to no team of the policy; they hold {held_milli_gpus} GPUs",
    ReasonCode.RULE_TARGET: (
        "The rule wants {nodes} for {pool}: demand of {demand_milli_gpus} GPUs plus {buffer_permille}, the most of the last {hold_s}"
    ),
    ReasonCode.FORECAST_TARGET: (
        "The forecast wants {nodes} for {pool}: the {quantile_permille} quantile of demand {lead_s} ahead; demand is {demand_milli_gpus} GPUs, the rule would want {rule_nodes}"
    ),
    ReasonCode.LEARNER_TARGET: (
        "The learner wants {nodes} for {pool} ({quantile_permille}); demand is {demand_milli_gpus} GPUs, the rule would want {rule_nodes}"
    ),
    ReasonCode.FORECAST_MISSING: "there is no forecast for {pool}: the rule decides",
    ReasonCode.FORECAST_STALE: "the forecast for {pool} is {age_s} old, {allowed_s} is allowed: it is not used",
    ReasonCode.CLIPPED_TO_MAX: "{asked_nodes} nodes wanted in {pool}, {allowed_nodes} is the policy's maximum",
    ReasonCode.CLIPPED_TO_MIN: "{asked_nodes} nodes wanted in {pool}, {allowed_nodes} is the policy's minimum",
    ReasonCode.CLIPPED_TO_BUDGET: "{asked_nodes} nodes wanted in {pool}, the hourly budget pays for {allowed_nodes}",
    ReasonCode.CLIPPED_TO_STEP: "{asked_nodes} nodes wanted in {pool}, one step may reach {allowed_nodes}",
    ReasonCode.CLIPPED_TO_HEADROOM: "{asked_nodes} nodes advised for {pool}, the largest headroom allows {allowed_nodes}",
    ReasonCode.CLIPPED_TO_ENVELOPE: "{asked_nodes} nodes advised for {pool}; the policy's limits on advice make it {allowed_nodes}",
    ReasonCode.CLIPPED_TO_OBTAINABLE: "{asked_nodes} nodes wanted in {pool}, {allowed_nodes} can be had now",
    ReasonCode.NODE_IDLE: "node {subject} goes: idle for {idle_s}, {nodes} nodes where {target_nodes} are wanted",
    ReasonCode.NODE_TOO_YOUNG: "node {subject} stays though idle: it is {age_s} old, nodes live at least {least_s}",
    ReasonCode.NODE_GPU_MISSING: "nodes in {pool} joined but never advertised their GPUs; a replacement has been asked for",
    ReasonCode.NODE_INTERRUPTED: "node {subject} is about to be taken away by the cloud, with {used_milli_gpus} GPUs in use: a replacement is asked for",
    ReasonCode.OVER_LIMIT: "{pool} has {live_gpus} GPUs, {over_gpus} over its maximum: idle nodes go, nothing that runs is stopped",
    ReasonCode.GANG_DOES_NOT_FIT: "{subject} asks for {asked_milli_gpus} GPUs; {free_milli_gpus} are free, but not in its shape",
    ReasonCode.FRAGMENTED: "{stranded_milli_gpus} free GPUs in {pool} are on fragments smaller than the {smallest_milli_gpus} that waiting pods need",
    ReasonCode.RECLAIM_FOR_FLOOR: "{subject} of {team} gives {freed_milli_gpus} lent GPUs back to {for_team}, which waits for {asked_milli_gpus} that are due to it",
    ReasonCode.RECLAIM_FOR_STARVED: "{subject} of {team} gives {freed_milli_gpus} lent GPUs back to {for_team}, which has waited {waited_s} for {asked_milli_gpus} that are due to it",
    ReasonCode.RECLAIM_AHEAD_OF_PEAK: "{subject} of {team} gives {freed_milli_gpus} lent GPUs back ahead of the peak of {for_team}, forecast to want {asked_milli_gpus} more",
    ReasonCode.RECLAIM_OVER_CEILING: "{subject} of {team} gives {freed_milli_gpus} GPUs back: the team's ceiling was lowered by {asked_milli_gpus} below what it holds",
    ReasonCode.NOTICE_RUNNING: "{subject} of {team} has {left_s} of notice left before {for_team} gets its {held_milli_gpus} GPUs",
    ReasonCode.NOTICE_WITHDRAWN: "{subject} of {team} may stay: {for_team} no longer needs its GPUs",
    ReasonCode.PROTECTED_BY_FLOOR: "{subject} of {team} stays: it stands on the team's floor of {floor_milli_gpus} (holds {held_milli_gpus})",
    ReasonCode.PROTECTED_BY_PDB: "{subject} of {team} stays: its PodDisruptionBudget allows no disruption (wanted by {for_team})",
    ReasonCode.PROTECTED_NOT_PREEMPTIBLE: "{subject} of {team} stays: it is neither preemptible nor of lower priority than {for_team}",
    ReasonCode.BLAST_RADIUS: "{subject} of {team} stays: recalling its {held_milli_gpus} GPUs would take far more than {for_team} asks for",
    ReasonCode.EVICTED_LATELY: "{subject} of {team} stays: it was recalled within the last hour",
    ReasonCode.HELD_FOR_OWNER: "{held_milli_gpus} GPUs are held for {team}, for which they were just freed",
    ReasonCode.EVICTION_REFUSED: "{subject} of {team} was asked to go and has not; it is reported, never forced",
    ReasonCode.NOTHING_TO_RECLAIM: "{team} waits for {asked_milli_gpus} GPUs due to it; {short_milli_gpus} of them are held by work that may not be recalled",
    ReasonCode.GANG_ABOVE_SHARE: "{subject} of {team} asks for {asked_milli_gpus} GPUs at once; the team may hold {share_milli_gpus}",
    ReasonCode.PARTITION_FOR_SLICES: "GPU {gpu} of {subject} is cut for {slices} waiting slices",
    ReasonCode.PARTITION_IN_USE: "{waiting_slices} slices wait in {pool}; {gpus_in_use} GPUs that could be cut are in use and are left alone",
    ReasonCode.CPU_SQUATTER: "{pods} pods without a GPU hold up to {held_ppm} of GPU nodes in {pool}; {allowed_ppm} is allowed",
    ReasonCode.IDLE_GPUS: "{gangs} jobs of {team} hold {held_milli_gpus} GPUs and keep them at most {busy_ppm} busy; {allowed_ppm} is expected",
    ReasonCode.GPU_FRACTION_EXCEEDED: "{team} uses {busy_ppm} of a shared GPU; {allowed_ppm} is allowed",
    ReasonCode.BELOW_FLOOR: "{team} holds {held_milli_gpus} GPUs and waits for more, with a floor of {floor_milli_gpus}",
    ReasonCode.OWNER_COVERAGE_LOW: "only {covered_ppm} of the GPUs held in {pool} belong to teams of the policy; below {wanted_ppm} figures by team mislead",
}
"""A sentence for each reason. Names in braces are the reason's pool, team, subject or facts."""


def sentence(why: Reason) -> str:
    """A reason as a sentence, without the full stop."""
    facts = {name: fact_text(name, value) for name, value in why.facts}
    return SENTENCES[why.code].format(pool=why.pool, team=why.team or "nobody's work", subject=why.subject, **facts)


def action_sentence(action: Action) -> str:
    """What an action does and why."""
    match action:
        case SetCapacity():
            warm = f", {gpus_text(action.headroom_milli_gpus)} GPUs beyond demand" if action.headroom_milli_gpus else ""
            return f"have {action.nodes} nodes in {action.pool}{warm}: {sentence(action.reason)}"
        case GiveNotice():
            return f"notice to {action.workload} of {action.team}: {sentence(action.reason)}"
        case Evict():
            return f"evict {action.workload}: {sentence(action.reason)}"
        case Repartition():
            layout = " + ".join(action.profiles) or f"{action.replicas} replicas"
            return f"cut GPU {action.gpu_index} of {action.node} into {layout}: {sentence(action.reason)}"
        case SetShare() | RemoveNode() | WithdrawNotice():
            return sentence(action.reason)


def team_sentence(team: TeamStanding) -> str:
    """A team's standing in one sentence."""
    parts = [f"{team.team} holds {gpus_text(team.held)} of {gpus_text(team.share)} GPUs it may hold in {team.pool}"]
    parts.append(f"bounds {gpus_text(team.floor)} to {gpus_text(team.ceiling)} ({team.bounds_from})")
    if team.pending:
        parts.append(f"{gpus_text(team.pending)} waiting, the longest for {duration_text(team.longest_wait_s)}")
    if team.lent:
        parts.append(f"{gpus_text(team.lent)} lent out")
    if team.borrowed:
        parts.append(f"{gpus_text(team.borrowed)} borrowed")
    if team.reserved:
        parts.append(f"{gpus_text(team.reserved)} kept for its next peak")
    return "; ".join(parts)


def pool_sentence(pool: PoolStanding) -> str:
    """A pool's standing in one sentence."""
    text = (
        f"{pool.pool} has {pool.nodes_ready} nodes ready and {pool.nodes_booting} booting, {pool.target_nodes} wanted; "
        f"{gpus_text(pool.held_milli_gpus)} of {gpus_text(pool.supply_milli_gpus)} GPUs held, "
        f"demand {gpus_text(pool.demand_milli_gpus)}, at most {gpus_text(pool.obtainable_milli_gpus)} can be had"
    )
    missing = f"; {pool.nodes_gpu_missing} nodes without their GPUs" if pool.nodes_gpu_missing else ""
    return text + missing


def explain(decision: Decision) -> list[str]:
    """A decision as a list of sentences: how things stand, what is done, what was not done, what is violated."""
    return list(_lines(decision))


def _lines(decision: Decision) -> Iterator[str]:
    yield from (pool_sentence(pool) + "." for pool in decision.pools)
    yield from (team_sentence(team) + "." for team in decision.teams)
    if decision.actions and decision.mode is not Mode.ENFORCE:
        yield f"The policy's mode is {decision.mode.value}: what follows would be done, and is not."
    yield from (f"Done: {action_sentence(action)}." for action in decision.actions)
    if not decision.actions:
        yield "Nothing needs to be done."
    yield from (f"Note: {sentence(note)}." for note in decision.notes)
    yield from (f"Violation ({v.severity}): {sentence(v.reason)}." for v in decision.violations)
    if decision.ignored_nodes:
        yield f"{len(decision.ignored_nodes)} nodes are in no pool and are ignored: {', '.join(decision.ignored_nodes[:5])}."
