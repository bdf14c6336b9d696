"""A recorded tick made readable: derived again by the same core, and explained."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from controller.core.canonical import canonical_bytes
from controller.core.decide import decide
from controller.core.errors import InputError
from controller.core.explain import pool_sentence, team_sentence
from controller.resources import codec
from controller.store import TickRecord
from dashboard.view import sentence, worst_first


@dataclass(frozen=True, slots=True)
class Story:
    """A decision in sentences, and whether the recorded inputs gave the recorded bytes again."""

    pools: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    violations: tuple[tuple[str, str], ...] = ()
    """Severity and sentence."""
    ignored_nodes: tuple[str, ...] = ()
    same: bool = False
    problem: str = ""


def explanation(record: TickRecord) -> Story:
    """Derive a recorded decision again and put it into sentences."""
    try:
        decision = decide(
            codec.read_snapshot(record.snapshot),
            codec.read_forecasts(record.forecasts),
            codec.read_policy(record.policy_bytes),
            record.at_s,
            codec.read_advice(record.advice),
        )
    except InputError as error:
        return Story(problem=f"Written by another version of tidegate: {error.lines()[0]}")
    return Story(
        tuple(f"{pool_sentence(pool)}." for pool in decision.pools),
        tuple(f"{team_sentence(team)}." for team in worst_first(decision.teams)),
        tuple(sentence(note) for note in decision.notes),
        tuple((violation.severity, sentence(violation.reason)) for violation in decision.violations),
        decision.ignored_nodes,
        canonical_bytes(decision) == record.decision,
    )


def inputs(record: TickRecord | None) -> dict[str, int]:
    """What went in, counted."""
    if record is None:
        return {}
    seen = json.loads(record.snapshot)
    return {
        "nodes": len(seen["nodes"]),
        "workloads": len(seen["workloads"]),
        "forecast series": len(json.loads(record.forecasts)["series"]),
        "bytes": len(record.snapshot) + len(record.forecasts) + len(record.policy_bytes) + len(record.advice),
    }


def document(record: TickRecord) -> bytes:
    """The record as one JSON document, in the form that ``tidegate explain FILE`` reads."""
    parts: dict[str, Any] = {
        "id": record.id,
        "at_s": record.at_s,
        "policy": json.loads(record.policy_bytes),
        "snapshot": json.loads(record.snapshot),
        "forecasts": json.loads(record.forecasts),
        "advice": json.loads(record.advice),
        "decision": json.loads(record.decision),
    }
    return canonical_bytes(parts)
