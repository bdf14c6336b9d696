"""Reading YAML as people write it: safe, bounded, one document, no key twice, and every field's line known."""

from __future__ import annotations

from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from controller.core.errors import InputError

MOST_BYTES = 1_000_000
"""A policy of 200 teams is a tenth of this; more is a mistake or an attack."""
MOST_NODES = 100_000
MOST_DEPTH = 50
Path = tuple[str | int, ...]
Lines = dict[Path, int]


def read_yaml(text: str, source: str) -> tuple[Any, Lines]:
    """Parse one document. Returns its value and the line of every field, by path."""
    if len(text) > MOST_BYTES:
        raise InputError.one("(file)", f"more than {MOST_BYTES} characters", f"at most {MOST_BYTES}", source=source)
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise InputError.one(*_yaml_problem(error), source=source) from error
    except RecursionError:
        raise InputError.one("(file)", "nested too deep", f"at most {MOST_DEPTH} levels", source=source) from None
    if node is None:
        raise InputError.one("(file)", "empty", "a GPUPolicy; `tidegate policy init` writes one", source=source)
    builder = _Builder(source)
    return builder.value(node, ()), builder.lines


def _yaml_problem(error: yaml.YAMLError) -> tuple[str, str, str]:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}" if mark else "(file)"
    said = getattr(error, "problem", None) or "not readable"
    if "expected a single document" in str(error):
        said = "more than one document"
        return where, said, "one GPUPolicy a file"
    return where, str(said), "valid YAML (indent with spaces, quote special characters)"


class _Builder:
    """Builds plain values by hand, so that aliases cannot multiply and duplicate keys are seen."""

    def __init__(self, source: str) -> None:
        self.lines: Lines = {}
        self._source, self._seen, self._scalars = source, 0, SafeConstructor()

    def value(self, node: yaml.Node, path: Path) -> Any:
        """The plain value of a node."""
        self._seen += 1
        if self._seen > MOST_NODES or len(path) > MOST_DEPTH:
            said = "too large once its aliases are followed"
            raise self._refused("(file)", said, f"at most {MOST_NODES} values in {MOST_DEPTH} levels")
        self.lines[path] = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._refused(f"{path_text(path)} (line {line})", "a key that is no word", "words as keys")
            # YAML 1.1 reads on, off, yes and no as booleans; as a key (`on: gpu-nodes`) the word itself is meant.
            key = key_node.value
            if key in found:
                raise self._refused(f"{path_text((*path, key))} (line {line})", "given twice", "each key once")
            found[key] = self.value(value_node, (*path, key))
            self.lines[(*path, key)] = line
        return found

    def _scalar(self, node: yaml.Node, path: Path) -> Any:
        # The words on/off/yes/no and 18:00 are kept as text: people mean the word and the time.
        if node.tag == "tag:yaml.org,2002:bool" and str(node.value).lower() not in ("true", "false"):
            return node.value
        if node.tag == "tag:yaml.org,2002:int" and ":" in str(node.value):
            return node.value
        try:
            return self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError):
            where = f"{path_text(path)} (line {node.start_mark.line + 1})"
            said = str(node.value) if len(node.value) <= 60 else f"{node.value[:57]}..."
            raise self._refused(where, said, "a plain value (tags are not allowed)") from None

    def _refused(self, path: str, value: str, allowed: str) -> InputError:
        return InputError.one(path, value, allowed, source=self._source)


def path_text(path: Path) -> str:
    """A field's path as people write it: ``spec.teams[1].bounds.floor``."""
    text = ""
    for part in path:
        if isinstance(part, str) and not part.isprintable():
            part = repr(part)
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "(file)"
