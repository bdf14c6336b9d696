"""Files of snapshots, forecasts, advice, policies and decisions: JSON on the outside, the core's values inside.

What is written is the canonical form, so a file that was read and written again has the same bytes. Reading checks
types and names strictly and says which field is wrong.
"""

from __future__ import annotations

import json
from dataclasses import is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from pydantic_core import ErrorDetails

from controller.core import actions as core_actions
from controller.core import advice as core_advice
from controller.core import forecast as core_forecast
from controller.core import policy as core_policy
from controller.core import reasons as core_reasons
from controller.core import snapshot as core_snapshot
from controller.core.actions import Action, Decision
from controller.core.advice import Advice
from controller.core.canonical import canonical_bytes
from controller.core.errors import InputError, Problem
from controller.core.forecast import Forecasts
from controller.core.policy import Policy
from controller.core.snapshot import Snapshot
from controller.resources.problems import allowed_text, shown
from controller.resources.yaml_text import path_text

MOST_PROBLEMS = 20
T = TypeVar("T")


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    _forbid_unknown_fields()
    return TypeAdapter(kind)


@cache
def _forbid_unknown_fields() -> None:
    """Tell pydantic, once, that a field it does not know is an error in every core value."""
    for module in (core_snapshot, core_forecast, core_advice, core_policy, core_actions, core_reasons):
        for value in vars(module).values():
            if isinstance(value, type) and is_dataclass(value):
                with_config(ConfigDict(extra="forbid"))(value)


def read_snapshot(data: bytes, source: str = "snapshot") -> Snapshot:
    """Read a snapshot; one that is inconsistent is refused."""
    return _read(Snapshot, data, source)


def read_forecasts(data: bytes, source: str = "forecasts") -> Forecasts:
    """Read forecasts."""
    return _read(Forecasts, data, source)


def read_advice(data: bytes, source: str = "advice") -> Advice:
    """Read advice."""
    return _read(Advice, data, source)


def read_policy(data: bytes, source: str = "policy") -> Policy:
    """Read a policy in canonical form, as records keep it (people write YAML: see ``parse``)."""
    return _read(Policy, data, source)


def read_decision(data: bytes, source: str = "decision") -> Decision:
    """Read a decision; each action says with its ``kind`` which one it is."""
    document = read_json(data, source)
    listed = document.pop("actions", None)
    if not isinstance(listed, list):
        raise InputError.one("actions", shown(listed), "a list", source=source)
    decision = _read(Decision, canonical_bytes(document | {"actions": []}), source)
    return replace(decision, actions=tuple(_action(item, i, source) for i, item in enumerate(listed)))


def _action(item: Any, index: int, source: str) -> Action:
    kinds = {kind.kind: kind for kind in get_args(Action)}
    rest = dict(item) if isinstance(item, dict) else {}
    named = rest.pop("kind", None)
    if named not in kinds:
        raise InputError.one(f"actions[{index}].kind", shown(named), f"one of {', '.join(kinds)}", source=source)
    try:
        action: Action = _read(kinds[named], canonical_bytes(rest), source)
    except InputError as error:
        within = [Problem(f"actions[{index}].{p.path}", p.value, p.allowed) for p in error.problems]
        raise InputError(within, source=source) from None
    return action


def read_json(data: bytes, source: str) -> dict[str, Any]:
    """Read a JSON object of plain values."""
    try:
        document = json.loads(data)
        canonical_bytes(document)  # no decimal fraction is in any file of ours
    except (ValueError, RecursionError) as error:
        raise InputError.one("(file)", "not JSON", str(error), source=source) from None
    except TypeError as error:
        raise InputError.one("(file)", str(error), "whole numbers, text, lists and mappings", source=source) from None
    if not isinstance(document, dict):
        raise InputError.one("(file)", shown(document), "a mapping of fields", source=source)
    return document


def write(value: Any) -> bytes:
    """The canonical bytes of any core value."""
    return canonical_bytes(value)


def _read(kind: type[T], data: bytes, source: str) -> T:
    try:
        target: Any = kind
        value: T = _adapter(target).validate_json(data, strict=True)
    except ValidationError as error:
        problems = [problem for detail in error.errors() for problem in _problems(detail)]
        raise InputError(problems[:MOST_PROBLEMS], source=source) from None
    except InputError as error:
        raise InputError(error.problems, source=source) from None
    return value


def _problems(detail: ErrorDetails) -> tuple[Problem, ...]:
    context = detail.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, InputError):
        return cause.problems
    if detail["type"] == "json_invalid":
        return (Problem("(file)", "not JSON", detail["msg"]),)
    path = tuple(detail["loc"])
    value = "missing" if detail["type"] == "missing" else shown(detail["input"])
    # pydantic puts "Value error, " before what a value's own check said
    said = str(cause) if cause is not None else detail["msg"]
    return (Problem(path_text(path), value, allowed_text(detail["type"], context, said, path)),)
