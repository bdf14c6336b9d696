"""What learning leaves behind, as frozen values: what was wanted and why, what it cost, who acts, with which model.

All of it is append-only: a key that is there already is left as it is, nothing is ever updated. Times are epoch seconds
of the world, demand milli-GPUs, costs milli-GPU-hours (idle + wait weight x wait + starting + churn).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from controller.core.reasons import Fact

NO_MODEL = ""


def learning_key(cluster: str, pool: str) -> str:
    """Where a loop keeps how learning stands in a pool now, for a restart and for people to see.

    A mapping of ``ladder`` and ``watch`` (what their ``to_plain`` gives), ``inputs_age_s`` (None: no inputs),
    ``loss_used``, ``stay``, ``fed_s`` and ``weights``, pairs of a candidate's name and its weight in millionths. What
    is not known yet may be left out.
    """
    return f"learning/{cluster}/{pool}"


@dataclass(frozen=True, slots=True)
class LearningTick:
    """What learning wanted for one pool in one tick, whether it acted or not; key ``(tick_id, pool)``.

    ``ceiling``: the policy's learning mode; ``rung``: the rung in force, never above it. ``acting`` set the target:
    ``rule``, a candidate's name, ``hedge`` or ``hindsight``. ``quantiles``: ``(permille, milli-GPUs)`` of the pool's
    total at the lead; ``candidates``: ``(name, nodes)``, each one's target now. ``learner_nodes``: what the learner
    wanted (None: nothing); ``target_nodes``: what was aimed at after the shield. ``implied_permille``: the highest
    quantile at which the forecast fits into what the learner wanted. ``move``: the learner against the rule, ``raise``,
    ``keep`` or ``lower``. ``clipped``: codes of the shield's reasons. ``model``: fingerprint of the model file, "" for
    none. ``inputs``: the canonical JSON that the advice was computed from, empty in lists and once pruned;
    ``inputs_hash`` stays.
    """

    cluster: str
    tick_id: str
    at_s: int
    pool: str
    ceiling: str
    rung: str
    acting: str
    demand_milli_gpus: int
    lead_s: int
    quantiles: tuple[tuple[int, int], ...]
    rule_nodes: int
    candidates: tuple[tuple[str, int], ...]
    learner_nodes: int | None
    target_nodes: int
    implied_permille: int | None
    move: str
    clipped: tuple[str, ...]
    model: str
    inputs: bytes
    inputs_hash: str

    @classmethod
    def of(cls, *, inputs: bytes, **values: Any) -> LearningTick:
        """Build a row from every field but ``inputs_hash``, which is computed."""
        return cls(inputs=inputs, inputs_hash=content_hash(inputs), **values)


def kill_key(cluster: str) -> str:
    """Where the kill switch is: true while learning is off in a cluster, whatever its policy says."""
    return f"learning-killed/{cluster}"


@dataclass(frozen=True, slots=True)
class LearningPoint:
    """A stretch of ticks for a chart: means of what was wanted; ``learner_milli_nodes`` None: it wanted nothing."""

    at_s: int
    demand_milli_gpus: int
    rule_milli_nodes: int
    learner_milli_nodes: int | None
    target_milli_nodes: int


@dataclass(frozen=True, slots=True)
class LearningOutcome:
    """What a tick's step cost, once its demand was known; key ``(tick_id, pool)``, ``at_s`` the tick's moment.

    All as fleets' accounts. ``cost_milli``: of the targets that were advised, ``rule_cost_milli``: of the rule's;
    ``regret_milli``: what was paid beyond that shadow fleet which paid least in this step (none may have done so in
    every step).
    """

    cluster: str
    tick_id: str
    pool: str
    at_s: int
    rule_cost_milli: int
    cost_milli: int
    regret_milli: int


@dataclass(frozen=True, slots=True)
class LearningDay:
    """One day of one shadow fleet; key ``(cluster, pool, day_s, name)``.

    ``day_s``: local midnight. ``name``: a candidate, ``hedge``, ``hindsight`` or ``rule``. ``saving_milli``: the rule's
    cost less this one's. ``steps``: how many steps of the day were known and judged.
    """

    cluster: str
    pool: str
    day_s: int
    name: str
    cost_milli: int
    saving_milli: int
    steps: int


@dataclass(frozen=True, slots=True)
class LearningEvent:
    """Something that people should see happened; key ``(cluster, pool, at_s, kind, code)``.

    ``kind``: ``gate``, ``promotion``, ``demotion``, ``kill``, ``fit`` or ``recovery``. ``rung`` and ``acting`` are
    those in force afterwards.
    """

    cluster: str
    pool: str
    at_s: int
    kind: str
    rung: str
    acting: str
    code: str
    facts: tuple[Fact, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A fitted model as bytes; key ``(fingerprint, cluster, pool)``, so that pools may share one.

    ``kind``: how ``body`` is read (empty in lists). ``code_fingerprint`` and ``data_fingerprint``: what it was made by
    and from.
    """

    fingerprint: str
    cluster: str
    pool: str
    made_at_s: int
    kind: str
    code_fingerprint: str
    data_fingerprint: str
    body: bytes

    @classmethod
    def of(cls, *, body: bytes, **values: Any) -> ModelFile:
        """Build a row from every field but ``fingerprint``, which is computed."""
        return cls(fingerprint=content_hash(body), body=body, **values)


def content_hash(data: bytes) -> str:
    """SHA-256 of the bytes, first 16 hex digits: the id under which they are cited."""
    return hashlib.sha256(data).hexdigest()[:16]
