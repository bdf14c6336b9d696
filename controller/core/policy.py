"""The policy as the core reads it: every field resolved and typed, nothing left to interpret.

``controller.resources`` turns YAML (or, later, the custom resource) into this; the words are those of the policy file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from controller.core.quantities import PPM, Amount

ZERO = Amount(milli_gpus=0)
ALL = Amount(ppm=PPM)


class Mode(StrEnum):
    """How far tidegate may go: report only, propose, or act."""

    OBSERVE = "observe"
    ADVISE = "advise"
    ENFORCE = "enforce"


class GuardAction(StrEnum):
    """What a guard does about a violation."""

    REPORT = "report"
    ALERT = "alert"
    EVICT = "evict"


class Reclaimable(StrEnum):
    """Which borrowed work may be recalled."""

    PREEMPTIBLE = "preemptible"
    LOWER_PRIORITY = "lower-priority"


@dataclass(frozen=True, slots=True)
class Bounds:
    """A hard floor and ceiling."""

    floor: Amount = ZERO
    ceiling: Amount = ALL


@dataclass(frozen=True, slots=True)
class Window:
    """A recurring stretch of local time with bounds of its own; None leaves a field as it was.

    ``days`` are ISO weekdays less one (Monday 0) on which the window begins. ``from_minute`` and ``to_minute`` count
    from local midnight; ``to <= from`` crosses midnight (equal: 24 hours) and belongs to the day it begins.
    """

    name: str
    days: frozenset[int] | tuple[int, ...]
    from_minute: int
    to_minute: int
    floor: Amount | None = None
    ceiling: Amount | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "days", tuple(sorted(self.days)))


@dataclass(frozen=True, slots=True)
class Team:
    """Namespaces with bounds. ``pools`` empty means: in every pool."""

    name: str
    namespaces: tuple[str, ...]
    priority: int = 0
    weight: int = 1
    bounds: Bounds = Bounds()
    schedule: tuple[Window, ...] = ()
    pools: tuple[str, ...] = ()
    preemptible: bool = False

    def owns(self, namespace: str) -> bool:
        """Whether one of the team's namespace globs matches."""
        return any(fnmatchcase(namespace, pattern) for pattern in self.namespaces)

    def in_pool(self, pool: str) -> bool:
        """Whether the team has bounds in a pool."""
        return not self.pools or pool in self.pools


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Hard limits of a pool: GPUs, hourly cost, node life and how many nodes one tick may add or remove."""

    min_gpus: int
    max_gpus: int
    max_micro_usd_per_hour: int | None = None
    min_node_life_s: int = 600
    max_step_nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one GPU model under one provisioner."""

    name: str
    selector: tuple[tuple[str, str], ...]
    limits: PoolLimits
    provisioner: str = "none"
    wait_weight: int = 9
    gpus_per_node: int = 8

    @property
    def quantile_permille(self) -> int:
        """The quantile that the wait weight implies: ``w / (1 + w)``."""
        return round(1000 * self.wait_weight / (1 + self.wait_weight))


@dataclass(frozen=True, slots=True)
class Lending:
    """Whether and how idle GPUs of one team serve another."""

    enabled: bool = True
    notice_s: int = 600
    reclaim: tuple[Reclaimable, ...] = (Reclaimable.PREEMPTIBLE, Reclaimable.LOWER_PRIORITY)
    forecast_aware: bool = True
    hold_freed_s: int = 300
    min_between_evictions_s: int = 3600
    blast_radius_permille: int = 1500


@dataclass(frozen=True, slots=True)
class Starvation:
    """Demand inside its own entitlement that waits longer than this outranks all borrowing."""

    max_wait_s: int = 900


@dataclass(frozen=True, slots=True)
class CpuOnlyPods:
    """Pods without a GPU on GPU nodes: the share of a node's CPU and memory that they may hold."""

    allow_ppm: int
    action: GuardAction = GuardAction.REPORT
    grace_s: int = 600
    exempt_namespaces: tuple[str, ...] = ("kube-system",)


@dataclass(frozen=True, slots=True)
class IdleGpus:
    """Pods that hold GPUs and do not use them."""

    below_ppm: int
    for_s: int
    action: GuardAction = GuardAction.ALERT


@dataclass(frozen=True, slots=True)
class GpuFraction:
    """Measured use of one shared GPU by a team's pod."""

    team: str
    max_ppm: int
    action: GuardAction = GuardAction.ALERT


@dataclass(frozen=True, slots=True)
class Guards:
    """Rules about what pods do with the GPUs and nodes they have."""

    cpu_only_pods: CpuOnlyPods | None = None
    idle_gpus: IdleGpus | None = None
    gpu_fraction: tuple[GpuFraction, ...] = ()


@dataclass(frozen=True, slots=True)
class Sharing:
    """How one GPU may serve several pods."""

    mig: bool = False
    max_replicas: int = 1


class LearningMode(StrEnum):
    """How far the learner may act; every step includes those before it."""

    OFF = "off"
    SHADOW = "shadow"
    ADVISE = "advise"
    RAISE_ONLY = "raise-only"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Learning:
    """The envelope inside which advice may move the headroom."""

    mode: LearningMode = LearningMode.SHADOW
    low_permille: int = 500
    high_permille: int = 980
    max_headroom_gpus: int | None = None
    patience_days: int | None = None
    """Good days before each next step; None: the ladder's own patience, 0: none is asked for."""


@dataclass(frozen=True, slots=True)
class AlertRoute:
    """One alert channel. ``settings`` holds names only; secrets are referenced, never held."""

    channel: str
    secret_ref: str = ""
    from_severity: str = "warning"
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Enforcement:
    """By what the shares are enforced: ``none``, ``resourceQuota`` or ``kueue`` (with its cohort)."""

    mechanism: str = "none"
    cohort: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """A whole policy that has passed the check; teams and pools sorted by name."""

    name: str
    mode: Mode
    timezone: str
    pools: tuple[Pool, ...]
    teams: tuple[Team, ...]
    lending: Lending = Lending()
    starvation: Starvation = Starvation()
    guards: Guards = Guards()
    sharing: Sharing = Sharing()
    learning: Learning = Learning()
    enforcement: Enforcement = Enforcement()
    alerts: tuple[AlertRoute, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pools", tuple(sorted(self.pools, key=lambda pool: pool.name)))
        object.__setattr__(self, "teams", tuple(sorted(self.teams, key=lambda team: team.name)))

    def team_of(self, namespace: str) -> Team | None:
        """The team that owns a namespace: an exact name wins over a glob, then the first by name."""
        exact = next((team for team in self.teams if namespace in team.namespaces), None)
        return exact or next((team for team in self.teams if team.owns(namespace)), None)

    def pool(self, name: str) -> Pool | None:
        """The pool of that name."""
        return next((pool for pool in self.pools if pool.name == name), None)
