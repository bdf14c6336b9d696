"""One tick of the loop: what is recorded before what, and what is not done when something fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from controller.core.actions import Decision
from controller.core.advice import Advice, HeadroomSource, PoolAdvice
from controller.core.canonical import canonical_bytes
from controller.core.errors import Problem
from controller.core.forecast import Forecasts
from controller.core.policy import Mode, Policy, Pool, PoolLimits, Team
from controller.core.reasons import ReasonCode
from controller.core.snapshot import Snapshot
from controller.loop import (
    DefaultAdvice,
    FixedPolicy,
    ForecastError,
    Loop,
    Memory,
    RecordError,
)
from controller.worlds.base import Outcome, Past, Status, WorldError
from controller.worlds.simulated import Boot, Job, PoolSetup, Provider, SimulatedWorld

POLICY = Policy("p", Mode.ENFORCE, "UTC", (Pool("h", (), PoolLimits(0, 160)),), (Team("t", ("t",)),))


@dataclass
class Book:
    """A recorder that keeps all in a list, and fails when it is told to."""

    events: list[str] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)
    fail_record: bool = False
    fail_outcomes: bool = False

    def record(
        self, snapshot: Snapshot, forecasts: Forecasts, policy: Policy, advice: Advice, decision: Decision
    ) -> str:
        if self.fail_record:
            raise RecordError("the disk is full")
        self.events.append("record")
        self.snapshots.append(snapshot)
        self.decisions.append(decision)
        return f"tick-{decision.at_s}"

    def outcomes(self, tick_id: str, at_s: int, outcomes: Sequence[Outcome]) -> None:
        if self.fail_outcomes:
            raise RecordError("the disk is full")
        self.events += [f"{tick_id}:{one.status.value}" for one in outcomes]


class World(SimulatedWorld):
    """A simulated world that writes down when it is asked to act, and can be out of reach."""

    book: Book
    away = False

    def apply(self, decision: Decision) -> list[Outcome]:
        self.book.events.append("apply")
        return super().apply(decision)

    def observe(self, past: Past) -> Snapshot:
        if self.away:
            raise WorldError("no answer")
        return super().observe(past)


@dataclass
class Broken:
    """A forecaster that fails."""

    def fit(self, now_s: int) -> None:
        raise ForecastError("singular matrix")

    def forecasts(self, now_s: int) -> Forecasts:
        raise ForecastError("no fit")


def a_world(book: Book) -> World:
    world = World("c", 0, [PoolSetup(Provider("h", Boot(600)))], [("h", Job("j", "t", 0, 5000, 1, 8000))])
    world.book = book
    return world


def test_a_tick_is_recorded_then_applied_then_its_outcomes_are_recorded() -> None:
    book = Book()
    tick = Loop(a_world(book), FixedPolicy(POLICY), recorder=book).tick()
    assert book.events == ["record", "apply", "tick-0:applied", "tick-0:applied"]
    assert [one.status for one in tick.outcomes] == [Status.APPLIED, Status.APPLIED]
    assert tick.problems == ()


def test_what_cannot_be_recorded_is_not_applied_and_is_asked_for_when_it_can() -> None:
    book = Book(fail_record=True)
    world = a_world(book)
    loop = Loop(world, FixedPolicy(POLICY), recorder=book)
    tick = loop.tick()
    assert book.events == []
    assert tick.problems == ("not recorded, so not applied: the disk is full",)
    assert len(world.pools["h"].nodes) == 0
    book.fail_record = False
    world.advance(300)
    loop.tick()
    assert world.gang("j") is not None
    assert len(world.pools["h"].nodes) == 2  # 8 GPUs and a tenth more, in nodes of 8


def test_outcomes_that_cannot_be_recorded_are_said_so() -> None:
    book = Book(fail_outcomes=True)
    tick = Loop(a_world(book), FixedPolicy(POLICY), recorder=book).tick()
    assert tick.problems == ("applied, but what became of it is not recorded: the disk is full",)


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ADVISE])
def test_outside_of_enforce_everything_is_recorded_and_nothing_applied(mode: Mode) -> None:
    book = Book()
    world = a_world(book)
    tick = Loop(world, FixedPolicy(replace(POLICY, mode=mode)), recorder=book).tick()
    assert book.events == ["record"]
    assert tick.decision is not None
    assert tick.decision.actions
    assert tick.outcomes == ()
    assert len(world.pools["h"].nodes) == 0


def test_a_failing_forecaster_leaves_the_rule_in_charge_with_a_reason() -> None:
    book = Book()
    advice = DefaultAdvice(Advice((PoolAdvice("h", HeadroomSource.FORECAST),)))
    loop = Loop(a_world(book), FixedPolicy(POLICY), recorder=book, forecaster=Broken(), advisor=advice)
    tick = loop.tick()
    assert tick.problems == (
        "the forecaster could not be fitted: singular matrix",
        "no forecast, the rule decides: no fit",
    )
    assert tick.decision is not None
    assert tick.decision.pools[0].source == "rule"
    assert ReasonCode.FORECAST_MISSING in {note.code for note in tick.decision.notes}


def test_a_world_out_of_reach_costs_the_tick_and_nothing_else() -> None:
    book = Book()
    world = a_world(book)
    world.away = True
    loop = Loop(world, FixedPolicy(POLICY), recorder=book)
    assert loop.tick().problems == ("not observed: no answer",)
    assert book.events == []
    world.away = False
    assert loop.tick().problems == ()


def test_a_refused_policy_is_reported_while_the_last_good_one_decides() -> None:
    problem = Problem("spec.teams[0].bounds.floor", "140%", "0% to 100%")
    tick = Loop(a_world(Book()), FixedPolicy(POLICY, (problem,))).tick()
    assert tick.decision is not None
    assert tick.problems == (f"policy refused, the last good one stays: {problem}",)


def test_fitting_happens_at_the_start_and_after_each_midnight() -> None:
    nights: list[int] = []

    class Noted(Broken):
        def fit(self, now_s: int) -> None:
            nights.append(now_s)

        def forecasts(self, now_s: int) -> Forecasts:
            return Forecasts()

    world = a_world(Book())
    loop = Loop(world, FixedPolicy(POLICY), forecaster=Noted())
    for at in range(0, 3 * 86_400, 7200):
        world.advance(at)
        loop.tick()
    assert nights == [0, 86_400, 172_800]


def test_the_next_observation_carries_the_demand_that_shares_let_run() -> None:
    book = Book()
    world = a_world(book)
    loop = Loop(world, FixedPolicy(POLICY), recorder=book)
    for at in (0, 300, 600):
        world.advance(at)
        loop.tick()
    assert [one.points for one in book.snapshots[2].recent] == [((0, 8000), (300, 8000))]


def test_a_memory_filled_from_the_record_equals_the_one_that_lived_through_it() -> None:
    book = Book()
    world = a_world(book)
    lived = Memory()
    loop = Loop(world, FixedPolicy(POLICY), recorder=book, memory=lived)
    for at in range(0, 3000, 300):
        world.advance(at)
        loop.tick()
    read = Memory()
    at_s = read.restore(canonical_bytes(book.snapshots[-1]), canonical_bytes(book.decisions[-1]))
    assert at_s == 2700
    assert read.past() == lived.past()


def test_memory_forgets_what_is_older_than_it_remembers() -> None:
    world = a_world(Book())
    memory = Memory(remember_s=900)
    loop = Loop(world, FixedPolicy(POLICY), memory=memory)
    for at in range(0, 3000, 300):
        world.advance(at)
        loop.tick()
    (recent,) = memory.past().recent
    assert [at for at, _ in recent.points] == [2100, 2400, 2700]


def test_a_run_ends_when_the_step_says_so_and_never_in_the_middle_of_a_tick() -> None:
    book = Book()
    world = a_world(book)
    loop = Loop(world, FixedPolicy(POLICY), recorder=book)
    left = [True, True, False]
    seen: list[int] = []

    def step() -> bool:
        world.advance(world.now_s + 300)
        return left.pop(0)

    assert loop.run(step, lambda tick: seen.append(tick.at_s)) == 3
    assert seen == [0, 300, 600]
    assert book.events.count("record") == 3


def test_a_tick_that_is_on_record_is_neither_decided_nor_asked_for_again() -> None:
    book = Book()
    world = a_world(book)
    loop = Loop(world, FixedPolicy(POLICY), recorder=book)
    loop.tick()
    again = Loop(world, FixedPolicy(POLICY), recorder=book)
    again.resume(canonical_bytes(book.snapshots[0]), canonical_bytes(book.decisions[0]))
    tick = again.tick()
    assert tick.decision is None
    assert book.events.count("record") == 1
    world.advance(300)
    assert again.tick().decision is not None
