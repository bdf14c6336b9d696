"""What is old goes, what is still needed stays."""

from __future__ import annotations

from store_builders import DAY, EVICT, T0, a_decision, a_forecast, a_violation, put

from controller.core.actions import Evict
from controller.store import Retention, Store

EVICTION = Evict("h100", "dev", "job-1", "inference", 2000, EVICT)


def test_each_kind_of_row_has_its_own_term(store: Store) -> None:
    days = {}
    for day in (0, 1, 20, 380, 395, 401):
        decision = a_decision(T0 + day * DAY, actions=(EVICTION,), notes=(EVICT,))
        days[day] = put(store, decision, a_forecast(T0 + day * DAY), maximum=64 + day)
    store.outcome("x", days[0].id, "applied")
    now = T0 + 401 * DAY
    lost = store.prune(now)
    assert store.record(days[380].id) is None
    assert store.decision(days[380].id).record is None
    assert store.decision(days[380].id).notes == ()
    assert len(store.decision(days[380].id).actions) == 1
    assert store.record(days[395].id) == days[395]
    assert store.decision(days[0].id) is None
    assert store.decision(days[1].id) is not None
    rows = store.info().rows
    assert rows["payloads"] == rows["notes"] == 2
    assert rows["team_samples"] == rows["pool_samples"] == rows["forecasts"] == 3
    assert rows["demand_bins"] == 6
    assert rows["ticks"] == rows["actions"] == rows["team_hours"] == rows["pool_hours"] == rows["policies"] == 5
    assert rows["outcomes"] == 0
    assert lost.rows["ticks"] == lost.rows["policies"] == lost.rows["outcomes"] == 1
    assert lost.rows["payloads"] == 4
    assert store.prune(now).total == 0


def test_ticks_that_an_open_violation_cites_stay_whole(store: Store) -> None:
    opened = put(store, a_decision(T0, violations=(a_violation(),), notes=(EVICT,)))
    between = put(store, a_decision(T0 + DAY, violations=(a_violation(),)))
    last = put(store, a_decision(T0 + 2 * DAY, violations=(a_violation(),)))
    now = T0 + 500 * DAY
    put(store, a_decision(now - 1, cluster="west"))
    store.prune(now)
    assert (store.record(opened.id), store.record(last.id)) == (opened, last)
    assert len(store.decision(opened.id).notes) == 1
    assert store.decision(between.id) is None
    [row] = store.violations("east", open_only=True)
    assert (row.opened_tick_id, row.last_tick_id) == (opened.id, last.id)


def test_once_it_is_closed_its_ticks_go_and_later_the_incident_too(store: Store) -> None:
    opened = put(store, a_decision(T0, violations=(a_violation(),)))
    put(store, a_decision(T0 + DAY))
    put(store, a_decision(T0 + 400 * DAY))
    store.prune(T0 + 400 * DAY + 1)
    assert store.decision(opened.id) is None
    [row] = store.violations("east")
    assert (row.opened_tick_id, row.closed_at_s) == (None, T0 + DAY)
    store.prune(T0 + 401 * DAY + 1)
    assert store.violations("east") == []


def test_the_newest_tick_of_a_cluster_is_never_pruned(store: Store) -> None:
    record = put(store, a_decision(T0))
    earlier = put(store, a_decision(T0 - 60))  # recorded later: a clock was set back
    store.prune(T0 + 5000 * DAY)
    assert store.decision(earlier.id) is None
    assert store.resume("east") == record
    assert store.latest_tick("east").id == record.id


def test_terms_can_be_chosen(store: Store) -> None:
    first = put(store, a_decision(T0))
    put(store, a_decision(T0 + 2 * DAY))
    store.prune(T0 + 2 * DAY, Retention(payload_days=1, sample_days=1, history_days=3))
    assert store.record(first.id) is None
    assert store.decision(first.id) is not None
    assert store.info().rows["team_samples"] == 1
