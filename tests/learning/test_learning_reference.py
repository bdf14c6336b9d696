"""The reference of learning cannot drift: its tables are read and held against the code."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from controller.core.policy import LearningMode
from controller.learning.demotions import CAUSES, Cause, Code
from controller.learning.gate import RULE, Day, Shadow, Why, judge
from controller.learning.ladder import PATIENCE_DAYS, RUNGS, VERDICT_LASTS_S, LadderState, step
from controller.learning.monitors import Monitors
from controller.learning.shadows import MATERIAL

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "learning.md").read_text("utf-8")
SECONDS = {"min": 60, "h": 3600, "d": 86_400}
FIELD = {
    "INPUTS": "inputs_age_s",
    "COVERAGE": "coverage",
    "COST": "cost_cusum",
    "LOSS": "loss_used",
    "CLIPPING": "clipped_share",
    "INFIDELITY": "infidelity",
}
GOOD = Monitors(inputs_age_s=60, coverage=0.9, cost_cusum=0.0, clipped_share=0.0, infidelity=0.0)


def table(first: str) -> list[list[str]]:
    """The rows of the table whose header begins with this cell, without code quotes."""
    found = re.search(rf"^\| {first} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert found, first
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in found[1].splitlines()]


def amount(text: str) -> float:
    """``15 min``, ``7 d``, ``80 %`` or ``5`` as a number."""
    number, _, unit = text.partition(" ")
    return float(number) * SECONDS.get(unit, 1) / (100 if unit == "%" else 1)


def test_the_modes_are_the_rungs_and_say_who_acts() -> None:
    rows = table("rung")
    assert [row[0] for row in rows] == [rung.value for rung in RUNGS]
    for rung, row in zip(RUNGS, rows, strict=True):
        acting = LadderState(rung=rung, earned=rung, chosen="learner").acting
        assert row[2] == acting


def test_the_causes_are_those_of_the_code_in_its_order() -> None:
    assert [row[0] for row in table("cause")] == [cause.code.value for cause in CAUSES] == list(FIELD)


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.code.value)
def test_a_cause_begins_ends_waits_and_leaves_as_its_row_says(cause: Cause) -> None:
    (row,) = [row for row in table("cause") if row[0] == cause.code]
    begins, ends, wait, most, afterwards = row[2:]
    name = FIELD[cause.code]
    word, limit = re.fullmatch(r"(above|below) (.*)", begins).groups()  # type: ignore[union-attr]
    beyond = 1e-6 if word == "above" else -1e-6
    assert not cause.bad(replace(GOOD, **{name: amount(limit)}))
    assert cause.bad(replace(GOOD, **{name: amount(limit) + beyond}))
    word, limit = re.fullmatch(r"(at most|at least) (.*)", ends).groups()  # type: ignore[union-attr]
    beyond = 1e-6 if word == "at most" else -1e-6
    assert cause.well(replace(GOOD, **{name: amount(limit)}))
    assert not cause.well(replace(GOOD, **{name: amount(limit) + beyond}))
    assert cause.wait_s == amount(wait)
    assert cause.leaves == most
    assert {True: "back on its rung", False: "climbs anew"}[cause.keeps_rung] == afterwards


def test_patience_is_that_of_the_code() -> None:
    shown = {LearningMode(row[0]): (LearningMode(row[1]), int(row[2])) for row in table("from")}
    assert {rung: days for rung, (_, days) in shown.items()} == PATIENCE_DAYS
    for rung, (following, _) in shown.items():
        assert RUNGS.index(following) == RUNGS.index(rung) + 1


def test_the_worked_example_is_what_the_gate_says() -> None:
    rows = table("day")
    assert len(rows) == 2
    for row in rows:
        savings, (mean, spread, error, score, acting) = [float(cell) for cell in row[1:8]], row[8:]
        days = tuple(Day(k * 86_400, saving, 100.0, 288) for k, saving in enumerate(savings))
        said = judge([Shadow("learner", days)], 7 * 86_400, least_share=MATERIAL)
        assert said.acting == acting
        (standing,) = said.table
        shown = (standing.mean, standing.standard_error * 7**0.5, standing.standard_error, standing.score)
        assert [f"{value:.2f}" for value in shown] == [mean, spread, error, score]
    assert {row[-1] for row in rows} == {"learner", RULE}


def test_every_code_of_an_event_has_a_row_with_its_kind() -> None:
    kinds = {row[0]: row[1] for row in table("code")}
    assert set(kinds) == {code.value for code in Code} | {why.value for why in Why}
    assert {code for code, kind in kinds.items() if kind == "demotion, recovery"} == set(FIELD)
    assert all(kinds[why.value] == "gate" for why in Why)


def test_the_first_tick_and_the_kill_switch_are_told_as_the_page_says() -> None:
    kinds = {row[0]: row[1] for row in table("code")}
    state, (begun,) = step(LadderState(), GOOD, LearningMode.FULL, 1_000_000)
    assert (begun.kind, begun.rung) == (kinds[begun.code], "shadow")
    for kill, ceiling in ((True, LearningMode.FULL), (False, LearningMode.OFF)):
        _, (killed,) = step(state, GOOD, ceiling, 1_000_300, kill=kill)
        assert (killed.kind, killed.rung) == (kinds[killed.code], "off")
    _, (lowered,) = step(replace(state, earned=LearningMode.FULL), GOOD, LearningMode.ADVISE, 1_000_300)
    assert lowered.kind == kinds[lowered.code]


def test_a_verdict_lasts_as_long_as_the_page_says() -> None:
    said = re.search(r"A verdict holds for (\w+) days", PAGE)
    assert said
    assert {"one": 1, "two": 2, "three": 3}[said[1]] * 86_400 == VERDICT_LASTS_S
