"""What is wrong with a policy, in the words of the person who wrote it: field, line, value, what is allowed.

The validation library speaks of types and models; whoever edits a policy knows neither.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from pydantic_core import ErrorDetails

from controller.core.errors import Problem
from controller.resources.schema import GPUPolicy
from controller.resources.yaml_text import Lines, Path, path_text

LONGEST_SHOWN = 60
URL = "a URL that begins with http:// or https://"
NAME = "a name of lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
_ALLOWED = {
    "greater_than_equal": "{limit} or more",
    "greater_than": "more than {limit}",
    "less_than_equal": "{limit} or less",
    "int_type": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "string_type": "text (in quotes where it looks like a number)",
    "bool_type": "true or false",
    "list_type": "a list, such as [a, b]",
    "tuple_type": "a list",
    "dict_type": "a mapping, such as {{a: b}}",
    "model_type": "a mapping of fields",
    "dataclass_type": "a mapping of fields",
    "unexpected_keyword_argument": "no such field",
    "missing": "required",
    "too_short": "a list of at least {limit}",
    "too_long": "a list of at most {limit}",
    "string_too_short": "text of at least {limit} character",
    "string_too_long": "text of at most {limit} characters",
}
"""Kinds of pydantic's errors in the words of a policy file; {limit} is the bound that was missed."""


def unique(problems: list[Problem]) -> list[Problem]:
    """One problem a field: alternatives of a union each complain about the same value."""
    by_path: dict[str, Problem] = {}
    for problem in problems:
        by_path.setdefault(problem.path, problem)
    return list(by_path.values())


def at(path: Path, lines: Lines) -> str:
    """A field's path with its line, or with the line of what holds it where the field itself is absent."""
    known = path
    while known and known not in lines:
        known = known[:-1]
    line = f" (line {lines[known]})" if known in lines else ""
    return f"{path_text(path)}{line}"


def problem_of(detail: ErrorDetails, lines: Lines) -> Problem:
    """One of pydantic's errors as a problem in the words of the file."""
    path = tuple(part for part in detail["loc"] if not (isinstance(part, str) and part.endswith("Part")))
    path = tuple(part for part in path if part not in ("list[GpuFractionPart]",))
    where = at(path, lines)
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        known = _fieldsat(path[:-1])
        near = get_close_matches(str(path[-1]), known, 1)
        hint = f"no such field; did you mean {near[0]}?" if near else f"no such field; known are {', '.join(known)}"
        return Problem(where, shown(detail["input"]), hint)
    if kind == "missing":
        return Problem(where, "missing", "required")
    return Problem(where, shown(detail["input"]), allowed_text(kind, context, detail["msg"], path))


def allowed_text(kind: str, context: dict[str, Any], message: str, path: Path) -> str:
    """What is allowed, for one kind of pydantic's errors; its own message where there are no words for it."""
    if kind == "tidegate":
        return str(context["allowed"])
    if kind in ("literal_error", "enum"):
        words = context["expected"].replace("'", "")
        return f"one of {words}" if " or " in words else str(words)
    if kind == "string_pattern_mismatch":
        return URL if path and path[-1] == "url" else NAME
    limit: Any = next(
        (context[key] for key in ("ge", "gt", "le", "lt", "min_length", "max_length") if key in context), ""
    )
    limit = int(limit) if isinstance(limit, float) and limit.is_integer() else limit
    return _ALLOWED.get(kind, "{message}").format(limit=limit, message=message)


def shown(value: Any) -> str:
    """A value on one line, short; of a mapping only its size: a secret may have been pasted into the wrong place."""
    if isinstance(value, dict):
        return f"a mapping of {len(value)}"
    if isinstance(value, list):
        text = f"[{', '.join(shown(item) for item in value)}]"
    else:
        text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def _fieldsat(path: Path) -> list[str]:
    """The field names that the schema knows at a path."""
    model: Any = GPUPolicy
    for part in path:
        if isinstance(part, int):
            continue
        field = next((f for name, f in model.model_fields.items() if (f.alias or name) == part), None)
        nested = _model_in(field.annotation) if field else None
        if nested is None:
            return []
        model = nested
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> Any:
    if hasattr(annotation, "model_fields"):
        return annotation
    return next((m for arg in getattr(annotation, "__args__", ()) if (m := _model_in(arg)) is not None), None)
