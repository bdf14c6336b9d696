"""Recalls over time: decide, carry out, let the scheduler bind, decide again, minute by minute; and their laws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from core_builders import NOW_S, instant, read
from core_worlds import apply, forecasts, policies, snapshots
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.core.actions import Decision, Evict, GiveNotice
from controller.core.decide import decide
from controller.core.forecast import Forecasts
from controller.core.policy import Policy
from controller.core.reasons import ReasonCode
from controller.core.snapshot import Snapshot, Workload, WorkloadState

LAWS = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MINUTE_S = 60


def bind(snapshot: Snapshot, now_s: int) -> Snapshot:
    """Start what waits wherever its team's quota and a node let it, by name: the worst order for owner ``two``."""
    quota = {share.team: share.milli_gpus for share in snapshot.shares}
    held = dict.fromkeys(quota, 0)
    room = {node.name: node.allocatable_milli_gpus for node in snapshot.nodes}
    for work in snapshot.workloads:
        if work.running:
            held[work.namespace] += work.milli_gpus
            for name in work.nodes:
                room[name] -= work.milli_gpus_per_pod
    done: list[Workload] = []
    for work in snapshot.workloads:
        node = next((name for name, free in room.items() if free >= work.milli_gpus), None)
        if work.running or node is None or held[work.namespace] + work.milli_gpus > quota[work.namespace]:
            done.append(work)
            continue
        held[work.namespace] += work.milli_gpus
        room[node] -= work.milli_gpus
        done.append(replace(work, state=WorkloadState.RUNNING, started_at_s=now_s, nodes=(node,)))
    return replace(snapshot, workloads=tuple(done))


def tick(snapshot: Snapshot, policy: Policy, now_s: int) -> tuple[Snapshot, Decision]:
    """One minute of a cluster: decide, carry out, bind."""
    decision = decide(replace(snapshot, taken_at_s=now_s), Forecasts(), policy, now_s)
    return bind(apply(snapshot, decision), now_s), decision


def evicted(decision: Decision) -> list[str]:
    return [action.workload for action in decision.actions if isinstance(action, Evict)]


def noticed(decision: Decision) -> list[str]:
    return [action.workload for action in decision.actions if isinstance(action, GiveNotice)]


def held_by(snapshot: Snapshot, team: str) -> int:
    return sum(work.milli_gpus for work in snapshot.workloads if work.namespace == team and work.running)


def two_queues() -> dict[str, Any]:
    """CASES.md S1: capacity 8; one has floor 3 and runs a pod of 4; two has floor 5, runs 1 and 4 of its pods wait."""
    return {
        "policy": {
            "pools": {"gpu": {"max": 8, "min": 8}},
            "teams": {"one": {"floor": 3}, "two": {"floor": 5, "priority": 10}},
            "lending": {"notice": "0s"},
        },
        "nodes": 1,
        "work": [
            {"team": "one", "gpus": 4, "runs": "2h"},
            {"team": "two", "gpus": 1, "runs": "1h"},
            *({"team": "two", "gpus": 1, "waits": "5m"} for _ in range(4)),
        ],
    }


def test_two_queues_come_to_rest_after_one_eviction() -> None:
    """8 = 3 + 5: three free GPUs serve three of two's pods at once, so the gang of 4 goes for the fourth, once."""
    scene = read(two_queues(), NOW_S)
    snapshot, out = scene.snapshot, []
    for minute in range(180):
        snapshot, decision = tick(snapshot, scene.policy, NOW_S + minute * MINUTE_S)
        out += evicted(decision)
    assert out == ["one-1"]
    assert held_by(snapshot, "two") == 5000
    assert held_by(snapshot, "one") == 0
    why = [note for note in decision.notes if note.code is ReasonCode.GANG_ABOVE_SHARE]
    assert [(note.subject, note.fact("share_milli_gpus")) for note in why] == [("one-1", 3000)]


def test_a_freed_gang_is_not_let_in_again_while_the_owners_pods_are_away_for_two_minutes() -> None:
    """The pods of two are made anew after the eviction: for two minutes nobody but one-1 wants the freed GPUs."""
    scene = read(two_queues(), NOW_S)
    snapshot, out = apply(scene.snapshot, decide(scene.snapshot, Forecasts(), scene.policy, NOW_S)), []
    away = tuple(work for work in snapshot.workloads if work.namespace == "two" and not work.running)
    snapshot = replace(snapshot, workloads=tuple(work for work in snapshot.workloads if work not in away))
    for minute in range(1, 180):
        if minute == 3:
            snapshot = replace(snapshot, workloads=(*snapshot.workloads, *away))
        snapshot, decision = tick(snapshot, scene.policy, NOW_S + minute * MINUTE_S)
        assert held_by(snapshot, "one") == 0
        out += evicted(decision)
    assert out == []
    assert held_by(snapshot, "two") == 5000


def test_freed_gpus_go_back_after_five_minutes_when_the_owner_stays_away() -> None:
    scene = read(two_queues(), NOW_S)
    snapshot = apply(scene.snapshot, decide(scene.snapshot, Forecasts(), scene.policy, NOW_S))
    stays = tuple(work for work in snapshot.workloads if work.namespace == "one" or work.running)
    snapshot, began = replace(snapshot, workloads=stays), None
    for minute in range(1, 30):
        snapshot, _ = tick(snapshot, scene.policy, NOW_S + minute * MINUTE_S)
        if began is None and held_by(snapshot, "one"):
            began = minute
    assert began == 5


def test_a_ceiling_that_falls_at_six_recalls_twenty_with_notice_and_tolerates_what_a_budget_protects() -> None:
    """CASES.md S2: the ceiling goes from 60 to 40 while 60 are held; one preemptible gang's budget opens at 18:30."""
    six = instant("2026-06-01T16:00:00Z")
    night = {"name": "nights", "days": "daily", "from": "18:00", "to": "08:00", "bounds": {"ceiling": 40}}
    given_ = {
        "policy": {
            "timezone": "Europe/Berlin",
            "pools": {"gpu": {"max": 100, "min": 60, "gpusPerNode": 10}},
            "teams": {"a": {"ceiling": 60, "schedule": [night]}},
            "lending": {"notice": "10m"},
        },
        "nodes": [{"name": f"n{i}", "gpus": 10} for i in range(1, 7)],
        "work": [
            {"team": "a", "gpus": 10, "pods": 4, "runs": "5h"},
            {"team": "a", "gpus": 10, "runs": "5h", "preemptible": True},
            {"team": "a", "gpus": 10, "runs": "5h", "preemptible": True, "disruptions": 0},
        ],
        "shares": {"a": 60},
    }
    scene = read(given_, six)
    snapshot, log = scene.snapshot, []
    for minute in range(-1, 60):
        if minute == 30:
            opened = tuple(replace(work, disruptions_allowed=None) for work in snapshot.workloads)
            snapshot = replace(snapshot, workloads=opened)
        snapshot, decision = tick(snapshot, scene.policy, six + minute * MINUTE_S)
        log += [(minute, "notice", name) for name in noticed(decision)]
        log += [(minute, "evict", name) for name in evicted(decision)]
        over = [note.fact("overhang_milli_gpus") for note in decision.notes if note.code is _TOLERATED]
        assert over == ([] if minute < 0 or minute > 40 else [20_000] if minute <= 10 else [10_000]), minute
    assert log == [(0, "notice", "a-2"), (10, "evict", "a-2"), (30, "notice", "a-3"), (40, "evict", "a-3")]
    assert held_by(snapshot, "a") == 40_000


_TOLERATED = ReasonCode.OVERHANG_TOLERATED


@st.composite
def crowded(draw: st.DrawFn) -> tuple[Snapshot, Forecasts, Policy]:
    """A pool of 16 that two guests fill with gangs while an owner with a floor, or due its third, waits for some."""
    notice = draw(st.sampled_from(["0s", "10m"]))
    teams = {
        "owner": {"floor": draw(st.integers(0, 8)), "priority": 10, "weight": draw(st.integers(1, 3))},
        "guest": {"floor": draw(st.integers(0, 4)), "preemptible": draw(st.booleans())},
        "other": {"floor": draw(st.integers(0, 4)), "priority": draw(st.integers(0, 10))},
    }
    work: list[dict[str, Any]] = []
    room = 16
    while room > 0:
        pods = min(draw(st.integers(1, 12)), room)
        room -= pods
        runs = f"{draw(st.integers(1, 300))}m"
        work.append({"team": draw(st.sampled_from(["guest", "other", "owner"])), "gpus": 1, "pods": pods, "runs": runs})
        if draw(st.integers(0, 3)) == 0:
            work[-1]["disruptions"] = 0
    for _ in range(draw(st.integers(1, 3))):
        waits = f"{draw(st.integers(1, 40))}m"
        work.append({"team": "owner", "gpus": 1, "pods": draw(st.integers(1, 6)), "waits": waits})
    policy = {"teams": teams, "lending": {"notice": notice}}
    scene = read({"policy": policy, "nodes": 2, "work": work}, NOW_S)
    return scene.snapshot, Forecasts(), scene.policy


@st.composite
def anywhere(draw: st.DrawFn) -> tuple[Snapshot, Forecasts, Policy]:
    policy = draw(policies())
    return draw(snapshots(policy)), draw(forecasts()), policy


def ticks() -> st.SearchStrategy[tuple[Snapshot, Forecasts, Policy]]:
    return crowded() | anywhere()


@LAWS
@given(ticks())
def test_no_more_than_half_as_much_again_as_is_asked_is_recalled_save_one_gang(
    case: tuple[Snapshot, Forecasts, Policy],
) -> None:
    """One gang alone may be bigger, and only for a floor or for who starves."""
    recalled: dict[tuple[str, str, ReasonCode], list[Evict | GiveNotice]] = {}
    decision = decide(*case, NOW_S)
    standing = {(team.pool, team.team): team for team in decision.teams}
    for action in decision.actions:
        if isinstance(action, (Evict, GiveNotice)):
            recalled.setdefault((action.pool, action.for_team, action.reason.code), []).append(action)
    for (pool, team, code), actions in recalled.items():
        asked = max(int(action.reason.fact("asked_milli_gpus") or 0) for action in actions)
        if sum(action.milli_gpus for action in actions) * 2 > asked * 3:
            owner = standing[pool, team]
            assert len(actions) == 1
            assert owner.held < owner.floor or owner.starved
            assert code in (ReasonCode.RECLAIM_FOR_FLOOR, ReasonCode.RECLAIM_FOR_STARVED)


@LAWS
@given(ticks())
def test_only_running_work_that_does_not_fit_inside_its_teams_share_is_recalled(
    case: tuple[Snapshot, Forecasts, Policy],
) -> None:
    """A gang that fits beside what stays was taken from what its team is due, its floor included."""
    snapshot, foreseen, policy = case
    decision = decide(snapshot, foreseen, policy, NOW_S)
    shares = {(team.pool, team.team): team.share for team in decision.teams}
    works = {work.name: work for work in snapshot.workloads}
    recalled = [action for action in decision.actions if isinstance(action, (Evict, GiveNotice))]
    gone = {action.workload for action in recalled}
    for action in recalled:
        assert works[action.workload].running
        stays = sum(
            work.milli_gpus
            for work in snapshot.workloads
            if work.running and (work.pool, work.namespace) == (action.pool, action.team) and work.name not in gone
        )
        assert stays + action.milli_gpus > shares[action.pool, action.team]
