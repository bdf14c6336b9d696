"""How values are written on the command line: durations as ``15m``, ``900s``, ``900`` or ``1h30m``."""

from __future__ import annotations

import re

from controller.core.errors import InputError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"(?:\d+[smhd])+|\d+")


def seconds(text: str, flag: str, *, least: int = 0) -> int:
    """Whole seconds of a duration; ``InputError`` naming the flag where it is none or below ``least``."""
    cleaned = text.strip().lower()
    if not _DURATION.fullmatch(cleaned):
        raise InputError.one(flag, text, "a duration such as 15m, 900s, 900 or 1h30m")
    if cleaned.isdigit():
        value = int(cleaned)
    else:
        value = sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", cleaned))
    if value < least:
        raise InputError.one(flag, text, f"at least {least} s")
    return value
