"""Changing one field of a YAML text and nothing else: comments, order and layout are the author's.

A document that is loaded and dumped again loses its comments; a policy file is mostly comments that matter. So only the
characters of the field are replaced, at the place where the parser says it stands, and the result is read again: unless
it differs from what was there in that one field alone, it is refused.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import yaml

from controller.core.errors import InputError
from controller.resources.yaml_text import read_yaml

Step = str | int
PART = re.compile(r"([A-Za-z][\w-]*)|\[([^\[\]]+)\]")
WIDE = 10**6


def steps_of(path: str) -> tuple[Step, ...]:
    """``spec.teams[dev].bounds.floor`` as steps; ``[dev]`` is the item named dev, ``[0]`` the first one."""
    steps: list[Step] = []
    at = 0
    while at < len(path) or not path:
        found = PART.match(path, at + (path[at : at + 1] == "." and at > 0))
        if not found:
            allowed = "names joined by dots, items in brackets: spec.teams[dev].bounds.floor"
            raise InputError.one("path", path, allowed)
        key, item = found.groups()
        steps.append(key if key else int(item) if item.isdigit() else f"[{item}]")
        at = found.end()
    return tuple(steps)


def edited(text: str, path: str, value: Any, source: str = "policy") -> str:
    """The text with ``value`` at ``path``; a field that is not there yet is added to its mapping.

    Raises ``InputError`` where the path leads nowhere, or the text is written so that one field cannot be changed alone
    (an anchor that several fields share).
    """
    before, _ = read_yaml(text, source)
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    steps = steps_of(path)
    start, end, new = _edit(root, steps, value, text, path)
    changed = text[:start] + new + text[end:]
    expected = _with(before, steps, read_yaml(f"value: {_flow(value)}", path)[0]["value"])
    try:
        same = read_yaml(changed, source)[0] == expected
    except InputError:
        same = False
    if not same:
        allowed = f"a file in which it can be changed alone; write {_flow(value)} there by hand"
        raise InputError.one(path, "shared with other fields, or oddly written", allowed, source=source)
    return changed


def _edit(node: Any, steps: tuple[Step, ...], value: Any, text: str, path: str) -> tuple[int, int, str]:
    """Which characters to replace (start, end) and by what."""
    key = None
    for i, step in enumerate(steps):
        if isinstance(node, yaml.MappingNode) and not _is_item(step):
            found = next((pair for pair in node.value if pair[0].value == step), None)
            if found is None:
                return _insertion(node, str(step), _nested(steps[i + 1 :], value, path), text)
            key, node = found
        elif key is not None and _is_empty(node):
            return _replacement(key, node, _nested(steps[i:], value, path), text)
        else:
            key, node = None, _item(node, step, path)
    return _replacement(key, node, value, text)


def _replacement(key: Any, node: Any, value: Any, text: str) -> tuple[int, int, str]:
    """A value instead of a node; ``key`` is the node's in its mapping, None for an item of a list."""
    start, new = node.start_mark.index, _flow(value)
    end = start + len(text[start : _end(node)].rstrip())  # the parser counts the line ends after a text block to it
    if key is None or (_one_line(node) and start < end):
        return start, end, new
    # A block list may begin in the column of its key, or nothing stand there at all; what is on one line may not.
    colon = text.index(":", key.end_mark.index) + 1
    return (start, end, f"  {new}") if text[colon:start].strip() else (colon, end, f" {new}")


def _is_empty(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and not node.value and node.style is None


def _is_item(step: Step) -> bool:
    return isinstance(step, int) or step.startswith("[")


def _item(node: Any, step: Step, path: str) -> Any:
    items = node.value if isinstance(node, yaml.SequenceNode) else []
    if isinstance(step, int) and step < len(items):
        return items[step]
    names = [_name(item) for item in items]
    if isinstance(step, str) and step.strip("[]") in names:
        return items[names.index(step.strip("[]"))]
    there = ", ".join(filter(None, names)) or "no list there"
    raise InputError.one("path", path, f"an item that is there: {there}")


def _name(node: Any) -> str:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((inner.value for key, inner in pairs if key.value == "name"), "")


def _nested(steps: tuple[Step, ...], value: Any, path: str) -> Any:
    for step in reversed(steps):
        if _is_item(step):
            raise InputError.one("path", path, "a list item can be changed, not added; write the whole list")
        value = {step: value}
    return value


def _flow(value: Any) -> str:
    """A value on one line, quoted where a flow context needs it."""
    return yaml.safe_dump([value], default_flow_style=True, width=WIDE, sort_keys=False).strip()[1:-1]


def _end(node: Any) -> int:
    """Where a node's own text ends; the parser counts what follows a block collection to it."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _insertion(node: Any, key: str, value: Any, text: str) -> tuple[int, int, str]:
    """Where a new field of a mapping goes: the end of a flow mapping, after a one-line field of a block mapping."""
    new = f"{key}: {_flow(value)}"
    start, end = node.start_mark.index, node.end_mark.index
    if node.flow_style:
        if not node.value:
            return start, end, f"{{{new}}}"
        at = _end(node.value[-1][1])
        return at, at, f", {new}"
    indent = " " * node.value[0][0].start_mark.column
    line = "\r\n" if "\r\n" in text else "\n"
    plain = [inner for _, inner in node.value if _one_line(inner)]
    if not plain:
        at = node.value[0][0].start_mark.index
        return at, at, f"{new}{line}{indent}"
    at = text.find("\n", _end(plain[-1]))
    at = len(text) if at < 0 else at - (line == "\r\n")
    return at, at, f"{line}{indent}{new}"


def _one_line(node: Any) -> bool:
    return node.style in (None, "'", '"') if isinstance(node, yaml.ScalarNode) else bool(node.flow_style)


def _with(value: Any, steps: tuple[Step, ...], new: Any) -> Any:
    """A copy of plain values with one of them changed."""
    if not steps:
        return new
    copy, (step, *rest) = {} if value is None else deepcopy(value), steps
    if isinstance(copy, list):
        names = [item.get("name") if isinstance(item, dict) else None for item in copy]
        place = step if isinstance(step, int) else names.index(step.strip("[]"))
        copy[place] = _with(copy[place], tuple(rest), new)
        return copy
    copy[step] = _with(copy.get(step, {}), tuple(rest), new)
    return copy
