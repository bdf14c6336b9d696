"""Words beside charts: text that a notebook shows as text, and numbers as people read them."""

from __future__ import annotations

import os
from typing import TypeVar

from controller.core.errors import InputError

PREFIX = "TIDEGATE_NOTEBOOK_"
Value = TypeVar("Value", str, int, float)


class Note(str):
    """A sentence or two, shown as Markdown."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return str(self)


def setting(name: str, default: Value) -> Value:
    """A notebook's parameter: ``default``, unless the environment sets ``TIDEGATE_NOTEBOOK_<name>``.

    The value has the kind (text, whole number, number) of the default; ``InputError`` where it cannot be read as such.
    """
    text = os.environ.get(PREFIX + name)
    if text is None:
        return default
    try:
        return type(default)(text)
    except ValueError:
        kind = {int: "a whole number", float: "a number"}.get(type(default), "text")
        raise InputError.one(PREFIX + name, text, kind) from None


def percent(share: float) -> str:
    """A share as whole percent."""
    return f"{share:.0%}".replace("%", " %")


def hours(gpu_hours: float) -> str:
    """GPU-hours as people read them."""
    return f"{gpu_hours:,.0f} GPU-hours" if abs(gpu_hours) >= 10 else f"{gpu_hours:.1f} GPU-hours"
