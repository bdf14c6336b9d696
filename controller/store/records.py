"""What goes into the store and what comes out: frozen values, so that no page or loop ever holds a database row.

Times are epoch seconds of the world, amounts milli-GPUs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from controller.core.actions import Decision, PoolStanding, TeamStanding
from controller.core.advice import Advice
from controller.core.canonical import canonical_bytes
from controller.core.forecast import Forecasts
from controller.core.policy import Policy
from controller.core.reasons import Reason
from controller.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class TickRecord:
    """All that went into one decision and the decision, as canonical bytes: enough to derive it again bit for bit.

    ``id`` is a content hash of cluster, moment and inputs: the same tick recorded twice is one row. ``at_s`` is the
    world's time, ``wall_at_s`` the clock's when it was recorded.
    """

    id: str
    cluster: str
    at_s: int
    wall_at_s: int
    mode: str
    policy_fingerprint: str
    policy_bytes: bytes
    snapshot: bytes
    forecasts: bytes
    advice: bytes
    decision: bytes

    @classmethod
    def of(
        cls,
        *,
        snapshot: Snapshot,
        forecasts: Forecasts,
        policy: Policy,
        advice: Advice,
        decision: Decision,
        wall_at_s: int,
    ) -> TickRecord:
        """Build the record of a tick; ``decision.at_s`` is its moment."""
        seen, ahead, rules, advised = (canonical_bytes(value) for value in (snapshot, forecasts, policy, advice))
        return cls(
            id=tick_id(decision.cluster, decision.at_s, seen, ahead, rules, advised),
            cluster=decision.cluster,
            at_s=decision.at_s,
            wall_at_s=wall_at_s,
            mode=decision.mode.value,
            policy_fingerprint=hashlib.sha256(rules).hexdigest()[:16],
            policy_bytes=rules,
            snapshot=seen,
            forecasts=ahead,
            advice=advised,
            decision=canonical_bytes(decision),
        )


def tick_id(cluster: str, at_s: int, *inputs: bytes) -> str:
    """The id of a tick: SHA-256 over cluster, moment and the canonical inputs, first 16 hex digits."""
    digest = hashlib.sha256(f"{cluster}\n{at_s}\n".encode())
    for part in inputs:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class TickHeader:
    """A tick without its bytes; ``actions``, ``notes`` and ``violations`` are counts."""

    id: str
    cluster: str
    at_s: int
    wall_at_s: int
    mode: str
    policy: str
    policy_fingerprint: str
    actions: int
    notes: int
    violations: int


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """What became of an action: ``status`` is ``applied``, ``refused`` or ``deferred``."""

    action_id: str
    tick_id: str
    at_s: int
    status: str
    detail: str


@dataclass(frozen=True, slots=True)
class ActionRow:
    """One action of one tick. ``subject`` is the workload or node; ``detail`` the action as canonical JSON holds it.

    ``seq`` grows with every action stored and is the cursor of the next page (``before_id``).
    """

    seq: int
    tick_id: str
    action_id: str
    cluster: str
    at_s: int
    kind: str
    pool: str
    team: str
    subject: str
    reason: Reason
    detail: dict[str, Any]
    outcomes: tuple[OutcomeRow, ...] = ()


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A reason that led to no action: a refusal, a clip, a fact worth showing."""

    seq: int
    tick_id: str
    cluster: str
    at_s: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class ViolationRow:
    """One incident. ``measured`` is the latest value; ``closed_at_s`` None while it lasts."""

    seq: int
    key: str
    cluster: str
    policy: str
    rule: str
    pool: str
    team: str
    opened_at_s: int
    last_seen_at_s: int
    closed_at_s: int | None
    since_s: int
    measured: int
    allowed: int
    unit: str
    severity: str
    action: str
    subjects: tuple[str, ...]
    reason: Reason
    opened_tick_id: str | None
    last_tick_id: str | None


@dataclass(frozen=True, slots=True)
class DecisionView:
    """One tick with everything known of it; ``record`` is None once its bytes have been pruned."""

    header: TickHeader
    record: TickRecord | None
    actions: tuple[ActionRow, ...]
    notes: tuple[NoteRow, ...]


@dataclass(frozen=True, slots=True)
class Now:
    """The newest tick of a cluster, read in one consistent view."""

    tick: TickHeader
    pools: tuple[PoolStanding, ...]
    teams: tuple[TeamStanding, ...]
    violations: tuple[ViolationRow, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """A series as columns of equal length, ascending in ``at_s``.

    ``step_s`` is the width of a point: 0 where each point is one tick, else ``at_s`` is the beginning of the stretch,
    a plain field its mean (rounded) and ``FIELD_max`` its maximum. At ``step_s`` 0 the two are the same.
    """

    step_s: int
    at_s: list[int]
    values: dict[str, list[int]]

    def __len__(self) -> int:
        return len(self.at_s)

    def __getitem__(self, name: str) -> list[int]:
        return self.values[name]


@dataclass(frozen=True, slots=True)
class ForecastPoint:
    """One forecast as it was issued: quantiles of the maximum demand over ``[issued + start_s, issued + end_s]``."""

    issued_at_s: int
    start_s: int
    end_s: int
    model: str
    levels_permille: tuple[int, ...]
    milli_gpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ForecastWindow:
    """A window for which forecasts are stored, and how many."""

    start_s: int
    end_s: int
    issues: int


@dataclass(frozen=True, slots=True)
class ScoredForecast:
    """A forecast beside what came, and beside what the two naive answers said, all known at its issue.

    ``actual`` is the maximum demand seen in the window, ``last_value`` the demand at the issue, ``seasonal`` the
    maximum in the same window a day earlier (None: nothing recorded then).
    """

    forecast: ForecastPoint
    actual: int
    last_value: int | None
    seasonal: int | None


@dataclass(frozen=True, slots=True)
class DemandSeries:
    """One team's (team "": the pool's total) demand on the 5-minute grid; a bin nobody saw is absent, not zero."""

    pool: str
    team: str
    at_s: list[int]
    mean: list[int]
    max: list[int]


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What a store holds, for ``tidegate store info``."""

    backend: str
    url: str
    revision: str
    size_bytes: int
    clusters: tuple[str, ...]
    first_at_s: int | None
    last_at_s: int | None
    rows: dict[str, int]
