"""The simulated world against the world protocol: absolute actions, honest outcomes, observations that are true."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from controller.core.actions import (
    Action,
    Decision,
    Evict,
    GiveNotice,
    RemoveNode,
    SetCapacity,
    SetShare,
    WithdrawNotice,
)
from controller.core.advice import Advice, PoolAdvice, RuleParameters
from controller.core.policy import Bounds, Lending, Mode, Policy, Pool, PoolLimits, Team
from controller.core.quantities import Amount
from controller.core.reasons import Reason, ReasonCode
from controller.core.snapshot import WorkloadState
from controller.loop import DefaultAdvice, FixedPolicy, Loop
from controller.worlds.base import Past, Status
from controller.worlds.simulated import Boot, Job, PoolSetup, Provider, Service, Shortage, SimulatedWorld

WHY = Reason(ReasonCode.RULE_TARGET)


def a_world(*jobs: Job, nodes: int = 2, services: tuple[Service, ...] = (), **provider: object) -> SimulatedWorld:
    setup = PoolSetup(Provider("p", Boot(600), **provider), nodes=nodes)  # type: ignore[arg-type]
    return SimulatedWorld("c", 0, [setup], [("p", job) for job in jobs], services)


def a_decision(*actions: Action) -> Decision:
    return Decision(0, "c", "policy", Mode.ENFORCE, (), (), actions, (), (), ())


def a_policy(**more: object) -> Policy:
    pool = Pool("p", (), PoolLimits(0, 160))
    return Policy("policy", Mode.ENFORCE, "UTC", (pool,), (Team("t", ("t",)), Team("u", ("u",))), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("lead_min", [1, 5, 10, 15, 30])
def test_a_job_starts_one_tick_and_one_lead_after_it_came(lead_min: int) -> None:
    """Submitted at 90 s, seen at the tick at 120 s, the node asked for then; the loop is the production loop."""
    setup = PoolSetup(Provider("p", Boot(lead_min * 60)))
    world = SimulatedWorld("c", 0, [setup], [("p", Job("j", "t", 90, 100_000, 1, 8000))])
    exact = DefaultAdvice(Advice((PoolAdvice("p", rule=RuleParameters(0, 600)),)))
    loop = Loop(world, FixedPolicy(a_policy()), advisor=exact)
    for at in range(0, 3600, 60):
        world.advance(at)
        loop.tick()
    gang = world.gang("j")
    assert gang is not None
    assert gang.first_start_s == 120 + lead_min * 60
    assert world.pools["p"].account.node_adds == 1
    world.check()


def test_what_is_applied_twice_changes_nothing_the_second_time() -> None:
    world = a_world(Job("j", "t", 0, 5000, 1, 8000))
    world.advance(10)
    world.apply(a_decision(SetCapacity("p", 5, 0, 8000, WHY)))
    assert len(world.pools["p"].nodes) == 5
    decision = a_decision(
        SetShare("p", "t", 8000, 2000, WHY), SetCapacity("p", 4, 0, 8000, WHY), RemoveNode("p", "p-00002", WHY)
    )
    first = world.apply(decision)
    after = world.dump()
    second = world.apply(decision)
    assert world.dump() == after
    assert [one.status for one in first] == [one.status for one in second] == [Status.APPLIED] * 3
    assert [one.action_id for one in first] == [one.action_id for one in second]
    assert len(world.pools["p"].nodes) == 4


def test_an_outcome_says_what_was_not_given() -> None:
    world = a_world(Job("j", "t", 0, 5000, 1, 8000), shortages=(Shortage(0, 1000, nodes=1),))
    world.advance(10)
    outcomes = world.apply(
        a_decision(
            SetCapacity("p", 5, 0, 8000, WHY),
            RemoveNode("p", "p-00001", WHY),
            Evict("p", "t", "gone", "u", 1000, WHY),
            SetShare("elsewhere", "t", 1000, 0, WHY),
        )
    )
    assert [one.status for one in outcomes] == [Status.REFUSED, Status.DEFERRED, Status.REFUSED, Status.REFUSED]
    assert outcomes[0].detail.startswith("1 of 3 nodes")
    assert "pod" in outcomes[1].detail
    assert world.observe(Past()).pools[0].obtainable_gpus == 24


def test_quotas_and_evictions_of_one_decision_take_effect_together() -> None:
    """u may have all, t nothing: t's gang goes and u's starts in its place, not t's other one."""
    world = a_world(
        Job("t1", "t", 0, 5000, 1, 8000), Job("t2", "t", 0, 5000, 1, 8000), Job("t3", "t", 1, 5000, 1, 8000)
    )
    world.advance(10)
    world.pools["p"].submit(Job("u1", "u", 10, 5000, 1, 8000))
    world.apply(
        a_decision(
            SetShare("p", "u", 8000, 0, WHY), Evict("p", "t", "t1", "u", 8000, WHY), SetShare("p", "t", 8000, 0, WHY)
        )
    )
    world.advance(11)
    running = {name for name, gang in world.pools["p"].gangs.items() if gang.running}
    assert running == {"t2", "u1"}
    assert [(past.workload, past.for_team, past.at_s) for past in world.observe(Past()).evictions] == [("t1", "u", 10)]
    world.advance(10 + 2 * 3600)
    assert world.observe(Past()).evictions == ()


def test_a_notice_is_seen_and_withdrawn() -> None:
    world = a_world(Job("j", "t", 0, 5000, 1, 8000))
    world.advance(10)
    world.apply(a_decision(GiveNotice("p", "t", "j", "u", 610, 8000, WHY)))
    (work,) = world.observe(Past()).workloads
    assert (work.evict_at_s, work.evict_for) == (610, "u")
    world.apply(a_decision(WithdrawNotice("p", "t", "j", WHY)))
    (work,) = world.observe(Past()).workloads
    assert (work.evict_at_s, work.evict_for) == (None, "")


def test_replicas_follow_their_series_and_the_highest_go_first() -> None:
    world = a_world(services=(Service("web", "p", 1000, ((0, 3), (300, 5), (600, 2))),))
    seen = {}
    for at in (10, 310, 610):
        world.advance(at)
        seen[at] = [work.name for work in world.observe(Past()).workloads]
    assert seen == {
        10: ["web-0000", "web-0001", "web-0002"],
        310: [f"web-000{i}" for i in range(5)],
        610: ["web-0000", "web-0001"],
    }


def test_a_cached_observation_equals_one_built_from_nothing() -> None:
    jobs = [Job(f"j{i:02}", "t", 40 * i, 300 + 50 * i, 1 + i % 2, 4000, 0, i % 3 == 0, 60) for i in range(20)]
    world = a_world(*jobs)
    loop = Loop(world, FixedPolicy(a_policy(lending=Lending(notice_s=0))))
    for at in range(0, 2400, 100):
        world.advance(at)
        loop.tick()
        fresh = a_world(*jobs)
        fresh.load(json.loads(json.dumps(world.dump())))
        assert fresh.observe(Past()) == world.observe(Past())


def test_same_seed_same_simulation_and_another_seed_another() -> None:
    def play(seed: int) -> list[bytes]:
        provider = Provider("p", Boot(300, 900), seed)
        jobs = [("p", Job(f"j{i:02}", "tu"[i % 2], 97 * i, 900, 1, 8000)) for i in range(20)]
        world = SimulatedWorld("c", 0, [PoolSetup(provider)], jobs)
        loop = Loop(world, FixedPolicy(a_policy()))
        states = []
        for at in range(0, 6000, 300):
            world.advance(at)
            loop.tick()
            states.append(json.dumps(world.dump(), sort_keys=True).encode())
        return states

    assert play(1) == play(1)
    assert play(1) != play(2)


def test_until_a_target_is_set_the_cluster_scales_by_itself() -> None:
    world = a_world(Job("j", "t", 0, 5000, 1, 8000), nodes=0)
    loop = Loop(world, FixedPolicy(replace(a_policy(), mode=Mode.OBSERVE)))
    for at in range(0, 1500, 300):
        world.advance(at)
        loop.tick()
    (work,) = world.observe(Past()).workloads
    assert work.state is WorkloadState.RUNNING


def test_a_floor_is_served_in_the_tick_when_there_is_no_notice() -> None:
    """t borrows all 16 GPUs while u is away; u comes with 8, its floor: at the next tick it runs."""
    bounds = Bounds(Amount(milli_gpus=8000))
    teams = tuple(Team(name, (name,), bounds=bounds, preemptible=True) for name in "tu")
    pool = Pool("p", (), PoolLimits(16, 16))
    policy = Policy("policy", Mode.ENFORCE, "UTC", (pool,), teams, Lending(notice_s=0))
    loose = [Job(f"t{i}", "t", 0, 9000, 1, 4000, 0, True) for i in range(4)]
    world = a_world(*loose, Job("u1", "u", 1000, 9000, 1, 8000, 0, True))
    loop = Loop(world, FixedPolicy(policy))
    for at in range(0, 1500, 300):
        world.advance(at)
        loop.tick()
        world.advance(at)
    gang = world.gang("u1")
    assert gang is not None
    assert gang.first_start_s == 1200
    assert world.pools["p"].account.evictions == 2
    world.check()


def test_a_share_bounds_all_namespaces_of_its_owner_together() -> None:
    """Two namespaces of one team with a share of 8: one gang of 8 runs, the other waits."""
    jobs = [Job(name, name, 0, 500, 1, 8000, owner="research") for name in ("lab-a", "lab-b")]
    world = a_world(*jobs)
    world.apply(a_decision(SetShare("p", "research", 8000, 0, WHY)))
    world.advance(10)
    assert [gang.running for gang in world.pools["p"].gangs.values()] == [True, False]
    world.advance(510)
    assert world.pools["p"].account.done == 1
    assert world.pools["p"].gangs["lab-b"].started_at_s == 500
