"""Words beside charts: text that a notebook shows as text, and numbers as people read them."""

from __future__ import annotations

import os
from typing import TypeVar

from controller.core.errors import InputError

PREFIX = "TIDEGATE_NOTEBOOK_"
Single = TypeVar("Single", str, int, float)
Value = TypeVar("Value", str, int, float, tuple[str, ...], tuple[int, ...])


class Note(str):
    """A sentence or two, shown as Markdown."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return str(self)


def setting(name: str, default: Value) -> Value:
    """A notebook's parameter: ``default``, unless the environment sets ``TIDEGATE_NOTEBOOK_<name>``.

    The value has the kind (text, whole number, number, several of one of these with commas between) of the default;
    ``InputError`` where it cannot be read as such.
    """
    text = os.environ.get(PREFIX + name)
    if text is None:
        return default
    if isinstance(default, tuple):
        return tuple(_read(name, part.strip(), default[0]) for part in text.split(",") if part.strip())
    return _read(name, text, default)


def _read(name: str, text: str, like: Single) -> Single:
    try:
        return type(like)(text)
    except ValueError:
        kind = {int: "a whole number", float: "a number"}.get(type(like), "text")
        raise InputError.one(PREFIX + name, text, kind) from None


def percent(share: float) -> str:
    """A share as whole percent."""
    return f"{share:.0%}".replace("%", " %")


def hours(gpu_hours: float) -> str:
    """GPU-hours as people read them."""
    return f"{gpu_hours:,.0f} GPU-hours" if abs(gpu_hours) >= 10 else f"{gpu_hours:.1f} GPU-hours"
