"""Bounds over time, against instants worked out by hand from the zones' rules."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from controller.core.policy import Bounds, Mode, Policy, Pool, PoolLimits, Team, Window
from controller.core.quantities import Amount
from controller.core.schedule import bounds_at, floor_conflicts, limits_in_force, next_change, span, transitions

DAILY = tuple(range(7))


def pct(value: int) -> Amount:
    return Amount(ppm=value * 10_000)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def a_team(*windows: Window, name: str = "dev", floor: Amount | None = None) -> Team:
    return Team(name, (name,), bounds=Bounds(floor or pct(10), pct(50)), schedule=windows)


def a_policy(*teams: Team, zone: str = "UTC", most: int = 100) -> Policy:
    return Policy("p", Mode.ENFORCE, zone, (Pool("h100", (), PoolLimits(0, most)),), teams)


@pytest.mark.parametrize(
    ("day", "begins", "hours"),
    [
        (date(2026, 10, 24), "2026-10-24T16:00", 15),  # clocks go back on the 25th: an hour more
        (date(2026, 10, 25), "2026-10-25T17:00", 14),
        (date(2027, 3, 27), "2027-03-27T17:00", 13),  # clocks go forward on the 28th: an hour less
    ],
)
def test_case_t1_a_night_in_berlin_is_as_long_as_the_clocks_say(day: date, begins: str, hours: int) -> None:
    start, stop = span(Window("nights", DAILY, 18 * 60, 8 * 60), day, "Europe/Berlin")
    assert start == at(begins)
    assert stop - start == hours * 3600


def test_case_t2_a_working_week_in_prague_is_on_for_78_hours_and_20_minutes() -> None:
    team = a_team(Window("work", (0, 1, 2, 3, 4), 6 * 60 + 30, 22 * 60 + 10, ceiling=pct(90)))
    monday = at("2026-06-01T00:00") - 7200  # Monday 00:00 in Prague, UTC+2 in June
    changes = transitions(team, "Europe/Prague", monday, monday + 7 * 86_400)
    on = sum(
        after - before
        for (before, bounds), (after, _) in zip(changes, [*changes[1:], (monday + 7 * 86_400, None)], strict=True)
        if bounds.ceiling == pct(90)
    )
    assert on == 78 * 3600 + 20 * 60
    assert [when for when, _ in changes][-1] == at("2026-06-05T20:10")  # Friday 22:10:00 local


def test_a_window_inside_the_hour_that_is_skipped_begins_when_the_clocks_have_jumped() -> None:
    start, stop = span(Window("backup", DAILY, 2 * 60 + 30, 3 * 60 + 30), date(2026, 3, 29), "Europe/Berlin")
    assert (start, stop) == (at("2026-03-29T01:00"), at("2026-03-29T01:30"))


def test_a_window_in_the_hour_that_comes_twice_begins_the_first_time_and_lasts_through_the_second() -> None:
    start, stop = span(Window("backup", DAILY, 2 * 60 + 30, 3 * 60 + 30), date(2026, 10, 25), "Europe/Berlin")
    assert (start, stop) == (at("2026-10-25T00:30"), at("2026-10-25T02:30"))


def test_a_window_over_midnight_belongs_to_the_day_it_begins() -> None:
    team = a_team(Window("friday-night", (4,), 22 * 60, 6 * 60, floor=pct(80)))
    assert bounds_at(team, "UTC", at("2026-06-05T23:00")).floor == pct(80)  # Friday
    assert bounds_at(team, "UTC", at("2026-06-06T05:59")).floor == pct(80)  # Saturday morning
    assert bounds_at(team, "UTC", at("2026-06-06T06:00")).floor == pct(10)
    assert bounds_at(team, "UTC", at("2026-06-06T23:00")).floor == pct(10)  # Saturday night


def test_of_overlapping_windows_the_later_wins_field_by_field() -> None:
    nights = Window("nights", DAILY, 18 * 60, 8 * 60, floor=pct(5), ceiling=pct(20))
    weekend = Window("weekend", (5, 6), 0, 1440, ceiling=pct(90))
    bounds = bounds_at(a_team(nights, weekend), "UTC", at("2026-06-06T20:00"))
    assert (bounds.floor, bounds.floor_from) == (pct(5), "nights")
    assert (bounds.ceiling, bounds.ceiling_from) == (pct(90), "weekend")


def test_a_window_from_a_time_to_the_same_time_lasts_a_day() -> None:
    team = a_team(Window("sundays", (6,), 8 * 60, 8 * 60, ceiling=pct(100)))
    assert bounds_at(team, "UTC", at("2026-06-08T07:59")).ceiling == pct(100)
    assert bounds_at(team, "UTC", at("2026-06-08T08:00")).ceiling == pct(50)


def test_floors_that_sum_to_110_percent_on_saturday_nights_are_found_with_the_minute() -> None:
    a = a_team(name="a", floor=pct(70))
    b = a_team(Window("sat", (5,), 22 * 60, 2 * 60, floor=pct(40)), name="b", floor=pct(30))
    conflicts = floor_conflicts(a_policy(a, b))
    assert [(c.when, c.teams, c.sum_ppm) for c in conflicts] == [("Sat 22:00", ("a", "b"), 1_100_000)]
    assert floor_conflicts(a_policy(a)) == []


def test_floors_in_gpus_count_as_their_share_of_the_maximum() -> None:
    a = a_team(name="a", floor=Amount(milli_gpus=60_000))
    b = a_team(name="b", floor=pct(41))
    assert [c.sum_ppm for c in floor_conflicts(a_policy(a, b))] == [1_010_000]


def test_percentages_become_whole_gpus_by_largest_remainder_and_a_shortage_is_shared() -> None:
    policy = a_policy(*(a_team(name=name, floor=pct(33)) for name in "abc"))
    now = at("2026-06-01T12:00")
    assert [limit.floor for limit in limits_in_force(policy, policy.pools[0], 10_000, now)] == [3_000, 3_000, 3_000]
    # 33 % of 8 is 2.64 each, 7.92 together: seven whole GPUs, the odd one to the first name.
    assert [limit.floor for limit in limits_in_force(policy, policy.pools[0], 8_000, now)] == [3_000, 2_000, 2_000]
    fixed = a_policy(a_team(name="a", floor=Amount(milli_gpus=8_000)), a_team(name="b", floor=Amount(milli_gpus=4_000)))
    assert [limit.floor for limit in limits_in_force(fixed, fixed.pools[0], 6_000, now)] == [3_000, 2_000]


def test_the_next_change_is_told_and_never_where_nothing_changes() -> None:
    team = a_team(Window("nights", DAILY, 18 * 60, 8 * 60, ceiling=pct(20)))
    assert next_change(a_policy(team, zone="Europe/Berlin"), at("2026-06-01T12:00")) == at("2026-06-01T16:00")
    assert next_change(a_policy(a_team()), at("2026-06-01T12:00")) is None
