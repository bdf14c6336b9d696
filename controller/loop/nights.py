"""When a night's work is due: local midnight of the policy's time zone, whatever clocks do in spring and autumn."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo


class Nights:
    """Tells once after the start, and once after every local midnight, that the night's work is due."""

    def __init__(self) -> None:
        self._next: int | None = None
        self._timezone = ""

    def due(self, now_s: int, timezone: str) -> bool:
        """Whether a midnight has passed since the last time that this was true (or the zone is another one)."""
        if self._next is not None and now_s < self._next and timezone == self._timezone:
            return False
        self._next, self._timezone = next_midnight(now_s, timezone), timezone
        return True


def next_midnight(now_s: int, timezone: str) -> int:
    """The first local midnight after a moment."""
    return _day_after(datetime.fromtimestamp(now_s, ZoneInfo(timezone)))


def midnights(begin_s: int, end_s: int, timezone: str) -> list[int]:
    """The local midnights in ``[begin_s, end_s]``; days of 23 and 25 hours included."""
    found, at = [], next_midnight(begin_s - 1, timezone)
    while at <= end_s:
        found.append(at)
        at = next_midnight(at, timezone)
    return found


def _day_after(local: datetime) -> int:
    # By the calendar, not by 24 hours. APScheduler 3.11's CronTrigger skips the midnight after clocks go forward.
    return int(datetime.combine(local.date() + timedelta(days=1), time(), local.tzinfo).timestamp())
