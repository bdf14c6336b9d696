"""The policy's JSON schema, for editors that complete and check while one types: ``# yaml-language-server: $schema=…``.

The models hold resolved values (seconds, minutes of the day); the schema speaks of what people write, defaults too.
"""

from __future__ import annotations

from typing import Any

from controller.resources.schema import GPUPolicy, duration_text, time_text

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a ``GPUPolicy`` as people write it."""
    schema = {"$schema": DIALECT, **GPUPolicy.model_json_schema(by_alias=True)}
    _as_written(schema)
    return schema


def _as_written(node: Any) -> None:
    """Drop what only Python knows (titles, nulls) and write defaults in the words of the file, in place."""
    if isinstance(node, list):
        for item in node:
            _as_written(item)
        return
    if not isinstance(node, dict):
        return
    for name, field in node.get("properties", {}).items():
        _field(field)
        if isinstance(field.get("default"), int) and field.get("type") == "string":
            wanted = time_text if name in ("from", "to") else duration_text
            field["default"] = wanted(field["default"])
    for value in node.values():
        _as_written(value)


def _field(field: dict[str, Any]) -> None:
    field.pop("title", None)
    if field.get("default", "") is None:
        del field["default"]
    choices = [choice for choice in field.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        del field["anyOf"]
        field |= choices[0]
    elif choices:
        field["anyOf"] = choices
    if isinstance(field.get("default"), dict):
        # A whole part by default: its own fields say their defaults.
        del field["default"]
