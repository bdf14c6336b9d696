"""The ladder as a rule book: how each cause begins, holds and ends, how climbing takes time, and what never happens.

Waits and limits are written out here, not taken from the code, since they are what the reference promises.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.core.canonical import canonical_bytes
from controller.core.errors import InputError
from controller.core.policy import LearningMode
from controller.learning.demotions import CAUSES, Code
from controller.learning.gate import RULE, Verdict, Why
from controller.learning.ladder import RUNGS, Event, Hold, LadderState, step
from controller.learning.monitors import Monitors

OFF, SHADOW, ADVISE, RAISE_ONLY, FULL = LearningMode
HOUR_S, DAY_S, TICK_S = 3600, 86_400, 300
DAY0_S = 20_000 * DAY_S
NOON_S = DAY0_S + 12 * HOUR_S
GOOD = Monitors(inputs_age_s=60, coverage=0.9, cost_cusum=0.0, clipped_share=0.0, infidelity=0.0)


def on(midnight_s: int, acting: str = "hedge") -> Verdict:
    return Verdict(midnight_s, acting, 5.0, 1.0, 7, Why.SAVES, acting, ())


def off(midnight_s: int) -> Verdict:
    return Verdict(midnight_s, RULE, 0.0, 0.0, 7, Why.NO_SAVING, "hedge", ())


def at(day: float, hour: float = 0) -> int:
    """A moment, in days and hours from the midnight before the first noon."""
    return round(DAY0_S + day * DAY_S + hour * HOUR_S)


ON_TOP = LadderState(
    rung=FULL, earned=FULL, chosen="hedge", good_days=2, since_s=at(-5), judged_s=DAY0_S, seen_s=NOON_S - TICK_S
)
"""Noon of a day on which all is well and the learner sets the target, both ways."""


@dataclass
class Pool:
    """A pool that ticks every five minutes; each tick hands in the newest midnight's verdict."""

    state: LadderState = field(default_factory=LadderState)
    now_s: int = NOON_S
    seen: Monitors = GOOD
    ceiling: LearningMode = FULL
    gate: Callable[[int], Verdict | None] = on
    kill: bool = False
    patience: int | None = None
    events: list[Event] = field(default_factory=list)
    rungs: dict[int, LearningMode] = field(default_factory=dict)

    def tick(self, now_s: int | None = None, **changed: Any) -> Pool:
        """One step now, or at another moment; what is changed stays changed."""
        for name, value in changed.items():
            setattr(self, name, value)
        self.now_s = self.now_s if now_s is None else now_s
        seen = replace(self.seen, verdict=self.gate(self.now_s - self.now_s % DAY_S))
        kept = LadderState.from_plain(json.loads(json.dumps(self.state.to_plain())))
        assert kept == self.state
        self.state, told = step(kept, seen, self.ceiling, self.now_s, kill=self.kill, patience_days=self.patience)
        self.events += told
        self.rungs[self.now_s] = self.state.rung
        return self

    def until(self, end_s: int, **changed: Any) -> Pool:
        """Every tick after this moment up to and with ``end_s``."""
        for now_s in range(self.now_s + TICK_S, end_s + 1, TICK_S):
            self.tick(now_s, **changed)
        return self

    def climbs(self) -> list[tuple[float, LearningMode]]:
        """When the rung in force changed, in days, and to what."""
        out: list[tuple[float, LearningMode]] = []
        for now_s, rung in self.rungs.items():
            if not out or out[-1][1] is not rung:
                out.append(((now_s - DAY0_S) / DAY_S, rung))
        return out

    def told(self) -> list[tuple[str, str]]:
        """Kinds and codes of what happened so far, but for the gate's verdicts; forgets them."""
        told = [(event.kind, event.code) for event in self.events if event.code not in tuple(Why)]
        self.events.clear()
        return told


class TestClimbing:
    def test_from_a_first_noon_takes_one_good_day_one_more_and_three(self) -> None:
        """The half day after noon is no good day: the first midnight does not count, the second does."""
        pool = Pool().tick().until(at(8))
        assert pool.climbs() == [(0.5, SHADOW), (2, ADVISE), (3, RAISE_ONLY), (6, FULL)]
        assert pool.told() == [("recovery", "SWITCHED_ON"), *[("promotion", "GOOD_DAYS")] * 3]

    def test_the_rule_acts_below_raise_only_and_the_gates_choice_from_there_on(self) -> None:
        pool = Pool().tick().until(at(3) - TICK_S)
        assert (pool.state.rung, pool.state.chosen, pool.state.acting) == (ADVISE, "hedge", RULE)
        assert pool.until(at(3)).state.acting == "hedge"
        assert pool.until(at(6)).state.acting == "hedge"

    @pytest.mark.parametrize(
        ("patience", "climbs"),
        [
            (1, [(0.5, SHADOW), (2, ADVISE), (3, RAISE_ONLY), (4, FULL)]),
            (2, [(0.5, SHADOW), (3, ADVISE), (5, RAISE_ONLY), (7, FULL)]),
            (3, [(0.5, SHADOW), (4, ADVISE), (7, RAISE_ONLY), (10, FULL)]),
        ],
    )
    def test_takes_as_many_good_days_on_each_rung_as_the_policy_says(
        self, patience: int, climbs: list[tuple[float, LearningMode]]
    ) -> None:
        assert Pool(patience=patience).tick().until(at(11)).climbs() == climbs

    def test_begins_its_count_anew_after_a_night_in_which_the_gate_said_no(self) -> None:
        """On raise-only from day 3; the nights of days 4 and 5 are good, 6 is not; 7, 8 and 9 are three in a row."""
        pool = Pool(gate=lambda midnight_s: off(midnight_s) if midnight_s == at(6) else on(midnight_s))
        pool.tick().until(at(6, 12))
        assert (pool.state.rung, pool.state.acting, pool.state.good_days) == (RAISE_ONLY, RULE, 0)
        assert pool.until(at(10)).climbs()[2:] == [(3, RAISE_ONLY), (9, FULL)]

    def test_needs_whole_days_of_which_a_clock_change_may_take_an_hour(self) -> None:
        state = LadderState(rung=SHADOW, earned=SHADOW, since_s=at(0, 2), seen_s=at(1) - TICK_S)
        assert step(state, replace(GOOD, verdict=on(at(1))), FULL, at(1))[0].rung is ADVISE
        late = replace(state, since_s=at(0, 2) + 1)
        assert step(late, replace(GOOD, verdict=on(at(1))), FULL, at(1))[0].rung is SHADOW

    def test_does_not_count_a_day_of_which_more_than_two_hours_went_unseen(self) -> None:
        for gap_h, climbed in ((2, ADVISE), (2.25, SHADOW)):
            pool = Pool().tick().until(at(1, 6)).tick(at(1, 6 + gap_h)).until(at(2))
            assert pool.state.rung is climbed
            assert pool.until(at(3)).state.rung is RUNGS[RUNGS.index(climbed) + 1]

    def test_begins_its_count_anew_after_trouble_that_was_over_soon_after_midnight(self) -> None:
        """Stale for half an hour from five past midnight of day 5, held an hour more: day 5 is whole, but the first."""
        pool = Pool().tick().until(at(5)).until(at(5, 0.5), seen=replace(GOOD, inputs_age_s=None))
        assert pool.until(at(9), seen=GOOD).climbs()[-1] == (8, FULL)

    def test_tells_from_where_and_after_how_many_days(self) -> None:
        told = [event for event in Pool().tick().until(at(6)).events if event.kind == "promotion"]
        assert [(dict(event.facts), event.sentence) for event in told] == [
            ({"from": "shadow", "good_days": 1}, "Up to advise: a good day."),
            ({"from": "advise", "good_days": 1}, "Up to raise-only: a good day."),
            ({"from": "raise-only", "good_days": 3}, "Up to full: 3 good days in a row."),
        ]

    def test_needs_a_verdict(self) -> None:
        assert Pool(gate=lambda _: None).tick().until(at(4)).climbs() == [(0.5, SHADOW)]
        assert Pool(gate=off).tick().until(at(4)).climbs() == [(0.5, SHADOW)]

    def test_the_same_verdict_counts_once(self) -> None:
        pool = Pool().tick().until(at(2))
        before = pool.state
        pool.events.clear()
        pool.tick()
        assert (pool.state, pool.events) == (before, [])
        pool.tick(at(2) + TICK_S)
        assert (pool.state, pool.events) == (replace(before, seen_s=at(2) + TICK_S), [])


class TestNoPatience:
    @pytest.mark.parametrize("ceiling", [SHADOW, ADVISE, RAISE_ONLY, FULL])
    def test_climbs_to_the_ceiling_at_the_first_midnight_that_is_on(self, ceiling: LearningMode) -> None:
        """No verdict at noon, no saving in the first night, a saving in the second."""
        said: dict[int, Verdict | None] = {at(0): None, at(1): off(at(1)), at(2): on(at(2)), at(3): on(at(3))}
        pool = Pool(patience=0, ceiling=ceiling, gate=lambda midnight_s: said[midnight_s]).tick().until(at(3))
        assert pool.climbs() == [(0.5, SHADOW), *([(2, ceiling)] if ceiling is not SHADOW else [])]
        assert pool.told() == [
            ("recovery", "SWITCHED_ON"),
            *([("promotion", "GOOD_DAYS")] if ceiling is not SHADOW else []),
        ]
        assert pool.state.acting == ("hedge" if ceiling in (RAISE_ONLY, FULL) else RULE)

    def test_acts_in_the_first_tick_where_a_loaded_history_has_a_verdict(self) -> None:
        assert Pool(patience=0).tick().state.acting == "hedge"

    def test_waits_for_what_holds_it_and_no_longer(self) -> None:
        pool = Pool(patience=0, seen=replace(GOOD, inputs_age_s=None)).tick()
        assert pool.until(at(0, 13)).state.rung is SHADOW
        pool.until(at(0, 14), seen=GOOD)
        assert pool.state.rung is SHADOW
        assert pool.until(at(0, 14) + TICK_S).state.rung is FULL

    def test_follows_a_raised_ceiling_at_once(self) -> None:
        assert Pool(patience=0, ceiling=ADVISE).tick().tick(NOON_S + TICK_S, ceiling=FULL).state.rung is FULL

    def test_still_pays_for_what_costs_a_rung(self) -> None:
        pool = Pool(ON_TOP, patience=0).tick(seen=replace(GOOD, cost_cusum=6.0))
        assert pool.state.rung is SHADOW
        pool.until(at(7, 12), seen=GOOD)
        assert pool.state.rung is SHADOW
        assert pool.until(at(7, 12) + TICK_S).state.rung is FULL


class TestTheCeiling:
    @pytest.mark.parametrize("ceiling", [SHADOW, ADVISE, RAISE_ONLY])
    def test_is_never_passed(self, ceiling: LearningMode) -> None:
        pool = Pool(ceiling=ceiling).tick().until(at(9))
        assert pool.climbs()[-1][1] is ceiling

    def test_raised_at_noon_is_climbed_to_from_the_next_midnight_on(self) -> None:
        """Good days on a rung count though the ceiling was there."""
        pool = Pool(ceiling=ADVISE).tick().until(at(5, 12)).until(at(9), ceiling=FULL)
        assert pool.climbs() == [(0.5, SHADOW), (2, ADVISE), (6, RAISE_ONLY), (9, FULL)]

    @pytest.mark.parametrize("ceiling", [SHADOW, ADVISE, RAISE_ONLY])
    def test_lowered_counts_in_the_same_tick(self, ceiling: LearningMode) -> None:
        pool = Pool(ON_TOP).tick(ceiling=ceiling)
        assert (pool.state.rung, pool.state.earned) == (ceiling, ceiling)
        assert pool.state.acting == ("hedge" if ceiling is RAISE_ONLY else RULE)
        assert pool.told() == [("demotion", "CEILING")]

    def test_lowered_and_raised_again_does_not_give_the_rung_back(self) -> None:
        pool = Pool(ON_TOP).tick(ceiling=ADVISE).until(at(3), ceiling=FULL)
        assert pool.climbs() == [(0.5, ADVISE), (2, RAISE_ONLY)]

    def test_lowered_soon_after_midnight_begins_the_count_of_days_anew(self) -> None:
        pool = Pool(ON_TOP, patience=2).tick().until(at(1)).until(at(1, 1), ceiling=ADVISE).until(at(4), ceiling=FULL)
        assert pool.climbs() == [(0.5, FULL), (1 + TICK_S / DAY_S, ADVISE), (3, RAISE_ONLY)]


BEGINS: list[tuple[str, dict[str, Any], LearningMode, float, LearningMode]] = [
    # code, what is read, the highest rung meanwhile, hours until it is over, where it is then
    ("INPUTS", {"inputs_age_s": 900.1}, SHADOW, 1, FULL),
    ("INPUTS", {"inputs_age_s": -900.1}, SHADOW, 1, FULL),
    ("INPUTS", {"inputs_age_s": None}, SHADOW, 1, FULL),
    ("INPUTS", {"inputs_age_s": nan}, SHADOW, 1, FULL),
    ("INPUTS", {"inputs_age_s": inf}, SHADOW, 1, FULL),
    ("INPUTS", {"inputs_finite": False}, SHADOW, 1, FULL),
    ("COVERAGE", {"coverage": 0.799}, ADVISE, 24, FULL),
    ("COVERAGE", {"coverage": nan}, ADVISE, 24, FULL),
    ("COST", {"cost_cusum": 5.001}, SHADOW, 7 * 24, SHADOW),
    ("COST", {"cost_cusum": nan}, SHADOW, 7 * 24, SHADOW),
    ("COST", {"cost_cusum": inf}, SHADOW, 7 * 24, SHADOW),
    ("LOSS", {"loss_used": 1.001}, SHADOW, 7 * 24, SHADOW),
    ("LOSS", {"loss_used": nan}, SHADOW, 7 * 24, SHADOW),
    ("LOSS", {"loss_used": inf}, SHADOW, 7 * 24, SHADOW),
    ("CLIPPING", {"clipped_share": 0.0101}, ADVISE, 24, ADVISE),
    ("CLIPPING", {"clipped_share": nan}, ADVISE, 24, ADVISE),
    ("INFIDELITY", {"infidelity": 0.0501}, SHADOW, 24, SHADOW),
    ("INFIDELITY", {"infidelity": nan}, SHADOW, 24, SHADOW),
]


class TestCauses:
    @pytest.mark.parametrize(("code", "read", "leaves", "hours", "then"), BEGINS)
    def test_begin_at_once_hold_as_long_as_they_last_and_end_after_their_wait(
        self, code: str, read: dict[str, Any], leaves: LearningMode, hours: float, then: LearningMode
    ) -> None:
        """The gate says no meanwhile, so that nothing is climbed: what is seen is what the cause itself gives back."""
        pool = Pool(ON_TOP, gate=lambda _: None).tick(seen=replace(GOOD, **read))
        assert (pool.state.rung, pool.state.acting) == (leaves, RULE)
        assert pool.told() == [("demotion", code)]
        well_from_s = at(2, 3)
        pool.until(well_from_s - TICK_S)
        assert pool.state.rung is leaves
        pool.until(well_from_s + round(hours * HOUR_S) - TICK_S, seen=GOOD)
        assert pool.state.rung is leaves
        assert [told for told in pool.told() if told[1] != "VERDICT_EXPIRED"] == []
        pool.until(well_from_s + round(hours * HOUR_S))
        assert (pool.state.rung, pool.state.earned, pool.state.holds) == (then, then, ())
        assert dict(pool.events[-1].facts)["held_s"] == well_from_s + round(hours * HOUR_S) - NOON_S
        assert pool.told() == [("recovery", code)]

    @pytest.mark.parametrize(
        "read",
        [
            {"inputs_age_s": 900},
            {"inputs_age_s": -5},
            {"coverage": 0.80},
            {"coverage": None},
            {"cost_cusum": 5.0},
            {"cost_cusum": None},
            {"loss_used": 1.0},
            {"loss_used": None},
            {"clipped_share": 0.01},
            {"clipped_share": None},
            {"infidelity": 0.05},
            {"infidelity": None},
        ],
    )
    def test_do_not_begin_at_their_limit_nor_where_too_little_was_seen(self, read: dict[str, Any]) -> None:
        pool = Pool(ON_TOP).tick(seen=replace(GOOD, **read))
        assert (pool.state.rung, pool.told()) == (FULL, [])

    @pytest.mark.parametrize(
        ("bad", "neither"),
        [
            ({"coverage": 0.7}, {"coverage": 0.849}),
            ({"coverage": 0.7}, {"coverage": None}),
            ({"cost_cusum": 9.0}, {"cost_cusum": None}),
            ({"loss_used": 2.0}, {"loss_used": None}),
            ({"clipped_share": 0.5}, {"clipped_share": None}),
            ({"infidelity": 0.5}, {"infidelity": None}),
        ],
    )
    def test_do_not_end_where_nothing_says_that_it_is_well(self, bad: dict[str, Any], neither: dict[str, Any]) -> None:
        pool = Pool(ON_TOP).tick(seen=replace(GOOD, **bad)).until(at(9), seen=replace(GOOD, **neither))
        assert pool.state.rung in (ADVISE, SHADOW)
        assert len(pool.state.holds) == 1

    def test_wait_anew_after_a_break(self) -> None:
        pool = Pool(ON_TOP).tick(seen=replace(GOOD, coverage=0.7)).until(at(1, 10), seen=GOOD)
        pool.tick(at(1, 10) + TICK_S, seen=replace(GOOD, coverage=0.84)).tick(at(1, 10) + 2 * TICK_S, seen=GOOD)
        assert pool.until(at(2, 10)).state.rung is ADVISE
        assert pool.until(at(2, 10) + 2 * TICK_S).state.rung is FULL

    def test_of_this_moment_are_not_waited_out_while_nobody_looks(self) -> None:
        """Fresh before and after a silence: the inputs may have been anything in between. 15 minutes are none."""
        pool = Pool(ON_TOP).tick(seen=replace(GOOD, inputs_age_s=None)).tick(NOON_S + TICK_S, seen=GOOD)
        for quarter in range(1, 5):
            pool.tick(NOON_S + TICK_S + quarter * 900)
        assert pool.state.rung is FULL
        pool = Pool(ON_TOP).tick(seen=replace(GOOD, inputs_age_s=None)).tick(NOON_S + TICK_S, seen=GOOD)
        assert pool.tick(at(0, 14)).state.rung is SHADOW
        assert pool.until(at(0, 15) - TICK_S).state.rung is SHADOW
        assert pool.until(at(0, 15)).state.rung is FULL

    def test_about_days_are_waited_out_also_over_a_restart(self) -> None:
        pool = Pool(ON_TOP).tick(seen=replace(GOOD, coverage=0.7)).tick(NOON_S + TICK_S, seen=GOOD)
        assert pool.tick(at(1, 12) + TICK_S).state.rung is FULL

    def test_hold_together_at_the_lowest_and_let_go_one_by_one(self) -> None:
        """Stale inputs end after an hour, lost coverage after a day."""
        pool = Pool(ON_TOP).tick(seen=replace(GOOD, coverage=0.7, inputs_age_s=None))
        assert pool.state.rung is SHADOW
        assert pool.told() == [("demotion", "INPUTS"), ("demotion", "COVERAGE")]
        pool.until(at(3), seen=GOOD)
        begin = 0.5 + TICK_S / DAY_S
        assert pool.climbs() == [
            (0.5, SHADOW),
            (pytest.approx(begin + 1 / 24), ADVISE),
            (pytest.approx(begin + 1), FULL),
        ]

    def test_that_cost_the_rung_cost_it_beside_one_that_does_not(self) -> None:
        pool = Pool(ON_TOP).tick(seen=replace(GOOD, inputs_age_s=None, clipped_share=1.0))
        assert (pool.state.rung, pool.state.earned) == (SHADOW, ADVISE)

    def test_lasting_keep_it_from_climbing_and_make_its_good_days_begin_anew(self) -> None:
        """Clipped until noon of day 2, over at noon of day 3; that half day counts for nothing, day 4 does."""
        pool = Pool(ON_TOP).tick(seen=replace(GOOD, clipped_share=0.5)).until(at(2, 12)).until(at(8), seen=GOOD)
        assert pool.climbs() == [(0.5, ADVISE), (5, RAISE_ONLY), (8, FULL)]

    def test_of_an_hour_take_the_day_from_the_count(self) -> None:
        pool = Pool().tick().until(at(5, 12)).tick(at(5, 12) + TICK_S, seen=replace(GOOD, inputs_age_s=None))
        pool.until(at(10), seen=GOOD)
        assert [climb for climb in pool.climbs() if climb[1] is FULL] == [(9, FULL)]

    def test_tell_their_reading_in_whole_numbers(self) -> None:
        for read, fact in (
            ({"inputs_age_s": 1200.4}, ("inputs_age_s", 1200)),
            ({"inputs_age_s": None}, ("inputs_age_s", "unknown")),
            ({"coverage": 0.761}, ("coverage_permille", 761)),
            ({"cost_cusum": 5.25}, ("cusum_milli", 5250)),
            ({"cost_cusum": nan}, ("cusum_milli", "unknown")),
            ({"clipped_share": 0.125}, ("clipped_permille", 125)),
            ({"loss_used": 1.25}, ("loss_used_permille", 1250)),
            ({"infidelity": 1e308}, ("infidelity_permille", "unknown")),
        ):
            (event,) = Pool(ON_TOP).tick(seen=replace(GOOD, **read)).events
            assert event.facts[0] == fact
            assert (event.rung, event.acting) == (event.facts[1][1], RULE)


class TestTheKillSwitch:
    @pytest.mark.parametrize(
        ("switch", "code", "why"),
        [({"kill": True}, "KILL_FLAG", "it was killed"), ({"ceiling": OFF}, "MODE_OFF", "the policy says off")],
        ids=["flag", "policy"],
    )
    def test_acts_in_the_same_step_and_says_so_once(self, switch: dict[str, Any], code: str, why: str) -> None:
        pool = Pool(ON_TOP).tick(**switch)
        assert pool.events[0].sentence == f"Learning is off: {why}. The rule acts."
        assert pool.events[0].facts == (("from", "full"),)
        assert (pool.state.rung, pool.state.earned, pool.state.acting) == (OFF, OFF, RULE)
        assert pool.told() == [("kill", code)]
        pool.until(at(3))
        assert (pool.climbs(), pool.told()) == ([(0.5, OFF)], [])

    def test_comes_before_everything_else(self) -> None:
        pool = Pool(ON_TOP).tick(kill=True, seen=Monitors(None, False, nan, nan, nan, nan))
        assert (pool.state, pool.told()) == (
            LadderState(judged_s=DAY0_S, seen_s=NOON_S),
            [("kill", "KILL_FLAG")],
        )

    def test_released_puts_it_into_shadow_and_last_nights_verdict_does_not_count_again(self) -> None:
        pool = Pool(ON_TOP).tick(kill=True).tick(NOON_S + TICK_S, kill=False, patience=0)
        assert (pool.state.rung, pool.state.chosen) == (SHADOW, RULE)
        assert pool.told() == [("kill", "KILL_FLAG"), ("recovery", "SWITCHED_ON")]
        pool.until(at(4), patience=None)
        assert pool.climbs() == [(0.5, OFF), (0.5 + TICK_S / DAY_S, SHADOW), (2, ADVISE), (3, RAISE_ONLY)]


class TestVerdicts:
    def test_run_out_two_days_after_their_midnight(self) -> None:
        pool = Pool(ON_TOP, gate=lambda midnight_s: on(midnight_s) if midnight_s <= at(1) else None)
        assert pool.until(at(3)).state.acting == "hedge"
        assert pool.told() == []
        pool.until(at(3) + TICK_S)
        assert (pool.state.rung, pool.state.acting) == (FULL, RULE)
        assert dict(pool.events[-1].facts) == {"chosen": "hedge", "age_s": 2 * DAY_S + TICK_S}
        assert pool.told() == [("gate", "VERDICT_EXPIRED")]
        pool.until(at(5), gate=on)
        assert (pool.state.rung, pool.state.acting, pool.state.good_days) == (FULL, "hedge", 3)

    @pytest.mark.parametrize("midnight_s", [at(-2) - 1, at(-30), at(1), at(400)])
    def test_too_old_or_not_yet_due_are_not_taken(self, midnight_s: int) -> None:
        fresh = LadderState(rung=FULL, earned=FULL, since_s=at(-60), seen_s=NOON_S - TICK_S)
        state, events = step(
            fresh, replace(GOOD, verdict=on(midnight_s)), FULL, NOON_S if midnight_s > NOON_S else at(0)
        )
        assert (state.acting, state.judged_s, events) == (RULE, None, ())

    def test_of_two_days_ago_are_the_oldest_that_are_taken(self) -> None:
        fresh = LadderState(rung=FULL, earned=FULL, since_s=at(-60), seen_s=at(0) - TICK_S)
        assert step(fresh, replace(GOOD, verdict=on(at(-2))), FULL, at(0))[0].acting == "hedge"

    def test_older_than_the_one_in_force_are_not_taken(self) -> None:
        state, events = step(ON_TOP, replace(GOOD, verdict=off(at(-1))), FULL, NOON_S)
        assert (state.acting, events) == ("hedge", ())

    def test_choose_another_candidate_at_midnight(self) -> None:
        pool = Pool(ON_TOP, gate=lambda midnight_s: on(midnight_s, "hedge" if midnight_s < at(1) else "hindsight"))
        assert pool.until(at(1) - TICK_S).state.acting == "hedge"
        assert pool.until(at(1)).state.acting == "hindsight"

    @pytest.mark.parametrize(("mean", "error"), [(nan, 1.0), (1.0, nan), (inf, inf)])
    def test_that_are_no_numbers_are_those_of_the_rule(self, mean: float, error: float) -> None:
        odd = Verdict(at(1), "hedge", mean, error, 7, Why.SAVES, "hedge", ())
        pool = Pool(ON_TOP, gate=lambda midnight_s: odd if midnight_s == at(1) else on(midnight_s)).until(at(1))
        assert (pool.state.acting, pool.state.good_days) == (RULE, 0)

    def test_are_told_with_their_own_reason(self) -> None:
        (event,) = Pool(ON_TOP, now_s=at(1) - TICK_S).until(at(1)).events
        assert (event.kind, event.code, event.acting, event.at_s) == ("gate", "SAVES", "hedge", at(1))


class TestTheClock:
    def test_set_back_by_a_day_leaves_the_rule_until_a_midnight_that_it_knows(self) -> None:
        """Set back below the verdict's midnight: that verdict is one from the future."""
        pool = Pool(ON_TOP, gate=lambda _: None).tick(at(-1, 12))
        assert (pool.state.rung, pool.state.acting, pool.state.judged_s) == (FULL, RULE, None)
        assert pool.tick(at(0), gate=on).state.acting == "hedge"

    def test_that_was_far_ahead_for_a_while_costs_days_and_no_years(self) -> None:
        """Back five minutes after midnight of day 1; what it saw ahead holds it until five past midnight of day 2."""
        for read in (GOOD, replace(GOOD, inputs_age_s=None, coverage=0.1)):
            pool = Pool().tick().until(at(1)).tick(at(5000), seen=read).tick(at(1) + TICK_S, seen=GOOD)
            pool.until(at(9))
            assert pool.climbs()[-1] == (6 if read is GOOD else 7, FULL)

    def test_set_back_begins_the_wait_of_a_hold_anew(self) -> None:
        pool = Pool(ON_TOP).tick(seen=replace(GOOD, coverage=0.7)).until(at(1, 11), seen=GOOD)
        pool.tick(at(0, 11)).until(at(1, 11) - TICK_S)
        assert pool.state.rung is ADVISE
        assert pool.until(at(1, 11)).state.rung is FULL

    def test_set_back_leaves_no_moment_ahead(self) -> None:
        state = replace(ON_TOP, since_s=at(9), judged_s=at(9), holds=(Hold(Code.COVERAGE, at(9), at(9)),))
        after, _ = step(state, GOOD, FULL, NOON_S)
        assert after.since_s == NOON_S
        assert after.judged_s is None
        assert after.holds == (Hold(Code.COVERAGE, NOON_S, NOON_S),)


@pytest.mark.parametrize(
    "kept",
    [
        {},
        [],
        {**ON_TOP.to_plain(), "rung": "fuller"},
        {**ON_TOP.to_plain(), "good_days": None},
        {**ON_TOP.to_plain(), "since_s": inf},
        {**ON_TOP.to_plain(), "seen_s": "noon"},
        {**ON_TOP.to_plain(), "holds": None},
        {**ON_TOP.to_plain(), "holds": [{"code": "CEILING", "begun_s": 1, "well_since_s": None}]},
        {**ON_TOP.to_plain(), "holds": [{"code": "COST"}]},
    ],
)
def test_a_state_that_is_none_is_refused_by_name(kept: Any) -> None:
    with pytest.raises(InputError, match="ladder"):
        LadderState.from_plain(kept)


NUMBER = st.none() | st.floats() | st.floats(0, 1) | st.sampled_from([0.0, 4.9, 5.1, 0.79, 0.82, 0.9])
AGE = st.none() | st.floats() | st.just(60.0) | st.just(60.0)
MOMENT = st.integers(-(10**6), 10**6).map(lambda off_s: DAY0_S + off_s) | st.integers(-9, 9).map(at)
VERDICT = st.none() | st.builds(
    Verdict,
    midnight_s=MOMENT,
    acting=st.sampled_from([RULE, "hedge", "hindsight"]),
    mean=st.floats() | st.just(5.0),
    standard_error=st.floats() | st.just(1.0),
    days=st.integers(0, 7),
    why=st.sampled_from(Why),
    best=st.sampled_from(["", "hedge"]),
    table=st.just(()),
)
SEEN = st.just(GOOD) | st.builds(Monitors, AGE, st.booleans(), NUMBER, NUMBER, NUMBER, NUMBER)


@dataclass(frozen=True)
class Turn:
    """One random step."""

    later_s: int
    seen: Monitors
    verdict: Verdict | None
    fresh: bool
    ceiling: LearningMode
    kill: bool
    patience: int | None


TURNS = st.lists(
    st.builds(
        Turn,
        later_s=st.sampled_from([300, 3600, DAY_S, DAY_S, DAY_S, 8 * DAY_S, -DAY_S, -300])
        | st.integers(-(10**7), 10**7),
        seen=SEEN,
        verdict=VERDICT,
        fresh=st.booleans(),
        ceiling=st.sampled_from([FULL, FULL, *RUNGS]),
        kill=st.sampled_from([False] * 9 + [True]),
        patience=st.sampled_from([None, None, 0, 1, 2, -1]),
    ),
    max_size=25,
)
MAY_ACT = (RAISE_ONLY, FULL)


def walked(turns: Sequence[Turn]) -> list[tuple[Turn, LadderState, LadderState, tuple[Event, ...]]]:
    """Every turn with the state before and after it; a fresh verdict is that of the newest midnight and is on."""
    state, now_s, out = LadderState(), NOON_S, []
    for turn in turns:
        now_s += turn.later_s
        verdict = on(now_s - now_s % DAY_S) if turn.fresh else turn.verdict
        seen = replace(turn.seen, verdict=verdict)
        before = LadderState.from_plain(json.loads(json.dumps(state.to_plain())))
        assert before == state
        state, events = step(before, seen, turn.ceiling, now_s, kill=turn.kill, patience_days=turn.patience)
        out.append((replace(turn, seen=seen), before, state, events))
    return out


@settings(max_examples=300, deadline=None)
@given(TURNS)
def test_whatever_is_read_and_whenever(turns: list[Turn]) -> None:
    """The laws: nothing raises, nothing is above the ceiling, who may not act does not, one rung at a time."""
    height = RUNGS.index
    for turn, before, after, events in walked(turns):
        assert height(after.rung) <= height(after.earned) <= height(turn.ceiling)
        assert (after.acting != RULE) <= (after.rung in MAY_ACT)
        assert (after.rung is OFF) is (turn.kill or turn.ceiling is OFF)
        if turn.patience is None or turn.patience > 0:
            assert height(after.earned) <= height(before.earned) + 1
        if height(after.earned) > max(1, height(before.earned)):
            assert after.chosen != RULE
            assert not after.holds
        if after.chosen != before.chosen and after.chosen != RULE:
            assert turn.seen.verdict is not None
            assert turn.seen.verdict.on
        if any(cause.bad(turn.seen) for cause in CAUSES):
            assert after.acting == RULE
        assert len({(event.kind, event.code) for event in events}) == len(events)
        for event in events:
            assert canonical_bytes(event)
            assert (event.rung, event.acting) == (after.rung, after.acting)
