"""A tick goes in whole, once, and comes back byte for byte."""

from __future__ import annotations

import json

import pytest
from sqlalchemy.exc import IntegrityError
from store_builders import (
    DAY,
    EVICT,
    T0,
    a_decision,
    a_forecast,
    a_pool,
    a_record,
    a_team,
    a_violation,
    put,
)

from controller.core.actions import Evict, RemoveNode, SetCapacity, SetShare, action_id
from controller.core.forecast import Forecasts
from controller.core.reasons import ReasonCode, reason
from controller.store import Store, StoreError, TickRecord, open_store

EVICTION = Evict("h100", "dev", "job-1", "inference", 2000, EVICT)
SHARE = SetShare("h100", "dev", 4000, 1000, reason(ReasonCode.LENT_OUT, pool="h100", team="dev", lent_milli_gpus=4000))
REMOVAL = RemoveNode("h100", "node-1", reason(ReasonCode.NODE_IDLE, pool="h100", subject="node-1", idle_s=600))
CAPACITY = SetCapacity("h100", 5, 8000, 8000, reason(ReasonCode.RULE_TARGET, pool="h100", target_nodes=5))


def test_a_tick_comes_back_byte_for_byte(store: Store) -> None:
    record = put(store, a_decision(actions=(EVICTION,)), a_forecast(T0))
    assert store.record(record.id) == record
    assert store.resume("east") == record
    assert b"d\xc3\xa9v-*" in record.policy_bytes
    assert store.decision(record.id).record == record
    assert store.record("0" * 16) is None
    assert store.decision("0" * 16) is None


def test_a_second_append_of_the_same_tick_changes_nothing(store: Store) -> None:
    decision = a_decision(actions=(EVICTION,), notes=(EVICT,), violations=(a_violation(),))
    record = put(store, decision, a_forecast(T0))
    before = store.info().rows
    assert store.append(record, decision, Forecasts((a_forecast(T0),))) is False
    assert store.info().rows == before
    assert store.demand_history("east")[1].mean == [0]


def test_the_id_is_of_cluster_moment_and_inputs_and_not_of_the_clock() -> None:
    base = a_record(a_decision())
    assert len(base.id) == 16
    assert int(base.id, 16) >= 0
    others = [
        a_record(a_decision(cluster="west")),
        a_record(a_decision(T0 + 1)),
        a_record(a_decision(), a_forecast(T0)),
        a_record(a_decision(), maximum=65),
    ]
    assert len({base.id, *(other.id for other in others)}) == 5
    later = TickRecord(**{name: getattr(base, name) for name in TickRecord.__dataclass_fields__} | {"wall_at_s": 1})
    assert later.id == base.id


def test_a_tick_that_fails_half_way_leaves_nothing_behind(store: Store) -> None:
    twice = a_decision(teams=(a_team(), a_team()), actions=(EVICTION,), notes=(EVICT,), violations=(a_violation(),))
    with pytest.raises(IntegrityError):
        put(store, twice, a_forecast(T0))
    assert set(store.info().rows.values()) == {0}
    put(store, a_decision())
    assert store.latest_tick("east").at_s == T0


def test_a_policy_is_kept_once_however_many_ticks_used_it(store: Store) -> None:
    for step in range(3):
        put(store, a_decision(T0 + step))
    other = put(store, a_decision(T0 + 3), maximum=99)
    assert store.info().rows["policies"] == 2
    assert store.resume("east").policy_bytes == other.policy_bytes
    assert json.loads(other.policy_bytes)["pools"][0]["limits"]["max_gpus"] == 99


def test_the_newest_tick_has_its_pools_teams_and_open_violations(store: Store) -> None:
    put(store, a_decision(T0, teams=(a_team(held=1),), violations=(a_violation("old"),)))
    teams = (a_team("alpha", held=3, starved=True, longest_wait_s=7), a_team("zeta", share=9, bounds_from="nights"))
    pools = (a_pool("a100", advised_nodes=4, source="forecast"), a_pool("h100", quantile_permille=900))
    record = put(store, a_decision(T0 + 60, pools=pools, teams=teams, violations=(a_violation("new"),)))
    now = store.now("east")
    assert now.tick.id == record.id
    assert (now.pools, now.teams) == (pools, teams)
    assert [one.team for one in now.violations] == ["new"]
    assert (store.pools_now("east"), store.teams_now("east")) == (pools, teams)


def test_an_empty_store_has_an_answer_to_every_question(store: Store) -> None:
    assert store.clusters() == ()
    assert store.series("east") == ()
    assert store.span("east") is None
    assert (store.latest_tick("east"), store.now("east"), store.resume("east")) == (None, None, None)
    assert (store.teams_now("east"), store.pools_now("east")) == ((), ())
    assert store.decisions("east") == store.notes("east") == store.violations("east") == store.ticks("east") == []
    assert len(store.team_series("east", "h100", "dev")) == len(store.pool_series("east", "h100")) == 0
    assert store.team_series("east", "h100", "dev")["held"] == []
    assert store.demand_history("east") == store.forecast_windows("east", "h100") == []
    assert store.forecast_series("east", "h100", "dev", (900, 1800)) == store.latest_forecast("east", "h100") == []
    assert store.forecast_vs_actual("east", "h100", "dev", (900, 1800)) == []
    assert store.prune(T0).total == 0


def test_clusters_do_not_see_each_other(store: Store) -> None:
    east = put(store, a_decision(T0, actions=(EVICTION,), violations=(a_violation(),)))
    west = put(store, a_decision(T0, cluster="west", teams=(a_team(demand=5),)))
    assert store.clusters() == ("east", "west")
    assert (store.resume("east"), store.resume("west")) == (east, west)
    assert store.violations("west") == store.decisions("west") == []
    assert len(store.violations("east", open_only=True)) == 1
    assert store.team_series("west", "h100", "dev")["demand"] == [5]
    assert store.team_series("east", "h100", "dev")["demand"] == [0]


def test_a_tick_not_later_than_the_newest_is_recorded_but_each_moment_counts_once(store: Store) -> None:
    put(store, a_decision(T0 + 300, teams=(a_team(demand=1),)))
    put(store, a_decision(T0 + 300, teams=(a_team(demand=2),), violations=(a_violation(),)), maximum=65)
    put(store, a_decision(T0, teams=(a_team(demand=3),)))
    assert store.info().rows["ticks"] == 3
    assert store.team_series("east", "h100", "dev")["demand"] == [1]
    assert store.demand_history("east")[1].mean == [1]
    assert store.violations("east") == []
    assert store.resume("east").at_s == T0 + 300
    assert store.span("east") == (T0, T0 + 300)


def test_outcomes_are_added_and_never_overwritten(store: Store) -> None:
    record = put(store, a_decision(actions=(EVICTION, REMOVAL)))
    store.outcome(action_id(EVICTION), record.id, "deferred", "budget")
    store.outcome(action_id(EVICTION), record.id, "applied", at_s=T0 + 5)
    first, second = store.decision(record.id).actions
    assert [(one.status, one.detail, one.at_s) for one in first.outcomes] == [
        ("deferred", "budget", T0),
        ("applied", "", T0 + 5),
    ]
    assert second.outcomes == ()
    with pytest.raises(ValueError, match="applied, refused, deferred"):
        store.outcome(action_id(EVICTION), record.id, "done")
    with pytest.raises(StoreError, match="has no tick ffff"):
        store.outcome(action_id(EVICTION), "ffff", "applied")


def test_outcomes_of_a_tick_go_in_together_or_not_at_all(store: Store) -> None:
    record = put(store, a_decision(actions=(EVICTION, REMOVAL)))
    store.outcomes(record.id, [(action_id(EVICTION), "applied", ""), (action_id(REMOVAL), "refused", "busy")])
    assert [[one.status for one in row.outcomes] for row in store.decisions("east")] == [["refused"], ["applied"]]
    with pytest.raises(ValueError, match="not 'done'"):
        store.outcomes(record.id, [(action_id(EVICTION), "applied", ""), (action_id(REMOVAL), "done", "")])
    assert store.info().rows["outcomes"] == 2


def test_an_action_keeps_its_reason_and_its_numbers(store: Store) -> None:
    record = put(store, a_decision(actions=(EVICTION, SHARE, REMOVAL, CAPACITY), notes=(EVICT,)))
    view = store.decision(record.id)
    assert [(row.kind, row.team, row.subject, row.reason) for row in view.actions] == [
        ("evict", "dev", "job-1", EVICT),
        ("set_share", "dev", "", SHARE.reason),
        ("remove_node", "", "node-1", REMOVAL.reason),
        ("set_capacity", "", "", CAPACITY.reason),
    ]
    assert view.actions[0].action_id == action_id(EVICTION)
    assert view.actions[0].detail == {
        "kind": "evict",
        "pool": "h100",
        "team": "dev",
        "workload": "job-1",
        "for_team": "inference",
        "milli_gpus": 2000,
    }
    assert [note.reason for note in view.notes] == [EVICT]
    assert view.header.actions == 4
    assert view.header.notes == 1


def test_pages_of_actions_stay_right_while_new_ones_arrive(store: Store) -> None:
    for step in range(5):
        put(store, a_decision(T0 + step, actions=(EVICTION, SHARE)))
    first = store.decisions("east", limit=3)
    put(store, a_decision(T0 + 5, actions=(EVICTION, SHARE)))
    rows = first
    while rows:
        page = store.decisions("east", limit=3, before_id=rows[-1].seq)
        if not page:
            break
        rows = rows + page
    assert [(row.at_s - T0, row.kind) for row in rows] == [
        (step, kind) for step in (4, 3, 2, 1, 0) for kind in ("set_share", "evict")
    ]


def test_actions_and_notes_are_found_by_team_pool_reason_kind_and_time(store: Store) -> None:
    other = SetShare("a100", "batch", 0, 0, reason(ReasonCode.STARVED, pool="a100", team="batch"))
    put(store, a_decision(T0, actions=(EVICTION, other), notes=(EVICT, other.reason)))
    put(store, a_decision(T0 + DAY, actions=(SHARE,)))

    def kinds(**asked: object) -> list[str]:
        return [row.kind + row.team for row in store.decisions("east", **asked)]

    assert kinds() == ["set_sharedev", "set_sharebatch", "evictdev"]
    assert kinds(team="dev") == ["set_sharedev", "evictdev"]
    assert kinds(pool="a100") == kinds(code="STARVED") == kinds(team="batch", kind="set_share") == ["set_sharebatch"]
    assert kinds(kind="evict") == kinds(team="dev", stop_s=T0 + DAY) == ["evictdev"]
    assert kinds(start_s=T0 + 1) == ["set_sharedev"]
    assert kinds(kind="remove_node") == []
    assert [note.reason.code for note in store.notes("east", team="batch")] == [ReasonCode.STARVED]
    assert [note.reason for note in store.notes("east", code="RECLAIM_FOR_FLOOR")] == [EVICT]


def test_small_state_is_kept_as_json(store: Store) -> None:
    assert store.kv_get("position", default=7) == 7
    store.kv_set("position", {"at_s": T0, "name": "dév"})
    store.kv_set("position", {"at_s": T0 + 1, "name": "dév"})
    assert store.kv_get("position") == {"at_s": T0 + 1, "name": "dév"}


def test_what_was_written_is_there_after_opening_again(url: str) -> None:
    with open_store(url) as store:
        record = put(store, a_decision())
    with open_store(url, durable=False) as store:
        assert store.resume("east") == record
        assert repr(store).startswith("Store(")
        assert "not-to-be-printed" not in repr(store) + str(store.info())
