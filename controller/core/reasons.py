"""One vocabulary of reasons: why something was done, and why something was refused.

A reason is a code and its numbers. The same code labels log line, Kubernetes event, metric and dashboard row, and
``sentence`` renders it for people. Facts are ints (unit in the name) or names; nothing here is prose that drifts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from controller.core.quantities import gpus_text


class ReasonCode(StrEnum):
    """All reasons; ``_SENTENCES`` has one line for each, docs/reference/reasons.md a paragraph."""

    # shares
    FLOOR_MET = "FLOOR_MET"
    WITHIN_ENTITLEMENT = "WITHIN_ENTITLEMENT"
    BORROWING_IDLE = "BORROWING_IDLE"
    LENT_OUT = "LENT_OUT"
    LENT_TO_PREEMPTIBLE_ONLY = "LENT_TO_PREEMPTIBLE_ONLY"
    OVER_CEILING = "OVER_CEILING"
    OVERHANG_TOLERATED = "OVERHANG_TOLERATED"
    SHORTAGE_SHARED = "SHORTAGE_SHARED"
    STARVED = "STARVED"
    LENDING_OFF = "LENDING_OFF"
    UNOWNED_WORK = "UNOWNED_WORK"
    # capacity
    RULE_TARGET = "RULE_TARGET"
    FORECAST_TARGET = "FORECAST_TARGET"
    LEARNER_TARGET = "LEARNER_TARGET"
    FORECAST_MISSING = "FORECAST_MISSING"
    FORECAST_STALE = "FORECAST_STALE"
    CLIPPED_TO_MAX = "CLIPPED_TO_MAX"
    CLIPPED_TO_MIN = "CLIPPED_TO_MIN"
    CLIPPED_TO_BUDGET = "CLIPPED_TO_BUDGET"
    CLIPPED_TO_STEP = "CLIPPED_TO_STEP"
    CLIPPED_TO_HEADROOM = "CLIPPED_TO_HEADROOM"
    CLIPPED_TO_ENVELOPE = "CLIPPED_TO_ENVELOPE"
    CLIPPED_TO_OBTAINABLE = "CLIPPED_TO_OBTAINABLE"
    NODE_IDLE = "NODE_IDLE"
    NODE_TOO_YOUNG = "NODE_TOO_YOUNG"
    NODE_GPU_MISSING = "NODE_GPU_MISSING"
    NODE_INTERRUPTED = "NODE_INTERRUPTED"
    OVER_LIMIT = "OVER_LIMIT"
    GANG_DOES_NOT_FIT = "GANG_DOES_NOT_FIT"
    FRAGMENTED = "FRAGMENTED"
    # reclaim
    RECLAIM_FOR_FLOOR = "RECLAIM_FOR_FLOOR"
    RECLAIM_FOR_STARVED = "RECLAIM_FOR_STARVED"
    RECLAIM_AHEAD_OF_PEAK = "RECLAIM_AHEAD_OF_PEAK"
    RECLAIM_OVER_CEILING = "RECLAIM_OVER_CEILING"
    NOTICE_RUNNING = "NOTICE_RUNNING"
    NOTICE_WITHDRAWN = "NOTICE_WITHDRAWN"
    PROTECTED_BY_FLOOR = "PROTECTED_BY_FLOOR"
    PROTECTED_BY_PDB = "PROTECTED_BY_PDB"
    PROTECTED_NOT_PREEMPTIBLE = "PROTECTED_NOT_PREEMPTIBLE"
    BLAST_RADIUS = "BLAST_RADIUS"
    EVICTED_LATELY = "EVICTED_LATELY"
    HELD_FOR_OWNER = "HELD_FOR_OWNER"
    EVICTION_REFUSED = "EVICTION_REFUSED"
    NOTHING_TO_RECLAIM = "NOTHING_TO_RECLAIM"
    GANG_ABOVE_SHARE = "GANG_ABOVE_SHARE"
    # partition and guards
    PARTITION_FOR_SLICES = "PARTITION_FOR_SLICES"
    PARTITION_IN_USE = "PARTITION_IN_USE"
    CPU_SQUATTER = "CPU_SQUATTER"
    IDLE_GPUS = "IDLE_GPUS"
    GPU_FRACTION_EXCEEDED = "GPU_FRACTION_EXCEEDED"
    BELOW_FLOOR = "BELOW_FLOOR"
    OWNER_COVERAGE_LOW = "OWNER_COVERAGE_LOW"


Fact = tuple[str, int | str]


@dataclass(frozen=True, slots=True, order=True)
class Reason:
    """A code and its facts, for one subject: a pool, a team in it, a workload or node (``subject``)."""

    code: ReasonCode
    pool: str = ""
    team: str = ""
    subject: str = ""
    facts: tuple[Fact, ...] = ()

    def fact(self, name: str) -> int | str | None:
        """The value of a fact, or None."""
        return dict(self.facts).get(name)


def reason(code: ReasonCode, *, pool: str = "", team: str = "", subject: str = "", **facts: int | str) -> Reason:
    """Build a reason; facts are kept in the order of their names."""
    return Reason(code, pool, team, subject, tuple(sorted(facts.items())))


def fact_text(name: str, value: int | str) -> str:
    """Render a fact with its unit: ``_milli_gpus`` as GPUs, ``_s`` as a duration, ``_permille``/``_ppm`` as percent."""
    if isinstance(value, str):
        return value
    if name.endswith("milli_gpus"):
        return gpus_text(value)
    if name.endswith("_permille"):
        return f"{value / 10:g} %"
    if name.endswith("_ppm"):
        return f"{value / 10_000:g} %"
    if name.endswith("micro_usd_per_hour"):
        return f"${value / 1_000_000:,.2f}/h"
    return duration_text(value) if name.endswith("_s") else str(value)


def duration_text(seconds: int) -> str:
    """Render seconds as ``2 h 5 min``, ``10 min`` or ``45 s``."""
    if abs(seconds) < 120:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    if abs(minutes) < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"
