"""Laws that hold for every decision, on random small clusters."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from core_builders import NOW_S, a_node, a_policy, a_pool
from core_worlds import apply, forecasts, policies, snapshots
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.core.actions import Decision, Evict, GiveNotice, RemoveNode, SetCapacity, SetShare
from controller.core.advice import Advice, HeadroomSource, PoolAdvice
from controller.core.canonical import canonical_bytes
from controller.core.decide import decide
from controller.core.explain import explain
from controller.core.forecast import Forecasts
from controller.core.policy import Policy
from controller.core.snapshot import Snapshot

LAWS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
AT_THE_FORECAST = Advice(tuple(PoolAdvice(pool, HeadroomSource.FORECAST) for pool in ("gpu", "other")))
HERE = Path(__file__).parent


@st.composite
def ticks(draw: st.DrawFn) -> tuple[Snapshot, Forecasts, Policy, Advice]:
    policy = draw(policies())
    advice = draw(st.sampled_from([Advice(), AT_THE_FORECAST]))
    return draw(snapshots(policy)), draw(forecasts()), policy, advice


def _decide(tick: tuple[Snapshot, Forecasts, Policy, Advice]) -> Decision:
    snapshot, foreseen, policy, advice = tick
    return decide(snapshot, foreseen, policy, NOW_S, advice)


@LAWS
@given(ticks())
def test_shares_stay_inside_ceilings_and_sum_to_what_can_be_had(
    tick: tuple[Snapshot, Forecasts, Policy, Advice],
) -> None:
    decision = _decide(tick)
    for pool in decision.pools:
        shares = [team for team in decision.teams if team.pool == pool.pool]
        assert sum(team.share for team in shares) <= pool.obtainable_milli_gpus
        assert all(0 <= team.share <= team.ceiling for team in shares)
        if not pool.unowned_milli_gpus:  # else strangers may hold what a floor would need
            assert all(team.share >= min(team.floor, -(-team.demand // 1000) * 1000) for team in shares)
    standings = {(team.pool, team.team): team for team in decision.teams}
    for action in decision.actions:
        if isinstance(action, SetShare):
            assert action.milli_gpus <= standings[action.pool, action.team].ceiling
            assert 0 <= action.preemptible_milli_gpus <= action.milli_gpus


@LAWS
@given(ticks())
def test_no_action_asks_for_more_than_maximum_budget_and_what_can_be_had(
    tick: tuple[Snapshot, Forecasts, Policy, Advice],
) -> None:
    snapshot, _, policy, _ = tick
    for action in _decide(tick).actions:
        if not isinstance(action, SetCapacity):
            continue
        pool = policy.pool(action.pool)
        seen = next(one for one in snapshot.pools if one.name == action.pool)
        assert pool is not None
        assert action.nodes * seen.gpus_per_node <= pool.limits.max_gpus
        if seen.obtainable_gpus is not None:
            assert action.nodes * seen.gpus_per_node <= seen.obtainable_gpus
        if pool.limits.max_micro_usd_per_hour is not None:
            assert action.nodes * seen.micro_usd_per_node_hour <= pool.limits.max_micro_usd_per_hour


@LAWS
@given(ticks())
def test_only_empty_nodes_go_and_no_more_than_a_step(tick: tuple[Snapshot, Forecasts, Policy, Advice]) -> None:
    snapshot, _, policy, _ = tick
    busy = {name for work in snapshot.workloads for name in work.nodes}
    gone = [action for action in _decide(tick).actions if isinstance(action, RemoveNode)]
    nodes = {node.name: node for node in snapshot.nodes}
    assert not busy & {action.node for action in gone}
    for pool in policy.pools:
        serving = [a for a in gone if a.pool == pool.name and nodes[a.node].allocatable_milli_gpus]
        assert pool.limits.max_step_nodes is None or len(serving) <= pool.limits.max_step_nodes
        assert all(NOW_S - (nodes[a.node].ready_at_s or 0) >= pool.limits.min_node_life_s for a in serving)


@LAWS
@given(ticks())
def test_a_recall_takes_no_protected_gang_and_leaves_the_floor_whole(
    tick: tuple[Snapshot, Forecasts, Policy, Advice],
) -> None:
    snapshot = tick[0]
    decision = _decide(tick)
    works = {work.name: work for work in snapshot.workloads}
    floors = {(team.pool, team.team): team for team in decision.teams}
    left = {key: team.held for key, team in floors.items()}
    named: list[str] = []
    for action in decision.actions:
        if isinstance(action, (Evict, GiveNotice)):
            work = works[action.workload]
            assert work.running
            assert work.disruptions_allowed != 0
            named.append(action.workload)
        if isinstance(action, Evict):
            key = (action.pool, action.team)
            if action.milli_gpus <= floors[key].floor and action.for_team != action.team:
                assert left[key] - action.milli_gpus >= floors[key].floor
            left[key] -= action.milli_gpus
    assert len(named) == len(set(named))


@LAWS
@given(ticks())
def test_deciding_again_after_all_was_done_does_nothing(tick: tuple[Snapshot, Forecasts, Policy, Advice]) -> None:
    snapshot, foreseen, policy, advice = tick
    settled = snapshot
    for _ in range(40):
        decision = decide(settled, foreseen, policy, NOW_S, advice)
        if not decision.actions:
            return
        # Evictions change demand, so that shares may move once more, and a step limit takes its time; it comes to rest.
        settled = apply(settled, decision)
    raise AssertionError(f"still acting: {decision.actions}")


@LAWS
@given(ticks())
def test_a_decision_without_evictions_is_done_with_when_it_was_carried_out(
    tick: tuple[Snapshot, Forecasts, Policy, Advice],
) -> None:
    snapshot, foreseen, policy, advice = tick
    decision = _decide(tick)
    moved = [a for a in decision.actions if isinstance(a, (Evict, RemoveNode))]
    steps = any(pool.limits.max_step_nodes for pool in policy.pools)
    if moved or steps:
        return  # evictions change demand, removals what can be had, steps leave a rest: the law above covers them
    again = decide(apply(snapshot, decision), foreseen, policy, NOW_S, advice)
    assert again.actions == ()


@LAWS
@given(ticks(), st.integers(0, 2**32))
def test_the_order_of_the_input_does_not_matter(tick: tuple[Snapshot, Forecasts, Policy, Advice], seed: int) -> None:
    snapshot, foreseen, policy, advice = tick
    shuffled = random.Random(seed)

    def mixed(items: tuple[object, ...]) -> tuple[object, ...]:
        out = list(items)
        shuffled.shuffle(out)
        return tuple(out)

    other = replace(
        snapshot,
        pools=mixed(snapshot.pools),
        nodes=mixed(snapshot.nodes),
        workloads=mixed(snapshot.workloads),
        shares=mixed(snapshot.shares),
    )
    same_policy = replace(policy, pools=mixed(policy.pools), teams=mixed(policy.teams))
    first = canonical_bytes(_decide(tick))
    second = decide(other, Forecasts(mixed(foreseen.series)), same_policy, NOW_S, advice)
    assert canonical_bytes(second) == first


@LAWS
@given(ticks())
def test_every_decision_can_be_told_in_sentences(tick: tuple[Snapshot, Forecasts, Policy, Advice]) -> None:
    lines = explain(_decide(tick))
    assert lines
    assert all(line.endswith(".") and "{" not in line for line in lines)


def test_two_processes_with_different_hash_seeds_give_the_same_bytes() -> None:
    outputs = set()
    for seed in ("0", "1", "4242"):
        done = subprocess.run(
            [sys.executable, str(HERE / "core_one_decision.py")],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(HERE.parents[1])},
            capture_output=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    actions = json.loads(outputs.pop())["actions"]
    assert {action["kind"] for action in actions} >= {"set_capacity", "set_share", "evict"}


def test_an_empty_snapshot_gives_an_empty_decision() -> None:
    decision = decide(Snapshot("c1", NOW_S, ()), Forecasts(), a_policy(), NOW_S)
    assert (decision.pools, decision.teams, decision.actions, decision.violations) == ((), (), (), ())


def test_a_pool_that_the_policy_does_not_know_is_left_alone() -> None:
    snapshot = Snapshot("c1", NOW_S, (a_pool("strange"),), (a_node("n1", pool="strange", idle="5h"),))
    decision = decide(snapshot, Forecasts(), a_policy(), NOW_S)
    assert decision.actions == ()
    assert decision.pools == ()
