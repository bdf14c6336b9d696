"""The ``GPUPolicy`` object as users write it: the same shape in a file and, later, as a custom resource.

Each model mirrors one mapping of the policy; aliases are the words of the file. What a single field can say is checked
here, what needs several fields or a clock is checked in ``parse``.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from controller.core.quantities import MILLI, Amount

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DAY_SETS = {"daily": DAYS, "weekdays": DAYS[:5], "weekends": DAYS[5:]}
_DURATION = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?", re.ASCII)
LONGEST_S = 366 * 86_400
"""Beyond a year a notice or a time-out means never, and is a slip of the unit."""
_PERCENT = re.compile(r"(\d{1,3})(?:\.(\d{1,3}))?\s*%", re.ASCII)
_TIME = re.compile(r"([01]\d|2[0-4]):([0-5]\d)", re.ASCII)


def refuse(allowed: str) -> PydanticCustomError:
    """The error that carries what is allowed; ``parse`` adds the field's path and value."""
    return PydanticCustomError("tidegate", "{allowed}", {"allowed": allowed})


def to_amount(value: Any) -> Amount:
    """``70%`` (up to three decimals) or a whole number of GPUs."""
    allowed = "a percentage from 0% to 100% (such as 70%), or a whole number of GPUs, 0 or more"
    if isinstance(value, Amount):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise refuse(allowed)
        return Amount(milli_gpus=value * MILLI)
    match = _PERCENT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise refuse(allowed)
    ppm = int(match[1]) * 10_000 + int((match[2] or "0").ljust(3, "0")) * 10
    if ppm > 1_000_000:
        raise refuse(allowed)
    return Amount(ppm=ppm)


def to_ppm(value: Any) -> int:
    """A percentage as parts per million."""
    if isinstance(value, str) and (amount := to_amount(value)).ppm is not None:
        return amount.ppm
    raise refuse("a percentage from 0% to 100%, such as 40%")


def to_seconds(value: Any) -> int:
    """A duration: ``45s``, ``10m``, ``1h30m``, ``2d``."""
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) and value.strip() else None
    if match is None:
        raise refuse("a duration such as 45s, 10m, 1h30m or 2d")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if total > LONGEST_S:
        raise refuse("a duration of at most 366d")
    return total


def duration_text(seconds: int) -> str:
    """Seconds as a policy writes them: ``1h30m``; the inverse of ``to_seconds``."""
    parts, left = "", seconds
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, length)
        parts += f"{count}{unit}" if count else ""
    return parts or "0s"


def time_text(minute: int) -> str:
    """A minute of the day as a policy writes it: ``18:00``."""
    return f"{minute // 60:02}:{minute % 60:02}"


def to_minute(value: Any) -> int:
    """A time of day as minutes from midnight. A bare number is refused: 18 could be an hour or a minute."""
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match[1]) * 60 + int(match[2]) > 1440:
        raise refuse('a time of day between "00:00" and "24:00", such as "18:00"')
    return int(match[1]) * 60 + int(match[2])


def to_days(value: Any) -> tuple[int, ...]:
    """Day names, or ``daily``, ``weekdays``, ``weekends``; as weekdays with Monday 0."""
    names = DAY_SETS.get(value.lower(), [value]) if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not names or any(name not in DAYS for name in names):
        raise refuse(f"daily, weekdays, weekends, or a list of {', '.join(DAYS)}")
    return tuple(sorted({DAYS.index(name) for name in names}))


Gpus = Annotated[int, Field(ge=0, le=1_000_000)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=63)]
PERCENT_TEXT = r"^\s*\d{1,3}(\.\d{1,3})?\s*%\s*$"
Bound = Annotated[
    Amount,
    BeforeValidator(to_amount),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": PERCENT_TEXT}]}),
]
Percent = Annotated[int, BeforeValidator(to_ppm), WithJsonSchema({"type": "string", "pattern": PERCENT_TEXT})]
Duration = Annotated[
    int,
    BeforeValidator(to_seconds),
    WithJsonSchema({"type": "string", "pattern": r"^\s*(?=\d)(\d+d)?(\d+h)?(\d+m)?(\d+s)?\s*$"}),
]
Minute = Annotated[
    int,
    BeforeValidator(to_minute),
    WithJsonSchema({"type": "string", "pattern": r"^(([01]\d|2[0-3]):[0-5]\d|24:00)$"}),
]
Days = Annotated[
    tuple[int, ...],
    BeforeValidator(to_days),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "enum": [*DAY_SETS, *DAYS]},
                {"type": "array", "items": {"enum": list(DAYS)}, "minItems": 1},
            ]
        }
    ),
]
Namespaces = Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]


class Part(BaseModel):
    """A mapping of the policy: camelCase, nothing unknown, nothing coerced."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=False,
        extra="forbid",
        strict=True,
        frozen=True,
        arbitrary_types_allowed=True,
    )


class BoundsPart(Part):
    """Floor and ceiling; absent means no change (in a window) or 0 and 100% (for a team)."""

    floor: Bound | None = None
    ceiling: Bound | None = None


class WindowPart(Part):
    """A recurring stretch of local time with bounds of its own; without ``from`` and ``to`` the whole day."""

    name: Name
    days: Days
    from_: Annotated[Minute, Field(alias="from")] = 0
    to: Minute = 1440
    bounds: BoundsPart


class TeamPart(Part):
    """A team: namespaces with bounds."""

    name: Name
    namespaces: Namespaces
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    weight: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    preemptible: bool = False
    pools: list[Name] = []
    bounds: BoundsPart = BoundsPart()
    schedule: list[WindowPart] = []


class NodesPart(Part):
    """Which nodes belong to a pool."""

    selector: Annotated[dict[str, str], Field(min_length=1)]


class CapacityPart(Part):
    """Hard limits of a pool."""

    min: Gpus = 0
    max: Annotated[int, Field(ge=1, le=1_000_000)]
    max_hourly_cost: Annotated[float, Field(gt=0, le=1_000_000_000, strict=False)] | None = None


class ProvisionerPart(Part):
    """By what nodes come: exactly one key."""

    capacity_buffer: dict[str, Any] | None = None
    karpenter_static: dict[str, Any] | None = None
    eks: dict[str, Any] | None = None
    gke: dict[str, Any] | None = None
    aks: dict[str, Any] | None = None
    none: dict[str, Any] | None = None


class PoolPart(Part):
    """Nodes of one GPU model under one provisioner."""

    name: Name
    nodes: NodesPart
    capacity: CapacityPart
    provisioner: ProvisionerPart = ProvisionerPart(none={})
    wait_weight: Annotated[int, Field(ge=1, le=1000)] = 9
    gpus_per_node: Annotated[int, Field(ge=1, le=128)] = 8
    min_node_life: Duration = 600
    max_step_nodes: Annotated[int, Field(ge=1)] | None = None


class LendingPart(Part):
    """Whether and how idle GPUs of one team serve another."""

    enabled: bool = True
    notice: Duration = 600
    reclaim: list[Literal["preemptible", "lower-priority"]] = ["preemptible", "lower-priority"]
    forecast_aware: bool = True


class StarvationPart(Part):
    """How long work inside its own entitlement may wait."""

    max_wait: Duration = 900


class EmptyPart(Part):
    """A mapping without settings."""


class KueuePart(Part):
    """Shares as Kueue ClusterQueue quotas in one cohort."""

    cohort: Name


class EnforcementPart(Part):
    """By what shares are enforced: at most one key."""

    kueue: KueuePart | None = None
    resource_quota: EmptyPart | None = None
    none: EmptyPart | None = None


Action = Literal["report", "alert", "evict"]


class CpuOnlyPodsPart(Part):
    """Pods without a GPU on GPU nodes."""

    on: Literal["gpu-nodes"] = "gpu-nodes"
    allow: Percent
    action: Action = "report"
    grace: Duration = 600
    exempt_namespaces: list[str] = ["kube-system"]


class IdleGpusPart(Part):
    """Pods that hold GPUs and do not use them."""

    below: Percent
    for_: Annotated[Duration, Field(alias="for")]
    action: Action = "alert"


class GpuFractionPart(Part):
    """Measured use of one shared GPU by a team."""

    team: Name
    max: Percent
    action: Action = "alert"


class GuardsPart(Part):
    """Rules about what pods do with the GPUs and nodes they have."""

    cpu_only_pods: CpuOnlyPodsPart | None = None
    idle_gpus: IdleGpusPart | None = None
    gpu_fraction: GpuFractionPart | list[GpuFractionPart] | None = None


class TimeSlicingPart(Part):
    """Replicas of one GPU."""

    max_replicas: Annotated[int, Field(ge=1, le=64)]


class SharingPart(Part):
    """How one GPU may serve several pods."""

    mig: Literal["auto", "off"] = "off"
    time_slicing: TimeSlicingPart | None = None


Level = Annotated[float, Field(ge=0.001, le=0.999)]


class LearningPart(Part):
    """The envelope inside which advice may move the headroom."""

    mode: Literal["off", "shadow", "advise", "raise-only", "full"] = "shadow"
    quantile: Annotated[list[Annotated[float, Field(ge=0.001, le=0.999)]], Field(min_length=2, max_length=2)] = [
        0.5,
        0.98,
    ]
    max_headroom: Gpus | None = None
    patience_days: Annotated[int, Field(ge=0, le=90)] | None = None


Severity = Literal["info", "warning", "critical"]


class SlackPart(Part):
    """Slack: the channel and the Secret that holds the token."""

    channel: str
    secret_ref: Name
    from_: Annotated[Severity, Field(alias="from")] = "warning"


class SecretPart(Part):
    """A channel that needs only a Secret."""

    secret_ref: Name
    from_: Annotated[Severity, Field(alias="from")] = "warning"


class UrlPart(Part):
    """A channel that is a URL."""

    url: Annotated[str, Field(pattern=r"^https?://\S+$")]
    secret_ref: Name | None = None
    from_: Annotated[Severity, Field(alias="from")] = "warning"


class AlertsPart(Part):
    """Where violations are told."""

    slack: SlackPart | None = None
    pagerduty: SecretPart | None = None
    alertmanager: UrlPart | None = None
    webhook: UrlPart | None = None


class SpecPart(Part):
    """What the policy says."""

    mode: Literal["observe", "advise", "enforce"] = "observe"
    timezone: str = "UTC"
    pools: Annotated[list[PoolPart], Field(min_length=1)]
    teams: Annotated[list[TeamPart], Field(min_length=1)]
    lending: LendingPart = LendingPart()
    starvation: StarvationPart = StarvationPart()
    enforcement: EnforcementPart = EnforcementPart()
    guards: GuardsPart = GuardsPart()
    sharing: SharingPart = SharingPart()
    learning: LearningPart = LearningPart()
    alerts: AlertsPart = AlertsPart()


class MetadataPart(Part):
    """Name, and what Kubernetes or its tools may add."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", strict=True, frozen=True)
    name: Name


class GPUPolicy(Part):
    """The whole object."""

    api_version: Literal["tidegate.dev/v1alpha1"]
    kind: Literal["GPUPolicy"]
    metadata: MetadataPart
    spec: SpecPart
    status: Any = None
