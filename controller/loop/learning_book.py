"""What learning puts on record: the rows of its tables, and the book in which they are kept.

What cannot be recorded is not applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from controller.core.actions import Decision
from controller.core.quantities import MILLI
from controller.core.reasons import ReasonCode
from controller.learning import advise
from controller.learning.candidates import LEVELS_PERMILLE, NAMES
from controller.learning.gate import Day
from controller.learning.ladder import Event, LadderState
from controller.learning.learner import Learner, Settled
from controller.store.learning_records import LearningDay, LearningEvent, LearningOutcome, LearningTick, ModelFile

_CLIPPED = (ReasonCode.CLIPPED_TO_ENVELOPE, ReasonCode.CLIPPED_TO_HEADROOM)


@dataclass(slots=True)
class Kept:
    """What is to be put on record together. ``states``: how learning stands in a pool now, by pool."""

    models: list[ModelFile] = field(default_factory=list)
    ticks: list[LearningTick] = field(default_factory=list)
    outcomes: list[LearningOutcome] = field(default_factory=list)
    days: list[LearningDay] = field(default_factory=list)
    events: list[LearningEvent] = field(default_factory=list)
    states: dict[str, dict[str, Any]] = field(default_factory=dict)


class Book(Protocol):
    """Where learning is kept."""

    def killed(self) -> bool:
        """Whether somebody has thrown the kill switch."""

    def state(self, pool: str) -> Mapping[str, Any] | None:
        """How learning stood in a pool when it was last kept."""

    def keep(self, kept: Kept) -> None:
        """Keep all of it durably. Raises ``RecordError``."""


@dataclass(frozen=True, slots=True)
class NoBook:
    """Keeps nothing: for replays whose results are their sums."""

    def killed(self) -> bool:
        """Nobody is there to do it."""
        return False

    def state(self, pool: str) -> Mapping[str, Any] | None:
        """Nothing was kept."""
        return None

    def keep(self, kept: Kept) -> None:
        """Nothing is."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one pool's learner wanted in the tick that is being decided; ``row`` of the recorder's grid."""

    inputs: advise.Inputs
    found: advise.Wanted
    row: int
    lead_s: int


def day_row(cluster: str, pool: str, name: str, day: Day) -> LearningDay:
    """A shadow fleet's day."""
    cost, saving = round(MILLI * (day.cost_rule - day.saving)), round(MILLI * day.saving)
    return LearningDay(cluster, pool, day.day_s, name, cost, saving, day.known_steps)


def event_row(cluster: str, pool: str, event: Event) -> LearningEvent:
    """What the ladder told."""
    told = (event.at_s, str(event.kind), event.rung, event.acting, str(event.code), event.facts, event.sentence)
    return LearningEvent(cluster, pool, *told)


def outcome_row(cluster: str, pool: str, tick_id: str, at_s: int, step: Settled) -> LearningOutcome:
    """What the step of a tick cost."""
    costs = (round(MILLI * value) for value in (step.rule, step.acted, step.acted - step.best))
    return LearningOutcome(cluster, tick_id, pool, at_s, *costs)


def model_row(cluster: str, learner: Learner, at_s: int) -> ModelFile:
    """The model file in force."""
    fingerprint, body = learner.model
    made = ModelFile.of(
        body=body,
        cluster=cluster,
        pool=learner.pool,
        made_at_s=at_s,
        kind=advise.KIND,
        code_fingerprint=advise.code_fingerprint(),
        data_fingerprint=learner.data_fingerprint,
    )
    assert made.fingerprint == fingerprint
    return made


def tick_row(
    cluster: str, tick_id: str, decision: Decision, ceiling: str, ladder: LadderState, asked: Asked
) -> LearningTick:
    """What was wanted, by whom, and what became of it."""
    inputs, found = asked.inputs, asked.found
    pool = next((one for one in decision.pools if one.pool == inputs.pool), None)
    ruled = int(found.asked[-1])
    notes = [note.code for note in decision.notes if note.pool == inputs.pool]
    # A raise-only learner that the rule lifts has not been clipped: it may not go lower, and knows it.
    clips = [code for code in notes if code in _CLIPPED and not (inputs.raise_only and code is _CLIPPED[0])]
    return LearningTick.of(
        inputs=inputs.to_bytes(),
        cluster=cluster,
        tick_id=tick_id,
        at_s=decision.at_s,
        pool=inputs.pool,
        ceiling=ceiling,
        rung=ladder.rung.value,
        acting=ladder.acting,
        demand_milli_gpus=inputs.demand_milli_gpus,
        lead_s=asked.lead_s,
        quantiles=tuple(zip(LEVELS_PERMILLE, inputs.forecast[0], strict=True)),
        rule_nodes=ruled,
        candidates=tuple((name, int(nodes)) for name, nodes in zip(NAMES, found.asked, strict=True)),
        learner_nodes=found.nodes,
        target_nodes=pool.target_nodes if pool is not None else found.nodes,
        implied_permille=advise.implied_permille(inputs, found.nodes),
        move="raise" if found.nodes > ruled else "lower" if found.nodes < ruled else "keep",
        clipped=tuple(code.value for code in clips),
        model=inputs.model,
    )
