"""One field of a YAML text is changed and not a character beside it; expected texts are written out by hand."""

from __future__ import annotations

import pytest

from controller.core.errors import InputError
from dashboard.notebook.yaml_edit import edited, steps_of


def test_a_path_names_fields_and_items() -> None:
    assert steps_of("spec.teams[dev].bounds.floor") == ("spec", "teams", "[dev]", "bounds", "floor")
    assert steps_of("a[0]") == ("a", 0)


@pytest.mark.parametrize("path", ["", ".a", "a..b", "a b", "a[", "a[]"])
def test_what_is_no_path_is_refused(path: str) -> None:
    text = "a: 1\n"
    with pytest.raises(InputError, match="path"):
        edited(text, path, 2)


CASES = {
    "a value keeps its comment": ("a: 1  # one\nb: 2\n", "a", 3, "a: 3  # one\nb: 2\n"),
    "a quoted value": ("a: '1'  # one\n", "a", "x: y", "a: 'x: y'  # one\n"),
    "a value within braces": ("a: {b: 1, c: 2}\n", "a.c", 5, "a: {b: 1, c: 5}\n"),
    "an item by name": ("t:\n- name: x\n- name: y\n  f: 2\n", "t[y].f", 9, "t:\n- name: x\n- name: y\n  f: 9\n"),
    "an item by number": ("t: [1, 2, 3]\n", "t[1]", 7, "t: [1, 7, 3]\n"),
    "a list in braces": ("l: {q: [0.5, 0.98]}\n", "l.q", [0.3, 0.7], "l: {q: [0.3, 0.7]}\n"),
    "a list in the column of its key": ("l:\n  q:\n  - 1\n  - 2\n  z: 3\n", "l.q", [4], "l:\n  q: [4]\n  z: 3\n"),
    "a list further in": ("q:\n  - 1\n  - 2\nz: 3\n", "q", [4], "q: [4]\nz: 3\n"),
    "a list under a comment": ("q:  # why\n- 1\nz: 3\n", "q", [4], "q:  # why\n  [4]\nz: 3\n"),
    "a mapping": ("q:\n  a: 1\nz: 3\n", "q", {"b": 2}, "q: {b: 2}\nz: 3\n"),
    "a text block": ("q: |\n  a\n  b\nz: 3\n", "q", "c", "q: c\nz: 3\n"),
    "nothing yet": ("q:\nz: 3\n", "q", 4, "q: 4\nz: 3\n"),
    "within nothing yet": ("q:\nz: 3\n", "q.a", 4, "q: {a: 4}\nz: 3\n"),
    "a new field after the last on one line": ("a:\n  b: 1  # x\nc: 2\n", "a.d", 3, "a:\n  b: 1  # x\n  d: 3\nc: 2\n"),
    "a new field within braces": ("a: {b: 1}\n", "a.d", 3, "a: {b: 1, d: 3}\n"),
    "a new field in empty braces": ("a: {}\n", "a.d.e", 3, "a: {d: {e: 3}}\n"),
    "a new field before blocks": ("a:\n  b:\n  - 1\n", "a.d", 3, "a:\n  d: 3\n  b:\n  - 1\n"),
    "no line end at the end": ("a: 1", "b", 2, "a: 1\nb: 2"),
    "line ends of Windows": ("a: 1\r\nb: {c: 2}\r\n", "d", 3, "a: 1\r\nb: {c: 2}\r\nd: 3\r\n"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "path", "value", "expected"), CASES.values(), ids=CASES)
def test_only_that_field_changes(text: str, path: str, value: object, expected: str) -> None:
    assert edited(text, path, value) == expected


@pytest.mark.parametrize(
    ("text", "path", "word"),
    [
        ("t:\n- name: x\n", "t[y].f", "an item that is there: x"),
        ("t: [1]\n", "t[3]", "an item that is there"),
        ("t: 1\n", "t.f", "an item that is there"),
        ("t: {}\n", "t.f[0]", "not added"),
        ("a: &x {b: 1}\nc: *x\n", "a.b", "by hand"),
    ],
)
def test_what_cannot_be_changed_alone_is_refused_in_one_line(text: str, path: str, word: str) -> None:
    with pytest.raises(InputError) as caught:
        edited(text, path, 2, "file.yaml")
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)
