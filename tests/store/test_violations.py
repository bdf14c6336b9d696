"""One incident is one row: opened once, followed while it lasts, closed by the first tick without it."""

from __future__ import annotations

from store_builders import T0, a_decision, a_violation, put

from controller.core.reasons import ReasonCode
from controller.store import Store


def test_an_incident_is_opened_followed_and_closed(store: Store) -> None:
    first = put(store, a_decision(T0, violations=(a_violation(measured=5),)))
    second = put(store, a_decision(T0 + 60, violations=(a_violation(measured=3, subjects=("pod-c",)),)))
    [row] = store.violations("east", open_only=True)
    assert row.key == "east/production/idle_gpus/dev/h100"
    assert (row.opened_at_s, row.last_seen_at_s, row.closed_at_s) == (T0, T0 + 60, None)
    assert (row.measured, row.allowed, row.subjects) == (3, 10, ("pod-c",))
    assert (row.opened_tick_id, row.last_tick_id) == (first.id, second.id)
    assert row.reason.code is ReasonCode.IDLE_GPUS
    assert row.reason.fact("busy_ppm") == 3
    put(store, a_decision(T0 + 120))
    assert store.violations("east", open_only=True) == []
    [row] = store.violations("east")
    assert (row.last_seen_at_s, row.closed_at_s) == (T0 + 60, T0 + 120)


def test_an_incident_that_comes_back_is_a_new_row(store: Store) -> None:
    for step, broken in enumerate([True, False, True, True, False, True]):
        put(store, a_decision(T0 + 60 * step, violations=(a_violation(),) if broken else ()))
    rows = store.violations("east")
    assert [((row.opened_at_s - T0) // 60, row.closed_at_s and (row.closed_at_s - T0) // 60) for row in rows] == [
        (5, None),
        (2, 4),
        (0, 1),
    ]


def test_two_teams_that_break_one_rule_are_two_incidents(store: Store) -> None:
    put(store, a_decision(T0, violations=(a_violation("a"), a_violation("b"))))
    put(store, a_decision(T0 + 60, violations=(a_violation("b"),)))
    assert [row.team for row in store.violations("east", open_only=True)] == ["b"]
    assert {row.team: row.closed_at_s for row in store.violations("east")} == {"a": T0 + 60, "b": None}


def test_a_range_finds_the_incidents_that_overlap_it(store: Store) -> None:
    put(store, a_decision(T0, violations=(a_violation("a"),)))
    put(store, a_decision(T0 + 100, violations=(a_violation("b"),)))
    put(store, a_decision(T0 + 200))

    def teams(start_s: int, stop_s: int) -> list[str]:
        return [row.team for row in store.violations("east", start_s, stop_s)]

    assert teams(0, T0) == []
    assert teams(0, T0 + 1) == ["a"]
    assert teams(T0 + 100, T0 + 101) == ["b", "a"]
    assert teams(T0 + 101, T0 + 500) == ["b"]
    assert teams(T0 + 201, T0 + 500) == []
