"""How values are written on the command line: durations (``15m``, ``900s``, ``900``, ``1h30m``) and ISO times."""

from __future__ import annotations

import re
from datetime import datetime

from controller.core.errors import InputError

MOST_S = 10 * 366 * 86_400
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
    if value > MOST_S:
        raise InputError.one(flag, text, "at most ten years")
    if value < least:
        raise InputError.one(flag, text, f"at least {least} s")
    return value


def iso_time(text: str, flag: str, example: str) -> datetime:
    """An ISO time in whole seconds, aware if it has an offset; ``InputError`` where it is none.

    The years are those in which every time zone and every day around the moment can still be computed.
    """
    try:
        given = datetime.fromisoformat(text).replace(microsecond=0)
    except ValueError:
        raise InputError.one(flag, text, f"an ISO time such as {example}") from None
    if not 1970 < given.year < 9000:
        raise InputError.one(flag, text, "a year from 1971 to 8999")
    return given
