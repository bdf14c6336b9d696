"""When a night's work is due: local midnight of the policy's time zone, whatever clocks do in spring and autumn."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger


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
    zone = ZoneInfo(timezone)
    trigger = CronTrigger(hour=0, minute=0, second=0, timezone=zone)
    fires: datetime = trigger.get_next_fire_time(None, datetime.fromtimestamp(now_s + 1, zone))
    return int(fires.timestamp())


def midnights(begin_s: int, end_s: int, timezone: str) -> list[int]:
    """The local midnights in ``[begin_s, end_s]``; days of 23 and 25 hours included."""
    zone = ZoneInfo(timezone)
    day = datetime.fromtimestamp(begin_s, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    found = []
    while (at := int(day.timestamp())) <= end_s:
        if at >= begin_s:
            found.append(at)
        day = (day.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=zone)
    return found
