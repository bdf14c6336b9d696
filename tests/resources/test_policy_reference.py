"""The reference of the policy language cannot drift: every field of the schema has a row, with its default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from controller.resources.json_schema import json_schema
from controller.resources.parse import parse_policy
from controller.resources.yaml_text import read_yaml

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "policy.md").read_text("utf-8")
SCHEMA = json_schema()
ROW = re.compile(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ROWS = {row[1]: [cell.strip() for cell in row.groups()[1:]] for row in ROW.finditer(PAGE)}


def fields(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Every field's path as the page writes it, its schema, and whether it is required."""
    if "$ref" in node:
        node = SCHEMA["$defs"][node["$ref"].rpartition("/")[2]]
    for choice in node.get("anyOf", []):
        yield from fields(choice, path)
    if node.get("type") == "array":
        yield from fields(node["items"], f"{path}[]" if "gpuFraction" not in path else path)
    for name, field in node.get("properties", {}).items():
        inner = f"{path}.{name}" if path else name
        yield inner, field, name in node.get("required", [])
        yield from fields(field, inner)


KNOWN = {path: (field, required) for path, field, required in fields(SCHEMA)}


def test_every_field_has_a_row_and_every_row_a_field() -> None:
    assert set(ROWS) == set(KNOWN)
    assert len(KNOWN) > 80


def test_the_defaults_are_those_of_the_schema() -> None:
    for path, (field, required) in KNOWN.items():
        said = ROWS[path][1]
        if required:
            assert said == "required", path
        elif "default" in field:
            assert read_yaml(said.strip("`"), "default")[0] == field["default"], path
        else:
            assert said != "required", path


def test_every_word_that_a_field_takes_is_named() -> None:
    for path, (field, _) in KNOWN.items():
        words = field.get("enum", field.get("items", {}).get("enum", []))
        for word in words:
            assert f"`{word}`" in ROWS[path][2], path


def test_every_example_of_a_row_holds() -> None:
    for path, cells in ROWS.items():
        text = cells[3].strip("`")
        value = read_yaml(text, "example")[0]
        assert isinstance(value, dict), f"{path}: an example is `field: value`"
        assert set(value) == {path.rpartition(".")[2].removesuffix("[]")}, path


def test_the_examples_of_the_page_pass_the_check() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    whole = [block for block in blocks if block.startswith("apiVersion")]
    assert whole
    for block in whole:
        parse_policy(block)
