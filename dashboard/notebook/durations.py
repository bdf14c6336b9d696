"""Durations as analysts write them (the policy's words: ``15m``, ``1h30m``, ``900s``) and read them."""

from __future__ import annotations

from controller.core.errors import InputError
from controller.resources.schema import to_seconds

MOST_S = 7 * 86_400


def seconds_of(text: str, name: str, *, least: int = 0) -> int:
    """Whole seconds of a duration, at most a week; ``InputError`` naming the parameter where it is none."""
    try:
        value = to_seconds(text)
    except ValueError:
        raise InputError.one(name, text, "a duration such as 15m, 900s or 1h30m") from None
    if not least <= value <= MOST_S:
        raise InputError.one(name, text, f"from {least} s to 7 d")
    return value


def minutes_text(seconds: int) -> str:
    """Seconds as people write a lead: ``15 min``, ``45 s``."""
    return f"{seconds / 60:g} min" if seconds >= 60 or not seconds else f"{seconds} s"
