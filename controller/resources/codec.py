"""Files of snapshots, forecasts, advice, policies and decisions: JSON on the outside, the core's values inside.

What is written is the canonical form, so a file that was read and written again has the same bytes. Reading checks
types and names strictly and says which field is wrong.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from pydantic_core import ErrorDetails

from controller.core import advice as core_advice
from controller.core import forecast as core_forecast
from controller.core import policy as core_policy
from controller.core import snapshot as core_snapshot
from controller.core.advice import Advice
from controller.core.canonical import canonical_bytes
from controller.core.errors import InputError, Problem
from controller.core.forecast import Forecasts
from controller.core.policy import Policy
from controller.core.snapshot import Snapshot
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
    for module in (core_snapshot, core_forecast, core_advice, core_policy):
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


def write(value: Any) -> bytes:
    """The canonical bytes of any core value."""
    return canonical_bytes(value)


def _read(kind: type[T], data: bytes, source: str) -> T:
    try:
        target: Any = kind
        value: T = _adapter(target).validate_json(data)
    except ValidationError as error:
        problems = [_problem(detail) for detail in error.errors()[:MOST_PROBLEMS]]
        raise InputError(problems, source=source) from None
    except InputError as error:
        raise InputError(error.problems, source=source) from None
    return value


def _problem(detail: ErrorDetails) -> Problem:
    cause = detail.get("ctx", {}).get("error")
    where = path_text(tuple(detail["loc"]))
    if detail["type"] == "json_invalid":
        return Problem("(file)", "not JSON", detail["msg"])
    if isinstance(cause, InputError):
        return cause.problems[0]
    allowed = {"missing": "required", "unexpected_keyword_argument": "no such field"}.get(detail["type"], detail["msg"])
    value = "missing" if detail["type"] == "missing" else str(detail["input"])[:60]
    return Problem(where, value, allowed[0].lower() + allowed[1:])
