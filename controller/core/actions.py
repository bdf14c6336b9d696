"""What the core may ask a world to do, and the decision that holds it all.

An action's id is the hash of its content, not of the moment: an action that was carried out already is recognised
when it is asked for again, and a retry does nothing twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from controller.core.canonical import fingerprint
from controller.core.policy import GuardAction, Mode
from controller.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class SetCapacity:
    """Have ``nodes`` nodes in a pool, booting ones included; ``headroom_milli_gpus`` of it is beyond demand."""

    kind: ClassVar[str] = "set_capacity"
    pool: str
    nodes: int
    headroom_milli_gpus: int
    shape_milli_gpus: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class RemoveNode:
    """Cordon a node, look again, and give it back if it is still empty."""

    kind: ClassVar[str] = "remove_node"
    pool: str
    node: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class SetShare:
    """Let a team hold at most ``milli_gpus`` in a pool; ``preemptible_milli_gpus`` of it only by preemptible work."""

    kind: ClassVar[str] = "set_share"
    pool: str
    team: str
    milli_gpus: int
    preemptible_milli_gpus: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class GiveNotice:
    """Tell a gang that it will be evicted at ``evict_at_s``, and for whom."""

    kind: ClassVar[str] = "give_notice"
    pool: str
    team: str
    workload: str
    for_team: str
    evict_at_s: int
    milli_gpus: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class WithdrawNotice:
    """The need has gone: the gang may stay."""

    kind: ClassVar[str] = "withdraw_notice"
    pool: str
    team: str
    workload: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict a whole gang through the Eviction API; never force."""

    kind: ClassVar[str] = "evict"
    pool: str
    team: str
    workload: str
    for_team: str
    milli_gpus: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Repartition:
    """Give an idle GPU another layout; ``profiles`` empty means one whole GPU."""

    kind: ClassVar[str] = "repartition"
    pool: str
    node: str
    gpu_index: int
    profiles: tuple[str, ...]
    replicas: int
    reason: Reason


Action = SetCapacity | RemoveNode | SetShare | GiveNotice | WithdrawNotice | Evict | Repartition


def action_id(action: Action) -> str:
    """The content hash under which an action is known everywhere."""
    return fingerprint(action)


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that is broken now. Its key never holds a number or a time, so that one incident stays one."""

    rule: str
    pool: str
    team: str
    subjects: tuple[str, ...]
    since_s: int
    measured: int
    allowed: int
    unit: str
    severity: str
    action: GuardAction
    reason: Reason

    def key(self, cluster: str, policy: str) -> str:
        """The identity of the incident: (cluster, policy, rule, team, pool)."""
        return "/".join((cluster, policy, self.rule, self.team, self.pool))


@dataclass(frozen=True, slots=True)
class TeamStanding:
    """One team in one pool, all amounts in milli-GPUs.

    ``entitlement``: its part if every team wanted everything. ``share``: what it may hold now. ``held`` + ``pending``
    = ``demand``. ``lent`` and ``borrowed``: share below or above the entitlement because of others' or its own demand.
    ``overhang``: held above the share, tolerated until it drains or is recalled.
    """

    pool: str
    team: str
    floor: int
    ceiling: int
    entitlement: int
    share: int
    preemptible_share: int
    demand: int
    held: int
    pending: int
    lent: int
    borrowed: int
    overhang: int
    reserved: int
    longest_wait_s: int
    starved: bool
    bounds_from: str


@dataclass(frozen=True, slots=True)
class PoolStanding:
    """One pool: nodes by state, what can be had, demand, and the targets that were considered."""

    pool: str
    max_milli_gpus: int
    obtainable_milli_gpus: int
    supply_milli_gpus: int
    free_milli_gpus: int
    demand_milli_gpus: int
    held_milli_gpus: int
    unowned_milli_gpus: int
    nodes_ready: int
    nodes_booting: int
    nodes_gpu_missing: int
    nodes_cordoned: int
    target_nodes: int
    rule_nodes: int
    advised_nodes: int | None
    source: str
    quantile_permille: int | None
    largest_gang_that_fits_milli_gpus: int
    stranded_milli_gpus: int
    micro_usd_per_hour: int
    over_limit_gpus: int


@dataclass(frozen=True, slots=True)
class Decision:
    """All that one tick decided: the standing of pools and teams, what to do, what was refused, what is violated.

    ``notes`` are reasons that led to no action: refusals, clips, facts worth showing.
    """

    at_s: int
    cluster: str
    policy: str
    mode: Mode
    pools: tuple[PoolStanding, ...]
    teams: tuple[TeamStanding, ...]
    actions: tuple[Action, ...]
    notes: tuple[Reason, ...]
    violations: tuple[Violation, ...]
    ignored_nodes: tuple[str, ...]
