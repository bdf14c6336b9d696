"""Stage 1: which bounds hold at a moment.

Local wall-clock time rules: a window from 18:00 begins when clocks in the policy's zone show 18:00, on the night of a
clock change too. Everything here is computed from windows' edges, never by stepping through minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from functools import lru_cache
from zoneinfo import ZoneInfo

from controller.core.policy import Policy, Pool, Team, Window
from controller.core.quantities import MILLI, PPM, Amount, largest_remainder, whole_gpus_down

BASE = "base"
MINUTES_A_DAY = 1440
MINUTES_A_WEEK = 7 * MINUTES_A_DAY


@dataclass(frozen=True, slots=True)
class BoundsAt:
    """A team's floor and ceiling at one moment, and the window (or ``base``) that each comes from."""

    team: str
    floor: Amount
    ceiling: Amount
    floor_from: str = BASE
    ceiling_from: str = BASE

    @property
    def origin(self) -> str:
        """Where the bounds come from, for people: ``base``, ``nights``, or ``floor: nights, ceiling: base``."""
        if self.floor_from == self.ceiling_from:
            return self.floor_from
        return f"floor: {self.floor_from}, ceiling: {self.ceiling_from}"


@dataclass(frozen=True, slots=True)
class Limits:
    """A team's bounds in one pool in whole GPUs, in milli-GPUs."""

    pool: str
    team: str
    floor: int
    ceiling: int
    bounds_from: str = BASE


@dataclass(frozen=True, slots=True)
class Conflict:
    """A minute of the week at which the floors of a pool sum to more than the pool."""

    pool: str
    minute_of_week: int
    teams: tuple[str, ...]
    sum_ppm: int

    @property
    def when(self) -> str:
        """The minute as people say it: ``Sat 22:00``."""
        return minute_text(self.minute_of_week)


def minute_text(minute_of_week: int) -> str:
    """Render a minute of the week (Monday 00:00 is 0) as ``Sat 22:00``."""
    day, minute = divmod(minute_of_week % MINUTES_A_WEEK, MINUTES_A_DAY)
    return f"{('Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun')[day]} {minute // 60:02}:{minute % 60:02}"


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


@lru_cache(maxsize=4096)
def instant(day: date, minute: int, timezone: str) -> int:
    """Epoch seconds at which local clocks first show a minute of a day, or, in a gap, first show a later one."""
    local = datetime.combine(day, time(), tzinfo=_zone(timezone)) + timedelta(minutes=minute)
    at = int(local.timestamp())
    if datetime.fromtimestamp(at, _zone(timezone)).replace(tzinfo=None) == local.replace(tzinfo=None):
        return at
    return _end_of_gap(at, timezone)


def _end_of_gap(near_s: int, timezone: str) -> int:
    """The instant of the clock change within a day of ``near_s`` (bisection on the UTC offset)."""
    low, high = near_s - 86_400, near_s + 86_400
    before = _offset(low, timezone)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(middle, timezone) == before:
            low = middle
        else:
            high = middle
    return high


def _offset(at_s: int, timezone: str) -> timedelta | None:
    return datetime.fromtimestamp(at_s, _zone(timezone)).utcoffset()


def span(window: Window, day: date, timezone: str) -> tuple[int, int]:
    """The instants at which a window that begins on a local day starts and ends."""
    to_minute = window.to_minute if window.to_minute > window.from_minute else window.to_minute + MINUTES_A_DAY
    return instant(day, window.from_minute, timezone), instant(day, to_minute, timezone)


def active(window: Window, timezone: str, at_s: int) -> bool:
    """Whether a window holds at an instant; one that crosses midnight belongs to the day it begins."""
    today = datetime.fromtimestamp(at_s, _zone(timezone)).date()
    for day in (today, today - timedelta(days=1)):
        if day.weekday() in window.days:
            start, stop = span(window, day, timezone)
            if start <= at_s < stop:
                return True
    return False


def bounds_at(team: Team, timezone: str, at_s: int) -> BoundsAt:
    """The bounds of a team at an instant: the later window in the list wins, field by field."""
    return _merged(team, [w for w in team.schedule if active(w, timezone, at_s)])


def _merged(team: Team, windows: list[Window]) -> BoundsAt:
    floor, ceiling, floor_from, ceiling_from = team.bounds.floor, team.bounds.ceiling, BASE, BASE
    for window in windows:
        if window.floor is not None:
            floor, floor_from = window.floor, window.name
        if window.ceiling is not None:
            ceiling, ceiling_from = window.ceiling, window.name
    return BoundsAt(team.name, floor, ceiling, floor_from, ceiling_from)


def limits_in_force(policy: Policy, pool: Pool, of_milli_gpus: int, at_s: int) -> tuple[Limits, ...]:
    """The bounds of a pool's teams in whole GPUs of ``of_milli_gpus`` (what can be had), by team name.

    Floors are rounded together by largest remainder; where they sum to more than can be had they shrink in
    proportion. A ceiling is rounded down; a floor never lies above its ceiling.
    """
    teams = [team for team in policy.teams if team.in_pool(pool.name)]
    at = [bounds_at(team, policy.timezone, at_s) for team in teams]
    bounds = tuple((b.floor, b.ceiling) for b in at)
    rank = tuple((team.priority, team.name) for team in teams)
    return tuple(
        Limits(pool.name, b.team, floor, ceiling, b.origin)
        for b, (floor, ceiling) in zip(at, _whole_bounds(bounds, rank, of_milli_gpus), strict=True)
    )


@lru_cache(maxsize=1024)
def _whole_bounds(
    bounds: tuple[tuple[Amount, Amount], ...], rank: tuple[tuple[int, str], ...], of_milli_gpus: int
) -> tuple[tuple[int, int], ...]:
    """Floors and ceilings in whole GPUs; cached, since bounds change a few times a day and ticks are many."""
    whole = whole_gpus_down(of_milli_gpus)
    ceilings = [min(whole_gpus_down(int(ceiling.exact(of_milli_gpus))), whole) for _, ceiling in bounds]
    floors = _whole_floors([floor.exact(of_milli_gpus) for floor, _ in bounds], whole, list(rank))
    return tuple((min(floor, ceiling), ceiling) for floor, ceiling in zip(floors, ceilings, strict=True))


def _whole_floors(exact: list[Fraction], whole: int, rank: list[tuple[int, str]]) -> list[int]:
    wanted = sum(exact, Fraction(0))
    if wanted > whole:
        exact = [value * whole / wanted for value in exact]
        wanted = Fraction(whole)
    units = [value / MILLI for value in exact]
    return [gpus * MILLI for gpus in largest_remainder(units, int(wanted // MILLI), rank)]


def edges(team: Team, timezone: str, start_s: int, stop_s: int) -> Iterator[int]:
    """All instants in ``(start_s, stop_s]`` at which one of a team's windows begins or ends."""
    zone = _zone(timezone)
    day = datetime.fromtimestamp(start_s, zone).date() - timedelta(days=1)
    last = datetime.fromtimestamp(stop_s, zone).date()
    while day <= last:
        for window in team.schedule:
            if day.weekday() in window.days:
                yield from (at for at in span(window, day, timezone) if start_s < at <= stop_s)
        day += timedelta(days=1)


def transitions(team: Team, timezone: str, start_s: int, stop_s: int) -> list[tuple[int, BoundsAt]]:
    """The bounds at ``start_s`` and every change of them until ``stop_s``, ascending."""
    changes = [(start_s, bounds_at(team, timezone, start_s))]
    for at in sorted(set(edges(team, timezone, start_s, stop_s))):
        bounds = bounds_at(team, timezone, at)
        if bounds != changes[-1][1]:
            changes.append((at, bounds))
    return changes


def next_change(policy: Policy, at_s: int) -> int | None:
    """The next instant, within eight days, at which any team's bounds change; None when none ever does."""
    found = []
    for team in policy.teams:
        changes = transitions(team, policy.timezone, at_s, at_s + 8 * 86_400)
        found += [at for at, _ in changes[1:2]]
    return min(found, default=None)


def _minutes(window: Window) -> Iterator[tuple[int, int]]:
    """A window's stretches on the wall-clock week, as ``[from, to)`` minutes of the week, split at its end."""
    length = (window.to_minute - window.from_minute) % MINUTES_A_DAY or MINUTES_A_DAY
    for day in window.days:
        start = day * MINUTES_A_DAY + window.from_minute
        stop = start + length
        yield start, min(stop, MINUTES_A_WEEK)
        if stop > MINUTES_A_WEEK:
            yield 0, stop - MINUTES_A_WEEK


def week_bounds(team: Team, minute_of_week: int) -> BoundsAt:
    """The bounds at a minute of the wall-clock week (Monday 00:00 is 0), clock changes aside."""
    return _merged(team, [w for w in team.schedule if any(a <= minute_of_week < b for a, b in _minutes(w))])


def week_edges(teams: tuple[Team, ...]) -> list[int]:
    """The minutes of the week at which anything may change, ascending, with 0."""
    return sorted(
        {0} | {edge % MINUTES_A_WEEK for t in teams for w in t.schedule for span_ in _minutes(w) for edge in span_}
    )


def floor_conflicts(policy: Policy) -> list[Conflict]:
    """Every stretch of the week in which a pool's floors sum to more than 100 %, by the minute it begins.

    Clock changes repeat or skip minutes of the wall-clock week but never make new combinations of them, except that a
    window's end inside the skipped hour meets the next one's begin, which the following minute covers.
    """
    found = []
    for pool in policy.pools:
        teams = tuple(team for team in policy.teams if team.in_pool(pool.name))
        floors, total = dict.fromkeys((team.name for team in teams), Fraction(0)), Fraction(0)
        for minute, changed in _floor_changes(teams, pool):
            total += sum((ppm - floors[name] for name, ppm in changed.items()), Fraction(0))
            floors |= changed
            if total > PPM:
                found.append(
                    Conflict(pool.name, minute, tuple(name for name, ppm in floors.items() if ppm), int(total))
                )
    return found


def _floor_changes(teams: tuple[Team, ...], pool: Pool) -> list[tuple[int, dict[str, Fraction]]]:
    """The minutes of the week at which floors change, ascending, with the new floors by team."""
    changes: dict[int, dict[str, Fraction]] = {}
    for team in teams:
        before = None
        for minute in week_edges((team,)):
            ppm = _floor_ppm(week_bounds(team, minute).floor, pool)
            if ppm != before:
                changes.setdefault(minute, {})[team.name] = ppm
            before = ppm
    return sorted(changes.items())


def _floor_ppm(floor: Amount, pool: Pool) -> Fraction:
    if floor.ppm is not None:
        return Fraction(floor.ppm)
    most = pool.limits.max_gpus * MILLI
    return floor.exact(most) * PPM / most if most else Fraction(0)


def local_text(at_s: int, timezone: str) -> str:
    """An instant as local people would write it, with zone abbreviation."""
    return datetime.fromtimestamp(at_s, _zone(timezone)).strftime("%a %Y-%m-%d %H:%M:%S %Z")


def utc_text(at_s: int) -> str:
    """An instant in UTC, ISO 8601."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
