"""From recorded inputs and a model file to advice, in whole numbers: the part of learning that is derived again.

What a learner wants is a pure function of ``Inputs`` (kept with each tick) and of the weights in a model file (kept as
long as a tick cites it). ``tidegate explain`` calls the same function on what the store holds, and must get the same
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from controller.core.advice import HeadroomSource, PoolAdvice, RuleParameters
from controller.core.canonical import canonical_bytes
from controller.core.errors import InputError
from controller.core.quantities import MILLI
from controller.learning import candidates, fleet, hedge, limits
from controller.learning.candidates import LEVELS_PERMILLE, NAMES, Nodes, Reach
from controller.learning.limits import Limits

KIND = "hedge"
"""The kind of model file that this module writes and reads."""

Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a pool's advice is computed from, beside the model; whole numbers and texts only.

    ``demand_milli_gpus``: seen last. ``forecast``: milli-GPUs of the pool's total, one row a ``Reach``, one column a
    level. ``recent``: the candidates' positions (nodes) in the steps before, oldest first; empty at the beginning.
    ``rule_nodes``: the tuned rule's target in the learner's own grid. ``acts``: whether the learner sets the target.
    """

    pool: str
    gpus_per_node: int
    demand_milli_gpus: int
    forecast: Rows
    recent: Rows
    rule: RuleParameters
    rule_nodes: int
    limits: Limits
    acts: bool
    raise_only: bool
    model: str

    def to_bytes(self) -> bytes:
        """The canonical form, as the store keeps it."""
        return canonical_bytes(self)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was wanted: the candidates' ``positions``, the targets of ``NAMES``, and the ``nodes`` they agree on."""

    positions: Nodes
    asked: Nodes
    nodes: int


def wanted(inputs: Inputs, weights: Nodes) -> Wanted:
    """One step of what ``shadows.shadows`` does for all steps at once."""
    forecast = np.array([inputs.forecast], dtype=np.int64)
    demand = np.array([inputs.demand_milli_gpus], dtype=np.int64)
    low, high = candidates.edges(forecast, demand, inputs.gpus_per_node)
    before = [np.array(row, dtype=np.int64) for row in inputs.recent]
    position = candidates.moved(before[-1] if before else low[0], low[0], high[0])
    now = candidates.nodes_of(demand, inputs.gpus_per_node)
    targets = candidates.targets_now([*before, position])
    advised = inputs.limits.advised(targets[None], forecast, now, inputs.gpus_per_node)[0]
    ruled = inputs.limits.of_pool(np.array([[inputs.rule_nodes]], dtype=np.int64), now)[0]
    asked = np.concatenate([advised, ruled])
    return Wanted(position, asked, int(hedge.agreed(asked, weights)))


def acted(inputs: Inputs, found: Wanted) -> int:
    """The nodes that are advised: the learner's where it acts, where it may only raise not below the rule's."""
    ruled = int(found.asked[-1])
    if not inputs.acts:
        return ruled
    return max(found.nodes, ruled) if inputs.raise_only else found.nodes


def advice(inputs: Inputs, weights: Nodes) -> PoolAdvice:
    """The pool's advice: the learner's target where it acts, else the tuned rule."""
    if not inputs.acts:
        return PoolAdvice(inputs.pool, HeadroomSource.RULE, inputs.rule)
    nodes = acted(inputs, wanted(inputs, weights))
    return PoolAdvice(
        inputs.pool,
        HeadroomSource.LEARNER,
        inputs.rule,
        target_milli_gpus=nodes * inputs.gpus_per_node * MILLI,
        raise_only=inputs.raise_only,
        model=inputs.model,
    )


def implied_permille(inputs: Inputs, nodes: int) -> int:
    """The highest level at which the forecast of the next quarter of an hour fits into ``nodes``; 0: none does."""
    room = nodes * inputs.gpus_per_node * MILLI
    row = inputs.forecast[list(Reach).index(Reach.QUARTER)]
    fits = [level for level, value in zip(LEVELS_PERMILLE, row, strict=True) if value <= room]
    return fits[-1] if fits else 0


def read_inputs(data: bytes, source: str) -> Inputs:
    """Read what ``Inputs.to_bytes`` gave. Raises ``InputError`` on anything else."""
    try:
        kept: dict[str, Any] = json.loads(data)
        values = kept | {
            "rule": RuleParameters(**kept["rule"]),
            "limits": Limits(**kept["limits"]),
            "forecast": _rows(kept["forecast"], len(Reach), len(LEVELS_PERMILLE)),
            "recent": _rows(kept["recent"], None, len(NAMES) - 1),
        }
        return Inputs(**{field.name: values[field.name] for field in fields(Inputs)})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError.one("inputs", repr(error), "what a learning tick keeps", source=source) from error


def _rows(kept: Sequence[Sequence[int]], rows: int | None, columns: int) -> Rows:
    if (rows is not None and len(kept) != rows) or any(len(row) != columns for row in kept):
        raise ValueError("another number of levels or candidates")
    return tuple(tuple(int(value) for value in row) for row in kept)


def model_body(weights: Nodes, data_fingerprint: str) -> bytes:
    """A model file's bytes: names and whole numbers in JSON, so that reading one cannot run anything."""
    named = [[name, int(weight)] for name, weight in zip(NAMES, weights, strict=True)]
    return canonical_bytes({"kind": KIND, "weights": named, "code": code_fingerprint(), "data": data_fingerprint})


def read_model(body: bytes, source: str) -> Nodes:
    """The weights in a model file, in the order of ``NAMES``. Raises ``InputError`` on anything else."""
    try:
        kept: dict[str, Any] = json.loads(body)
        named = {str(name): int(weight) for name, weight in kept["weights"]}
        right = kept["kind"] == KIND and set(named) == set(NAMES) and min(named.values()) >= 0 < sum(named.values())
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError.one("model", repr(error), f"a model file of kind {KIND}", source=source) from error
    if not right:
        raise InputError.one("model", "other candidates", "those of the version that wrote it", source=source)
    return np.array([named[name] for name in NAMES], dtype=np.int64)


@cache
def code_fingerprint() -> str:
    """Hash of the source from which weights and advice come (SHA-256, first 16 hex digits)."""
    whole = sha256()
    for path in sorted(str(module.__file__) for module in (candidates, fleet, hedge, limits)):
        whole.update(Path(path).read_bytes())
    whole.update(Path(__file__).read_bytes())
    return whole.hexdigest()[:16]
