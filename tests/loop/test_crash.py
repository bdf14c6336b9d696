"""A loop that is killed between recording and applying, on the real store, asks for nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from controller.core.actions import Decision
from controller.core.advice import Advice
from controller.core.forecast import Forecasts
from controller.core.policy import Lending, Mode, Policy, Pool, PoolLimits, Team
from controller.core.snapshot import Snapshot
from controller.loop import FixedPolicy, Loop
from controller.loop.recording import StoreRecorder
from controller.store import Store, open_store
from controller.worlds.base import Outcome
from controller.worlds.simulated import Boot, Job, PoolSetup, Provider, SimulatedWorld

POLICY = Policy(
    "p",
    Mode.ENFORCE,
    "UTC",
    (Pool("h", (), PoolLimits(0, 64)),),
    (Team("t", ("t",), preemptible=True), Team("u", ("u",), priority=9)),
    Lending(notice_s=0),
)
JOBS = [("h", Job(f"j{i:02}", "tu"[i % 2], 150 * i, 1200 + 100 * i, 1, 4000, 0, not i % 2)) for i in range(24)]
TICKS = range(300, 9000, 300)


class KilledError(Exception):
    """The process is gone."""


class Mortal(SimulatedWorld):
    """A world whose loop dies before, or in the middle of, one application."""

    die_at = -1
    after = 0

    def apply(self, decision: Decision) -> list[Outcome]:
        if decision.at_s == self.die_at:
            part = Decision(*(getattr(decision, name) for name in Decision.__slots__))
            object.__setattr__(part, "actions", decision.actions[: self.after])
            super().apply(part)
            raise KilledError
        return super().apply(decision)


def a_world() -> Mortal:
    return Mortal("c", 0, [PoolSetup(Provider("h", Boot(600)))], JOBS)


def a_loop(world: SimulatedWorld, store: Store) -> Loop:
    return Loop(world, FixedPolicy(POLICY), recorder=StoreRecorder(store, lambda: 0))


def run(loop: Loop, world: SimulatedWorld) -> None:
    for at in TICKS:
        world.advance(at)
        loop.tick()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(f"sqlite:///{tmp_path / 's.sqlite'}", durable=False)


@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("die_at", [300, 1500, 3900])
def test_killed_between_record_and_apply_the_next_process_asks_for_nothing_twice(
    store: Store, die_at: int, after: int
) -> None:
    world = a_world()
    world.die_at, world.after = die_at, after
    loop = a_loop(world, store)
    with pytest.raises(KilledError):
        run(loop, world)
    nodes_then = len(world.pools["h"].nodes)

    last = store.resume("c")
    assert last is not None
    assert last.at_s == die_at
    world.die_at = -1
    loop = a_loop(world, store)
    loop.resume(last.snapshot, last.decision)
    assert loop.tick().decision is None  # the moment is on record: neither decided nor asked for again
    assert len(world.pools["h"].nodes) == nodes_then
    for at in range(die_at + 300, TICKS.stop, 300):
        world.advance(at)
        tick = loop.tick()
        assert tick.decision is not None
        pool = tick.decision.pools[0]
        assert pool.nodes_ready + pool.nodes_booting <= 8
        # What is asked for counts as there at once, so nodes never exceed the target that was recorded.
        assert len(world.pools["h"].nodes) <= max(pool.target_nodes, pool.nodes_ready + pool.nodes_booting)
    world.check()
    moments = [header.at_s for header in store.ticks("c", limit=1000)]
    assert len(moments) == len(set(moments)) == len(TICKS)
    assert world.pools["h"].account.evictions <= len(store.decisions("c", kind="evict", limit=1000))


def test_without_a_crash_and_with_one_the_same_work_gets_done(store: Store) -> None:
    ends = []
    for die_at in (-1, 1500):
        world = a_world()
        world.die_at = die_at
        loop = Loop(world, FixedPolicy(POLICY))
        for at in range(300, 30_000, 300):
            world.advance(at)
            try:
                loop.tick()
            except KilledError:
                world.die_at = -1
                loop = Loop(world, FixedPolicy(POLICY), memory=loop.memory)
        ends.append(world.pools["h"].account.done)
        world.check()
    assert ends == [len(JOBS), len(JOBS)]


def test_a_store_that_refuses_keeps_the_loop_from_acting(store: Store, tmp_path: Path) -> None:
    world = a_world()
    loop = a_loop(world, store)
    world.advance(300)
    loop.tick()
    store.close()
    (tmp_path / "s.sqlite").write_bytes(b"this is no database" * 400)
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"s.sqlite{suffix}").unlink(missing_ok=True)
    nodes, target = len(world.pools["h"].nodes), world.observe(loop.memory.past()).pools[0].target_nodes
    world.advance(3900)
    tick = loop.tick()
    assert tick.outcomes == ()
    assert tick.problems
    assert tick.problems[-1].startswith("not recorded, so not applied: store")
    seen = world.observe(loop.memory.past())
    assert (len(seen.nodes), seen.pools[0].target_nodes) == (nodes, target)


def test_a_recorder_names_what_the_store_said(store: Store, tmp_path: Path) -> None:
    class Refusing(StoreRecorder):
        def outcomes(self, tick_id: str, at_s: int, outcomes: Sequence[Outcome]) -> None:
            super().outcomes("0" * 16, at_s, outcomes)

    world = a_world()
    world.advance(300)
    tick = Loop(world, FixedPolicy(POLICY), recorder=Refusing(store, lambda: 0)).tick()
    assert "has no tick 0000000000000000" in tick.problems[-1]


def test_the_same_tick_recorded_again_is_one_row(store: Store) -> None:
    world = a_world()
    recorder = StoreRecorder(store, lambda: 5)
    kept: list[tuple[Snapshot, Forecasts, Policy, Advice, Decision]] = []

    class Twice(StoreRecorder):
        def record(
            self, snapshot: Snapshot, forecasts: Forecasts, policy: Policy, advice: Advice, decision: Decision
        ) -> str:
            kept.append((snapshot, forecasts, policy, advice, decision))
            first = super().record(snapshot, forecasts, policy, advice, decision)
            assert super().record(snapshot, forecasts, policy, advice, decision) == first
            return first

    Loop(world, FixedPolicy(POLICY), recorder=Twice(store, lambda: 5)).tick()
    assert recorder.record(*kept[0]) == store.ticks("c")[0].id
    assert len(store.ticks("c")) == 1
