"""Reading YAML as people write it: safe, bounded, one document, no key twice, and every field's line known."""

from __future__ import annotations

from typing import Any

import yaml

from controller.core.errors import InputError

MOST_BYTES = 1_000_000
"""A policy of 200 teams is a tenth of this; more is a mistake or an attack."""
MOST_NODES = 100_000
Lines = dict[tuple[str | int, ...], int]


def read_yaml(text: str, source: str) -> tuple[Any, Lines]:
    """Parse one document. Returns its value and the line of every field, by path."""
    if len(text) > MOST_BYTES:
        raise InputError.one("(file)", f"{len(text)} characters", f"at most {MOST_BYTES}", source=source)
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise InputError.one(*_yaml_problem(error), source=source) from error
    if node is None:
        raise InputError.one("(file)", "empty", "a GPUPolicy; `tidegate policy init` writes one", source=source)
    lines: Lines = {}
    return _value(node, (), lines, source, [0]), lines


def _yaml_problem(error: yaml.YAMLError) -> tuple[str, str, str]:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}" if mark else "(file)"
    said = getattr(error, "problem", None) or "not readable"
    if "expected a single document" in str(error):
        said = "more than one document"
        return where, said, "one GPUPolicy a file"
    return where, str(said), "valid YAML (indent with spaces, quote special characters)"


def _value(node: yaml.Node, path: tuple[str | int, ...], lines: Lines, source: str, seen: list[int]) -> Any:
    """Build plain values by hand, so that aliases cannot multiply and duplicate keys are seen."""
    seen[0] += 1
    if seen[0] > MOST_NODES or len(path) > 50:
        raise InputError.one(
            "(file)", "too large once its aliases are followed", f"at most {MOST_NODES} values", source=source
        )
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, lines, source, seen)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, i), lines, source, seen) for i, item in enumerate(node.value)]
    return _scalar(node, path, source)


def _mapping(
    node: yaml.MappingNode, path: tuple[str | int, ...], lines: Lines, source: str, seen: list[int]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key_node, value_node in node.value:
        # YAML 1.1 reads on, off, yes and no as booleans; as a key (`on: gpu-nodes`) the word itself is meant.
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else str(key_node)
        where = path_text((*path, key))
        if key in found:
            raise InputError.one(
                f"{where} (line {key_node.start_mark.line + 1})", "given twice", "each key once", source=source
            )
        found[key] = _value(value_node, (*path, key), lines, source, seen)
        lines[(*path, key)] = key_node.start_mark.line + 1
    return found


def _scalar(node: yaml.Node, path: tuple[str | int, ...], source: str) -> Any:
    constructor = yaml.SafeLoader("")
    try:
        # The words on/off/yes/no and 18:00 are kept as text: people mean the word and the time.
        if node.tag == "tag:yaml.org,2002:bool" and str(node.value).lower() not in ("true", "false"):
            return node.value
        if node.tag == "tag:yaml.org,2002:int" and ":" in str(node.value):
            return node.value
        return constructor.construct_object(node)
    except (yaml.YAMLError, ValueError) as error:
        raise InputError.one(
            path_text(path), str(node.value), "a plain value (tags are not allowed)", source=source
        ) from error
    finally:
        constructor.dispose()


def path_text(path: tuple[str | int, ...]) -> str:
    """A field's path as people write it: ``spec.teams[1].bounds.floor``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "(file)"
