"""The learner in the production loop: it acts once its shadow has saved, stops within one tick, and is on record."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from learned_stand import BEGIN, DAY, ORIGIN, POLICY, Stand

from controller.core.advice import HeadroomSource
from controller.core.policy import Learning, LearningMode
from controller.learning import advise
from controller.loop import RecordError, Tick
from controller.loop.learning_book import Kept, NoBook
from controller.loop.nights import Nights, midnights, next_midnight
from controller.store import Store, kill_key, learning_key, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "s.sqlite"))


def source(tick: Tick) -> str:
    assert tick.decision is not None
    return tick.decision.pools[0].source


def test_where_the_past_says_so_the_learner_acts_at_once_and_every_tick_can_be_computed_again(store: Store) -> None:
    made = Stand(store).ticks(14)
    assert {source(tick) for tick in made} == {HeadroomSource.LEARNER}
    for tick in made:
        [row] = store.learning_tick(tick.tick_id)
        assert (row.acting, row.rung, row.ceiling) == ("hedge", "full", "full")
        model = store.model(row.model)
        assert model is not None
        inputs = advise.read_inputs(row.inputs, "inputs")
        found = advise.wanted(inputs, advise.read_model(model.body, "model"))
        assert found.nodes == row.learner_nodes
        record = store.record(tick.tick_id)
        assert record is not None
        [advice] = json.loads(record.advice)["pools"]
        assert advice["target_milli_gpus"] == found.nodes * 8000
    # A step's outcome is known once the step is over: the last tick's is not.
    assert len(store.learning_outcomes("c", "h")) == 13
    assert [event.code for event in store.learning_events("c", "h")][-3:].count("SAVES") == 1
    # Eight whole days were judged; the first taught the forecaster.
    assert {(day.day_s - ORIGIN) // DAY for day in store.learning_days("c", "h")} == set(range(1, 9))


@pytest.mark.parametrize("mode", [LearningMode.SHADOW, LearningMode.ADVISE])
def test_below_raise_only_the_rule_acts_and_what_the_learner_wanted_is_on_record(
    store: Store, mode: LearningMode
) -> None:
    made = Stand(store, replace(POLICY, learning=Learning(mode, patience_days=0))).ticks(2)
    assert {source(tick) for tick in made} == {HeadroomSource.RULE}
    assert [row.acting for row in store.learning_tick(made[-1].tick_id)] == ["rule"]


def test_off_is_the_tuned_rule_and_nothing_on_record(store: Store) -> None:
    made = Stand(store, replace(POLICY, learning=Learning(LearningMode.OFF))).ticks(2)
    assert {source(tick) for tick in made} == {HeadroomSource.RULE}
    assert store.learning_tick(made[-1].tick_id) == ()


def test_the_kill_switch_works_within_one_tick_and_after_it_the_learner_begins_in_shadow(store: Store) -> None:
    stand = Stand(store, replace(POLICY, learning=Learning(LearningMode.FULL, patience_days=3)))
    stand.ticks(1)
    eager = Stand(open_store(str(store._engine.url.database) + ".two"))
    assert source(eager.ticks(1)[0]) == HeadroomSource.LEARNER
    eager.store.kv_set(kill_key("c"), True)
    [tick] = eager.ticks(1)
    assert source(tick) == HeadroomSource.RULE
    assert eager.store.learning_events("c", "h")[0].code == "KILL_FLAG"
    eager.store.kv_set(kill_key("c"), False)
    eager.ticks(1)
    assert eager.store.kv_get(learning_key("c", "h"))["ladder"]["earned"] in ("shadow", "full")


def test_a_restart_goes_on_with_the_rung_it_had(store: Store) -> None:
    Stand(store).ticks(3)
    kept = store.kv_get(learning_key("c", "h"))
    again = Stand(store)
    again.world.advance(BEGIN + 1200)
    again.loop.tick()
    assert again.advisor._pools["h"].ladder.earned is LearningMode.FULL
    assert again.advisor._pools["h"].fed_s == kept["fed_s"]


def test_a_day_without_the_peak_that_was_warmed_for_hands_back_to_the_rule_within_the_hour(store: Store) -> None:
    """Nobody works on the tenth day: what is up for nine o'clock idles, and the account of the stay says so."""
    made = Stand(store).ticks(11 * 12)
    [event] = [one for one in store.learning_events("c", "h") if one.code == "LOSS"]
    assert (event.kind, event.acting, event.rung) == ("demotion", "rule", "shadow")
    assert dict(event.facts)["loss_used_permille"] > 1000
    before = [tick for tick in made if tick.at_s < event.at_s]
    assert {source(tick) for tick in before} == {HeadroomSource.LEARNER}
    assert {source(tick) for tick in made[len(before) :]} == {HeadroomSource.RULE}
    # By the store's own account of these ticks: too much at the end of the hour that ended now, not one hour before.
    outcomes = store.learning_outcomes("c", "h")
    allowed = 0.02 * rule_day(store)
    for until_s, too_much in ((event.at_s, True), (event.at_s - 3600, False)):
        lost = (
            sum(one.cost_milli - one.rule_cost_milli for one in outcomes if one.at_s < until_s - until_s % 3600) / 1000
        )
        assert (lost > allowed) is too_much


def rule_day(store: Store) -> float:
    """What the rule cost on the mean of the last week's days, GPU-hours."""
    days = [day for day in store.learning_days("c", "h") if day.name == "rule"][-7:]
    return sum(day.cost_milli for day in days) / 1000 / len(days)


def test_what_learning_cannot_record_is_not_applied(store: Store) -> None:
    class Full(NoBook):
        def keep(self, kept: Kept) -> None:
            raise RecordError("disk full")

    stand = Stand(store)
    stand.advisor._book = Full()
    applied: list[object] = []
    apply: Callable[..., object] = lambda decision: applied.append(decision) or ()  # type: ignore[func-returns-value]  # noqa: E731
    stand.world.apply = apply  # type: ignore[method-assign, assignment]
    [tick] = stand.ticks(1)
    assert tick.problems[-1] == "not recorded, so not applied: disk full"
    assert applied == []


def test_nights_begin_at_local_midnight_also_when_clocks_change() -> None:
    """New York 2026: clocks go forward on 8 March (23 hours), back on 1 November (25 hours)."""
    spring, autumn = 1_772_946_000, 1_793_505_600  # 2026-03-08T05:00Z and 2026-11-01T04:00Z, both local midnight
    assert next_midnight(spring, "America/New_York") - spring == 23 * 3600
    assert next_midnight(autumn, "America/New_York") - autumn == 25 * 3600
    found = midnights(spring - 1, autumn + DAY + 3600, "America/New_York")
    assert (found[0], found[1] - found[0]) == (spring, 23 * 3600)
    assert found[-1] - found[-2] == 25 * 3600
    nights = Nights()
    assert [nights.due(at, "UTC") for at in (10, 20, DAY - 1, DAY, DAY + 1, 3 * DAY + 5)] == [
        True, False, False, True, False, True,
    ]  # fmt: skip
