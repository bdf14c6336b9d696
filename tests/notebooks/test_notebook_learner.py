"""The learner as a notebook shows it: its tables agree with each other and with sums worked out another way."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from notebook_sources import DAY_ROWS, MONDAY_S, a_history, office, wavy

from controller.backtest.run import bench
from controller.core.errors import InputError
from controller.learning.candidates import CANDIDATES, NAMES
from controller.learning.gate import Verdict, Why
from dashboard import notebook as tg
from dashboard.notebook.other_terms import COLUMNS
from dashboard.notebook.replayed import implied, in_words, local_midnights, row_of
from dashboard.notebook.tuning import LABELS, terms_of

DAYS = 5


@pytest.fixture(scope="module")
def learner() -> tg.Learner:
    """Five whole days from a Monday's midnight, UTC."""
    return tg.learner(a_history({"dev": wavy(DAYS, 40, 30), "vision": office(DAYS, 8, 40)}), lead="15m")


def test_constant_demand_costs_nobody_anything() -> None:
    made = tg.learner(a_history({"dev": office(3, 16, 16)}), lead="10m")
    table = made.candidates()
    assert table["asks for, GPUs"].tolist() == [16.0] * len(table)
    assert table["cost a day"].abs().max() == 0
    assert made.savings()["learner"].tolist() == [0.0, 0.0]
    assert "saves **0.0 GPU-hours a day**" in made.verdict()
    assert made.moments().empty
    assert "(keep)" in made.why()._repr_markdown_()


def test_no_demand_at_all_is_no_error() -> None:
    made = tg.learner(a_history({"dev": office(3, 0, 0)}))
    assert "(0 % of its cost)" in made.verdict()


def test_savings_by_day_add_up_to_what_the_candidates_saved(learner: tg.Learner) -> None:
    by_day, table = learner.savings(), learner.candidates()
    assert by_day.index.tolist() == [pd.Timestamp(f"2026-{day}") for day in ("09-29", "09-30", "10-01", "10-02")]
    for name in ("learner", "rule", *NAMES[:3]):
        assert by_day[name].sum() == pytest.approx(4 * table.loc[name, "saves a day"])
    assert (by_day["rule"] == 0).all()
    assert by_day["learner"].abs().sum() > 1


def test_a_cost_is_idle_waiting_at_its_weight_and_starting(learner: tg.Learner) -> None:
    table = learner.candidates()
    starting = table["nodes added a day"] * (8 * 0.25 + 2)  # 15 min of 8 GPUs, and 2 GPU-hours of churn
    expected = table["idle GPU-h a day"] + 9 * table["waiting GPU-h a day"] + starting
    assert table["cost a day"].tolist() == pytest.approx(expected.tolist())
    assert table["cost a day"].is_monotonic_increasing
    assert len(table) == len(CANDIDATES) + 2


def test_weights_begin_alike_and_always_add_up_to_one(learner: tg.Learner) -> None:
    weights = learner.weights()
    assert len(weights) == DAYS * 24
    assert weights.sum(axis=1).tolist() == pytest.approx([1.0] * len(weights))
    assert weights.iloc[0].tolist() == pytest.approx([1 / len(NAMES)] * len(NAMES))
    assert weights.iloc[-1].max() > 2 / len(NAMES)
    at_the_end = learner.candidates()["weight"].drop("learner")
    assert at_the_end.sum() == pytest.approx(1.0)


def test_the_gate_is_the_mean_of_the_days_before_less_one_standard_error(learner: tg.Learner) -> None:
    gate, savings = learner.gate(), learner.savings()["learner"]
    assert gate.index.tolist() == [pd.Timestamp(f"2026-{d}") for d in ("09-30", "10-01", "10-02", "10-03")]
    assert gate["days"].tolist() == [1, 2, 3, 4]
    for i in (1, 2, 3):
        known = savings.iloc[: i + 1]
        error = known.std(ddof=1) / math.sqrt(len(known))
        assert gate["saved a day"].iloc[i] == pytest.approx(known.mean())
        assert gate["score"].iloc[i] == pytest.approx(known.mean() - error)
        assert (gate["acts"].iloc[i] == "learner") == (known.mean() - error > 0)


def test_the_learner_acts_only_in_the_days_for_which_the_gate_is_open(learner: tg.Learner) -> None:
    def said(row: int, on: bool) -> Verdict:
        name = "learner" if on else "rule"
        return Verdict(MONDAY_S + row * 300, name, 5.0 * on, 1.0 * on, 2, Why.SAVES, "learner", ())

    opened = replace(learner, verdicts=tuple(said(k * DAY_ROWS, k == 3) for k in (2, 3, 4, 5)))
    acting = opened.acting()
    assert np.flatnonzero(acting).tolist() == list(range(3 * DAY_ROWS, 4 * DAY_ROWS))
    targets = opened.targets()
    assert (targets["acts"][acting] == targets["learner"][acting]).all()
    assert (targets["acts"][~acting] == targets["rule"][~acting]).all()
    assert "after **1 of 4** midnights" in opened.verdict()


def test_moments_are_the_widest_apart_and_not_the_same_one_twice(learner: tg.Learner) -> None:
    moments, targets = learner.moments(), learner.targets()
    apart = (moments["learner asked"] - moments["rule asked"]).abs()
    assert apart.is_monotonic_decreasing
    assert apart.iloc[0] == (targets["learner"] - targets["rule"]).iloc[DAY_ROWS:].abs().max()
    times = moments.index.sort_values()
    assert (times[1:] - times[:-1]).min() >= pd.Timedelta(minutes=75)
    assert len(learner.moments(2)) == 2


def test_one_moment_is_told_with_what_was_known_and_what_came(learner: tg.Learner) -> None:
    row = 3 * DAY_ROWS + 100  # Thursday 08:20
    why = learner.why("2026-10-01 08:23")
    total = learner.history.total
    assert why.when == pd.Timestamp("2026-10-01 08:20")
    assert why.wanted == total[row - 1]
    assert why.came == total[row + 3 : row + 15].max()  # from the lead of 15 min on, for an hour
    assert why.shares().sum() == pytest.approx(1.0)
    mean = (why.votes["asks for, GPUs"] * why.votes["weight"]).sum()
    assert abs(why.learner - mean) <= 4  # the mean, rounded to nodes of 8
    costs = learner.past.account.cost[row : row + 15]
    assert why.rule_cost == pytest.approx(costs[:, NAMES.index("rule")].sum())
    assert why.learner_cost == pytest.approx(costs[:, -1].sum())
    said = why._repr_markdown_()
    assert said.startswith("**Thu 2026-10-01 08:20**")
    assert f"The rule asked for **{why.rule:,.0f}**, the learner for **{why.learner:,.0f}**" in said
    assert why.table()["weight"].is_monotonic_decreasing


def test_without_a_time_the_widest_moment_is_told(learner: tg.Learner) -> None:
    assert learner.why().when == learner.moments(1).index[0]


@pytest.mark.parametrize("when", ["2026-12-24", "soon", "2026-10-01 08:20+02:00"])
def test_a_time_that_is_none_or_outside_is_refused_in_one_line(learner: tg.Learner, when: str) -> None:
    with pytest.raises(InputError) as caught:
        learner.why(when)
    assert str(caught.value) == f"WHEN: {when}: a local time from 2026-09-28 00:00 to 2026-10-02 23:55"


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"lead": "soon"}, "LEAD: soon: a duration"),
        ({"lead": "0s"}, "LEAD: 0s: from 1 s to 7 d"),
        ({"wait_weight": -1}, "WAIT_WEIGHT: -1: a number, 0 or more"),
        ({"gpus_per_node": 0}, "GPUS_PER_NODE: 0: 1 or more"),
    ],
)
def test_terms_that_cannot_be_are_refused_in_one_line(given: dict[str, object], word: str) -> None:
    history = a_history({"dev": office(3, 1, 2)})
    with pytest.raises(InputError) as caught:
        tg.learner(history, **given)  # type: ignore[arg-type]
    assert str(caught.value).startswith(word)
    assert "\n" not in str(caught.value)


def test_too_short_a_history_is_refused() -> None:
    with pytest.raises(InputError, match=r"history for replaying the learner: 1\.0 days: at least 2 days"):
        tg.learner(a_history({"dev": office(1, 1, 2)}))


def test_a_day_without_data_is_judged_by_nobody() -> None:
    values = wavy(5, 40, 30)
    values[2 * DAY_ROWS : 2 * DAY_ROWS + 200] = np.nan
    made = tg.learner(a_history({"dev": values}))
    assert [day.day for day in made.savings().index] == [29, 1, 2]
    assert made.gate()["days"].tolist() == [1, 1, 2, 3]


def test_days_are_those_of_the_place_and_may_have_25_hours() -> None:
    # New York, four hours behind until Sunday 1 November 2026 06:00 UTC, then five.
    history = a_history({"dev": office(4, 1, 2)}, zone="America/New_York")
    saturday = 1_793_404_800  # 2026-10-31 00:00 UTC
    history = replace(history, panel=replace(history.panel, origin_s=saturday))
    assert local_midnights(history) == (48, 48 + 288, 48 + 288 + 300, 48 + 2 * 288 + 300)


def test_a_history_that_ends_at_midnight_is_judged_there_too() -> None:
    assert local_midnights(a_history({"dev": office(2, 1, 2)})) == (288, 576)


def test_an_amounts_place_in_a_forecast() -> None:
    forecast = np.arange(10_000, 120_000, 10_000)  # levels .1 to .9, .95, .98 at 10, 20, … 110 GPUs
    assert [implied(gpus, forecast) for gpus in (9, 10, 19, 50, 99, 100, 500)] == [0, 0.1, 0.1, 0.5, 0.9, 0.95, 0.98]


def test_the_row_of_a_time_is_the_last_that_has_begun() -> None:
    times = a_history({"dev": office(1, 1, 2)}).times
    assert row_of("2026-09-28 00:04:59", times) == 0
    assert row_of("2026-09-28 00:05", times) == 1


def test_every_candidate_reads_differently() -> None:
    words = [in_words(one) for one in CANDIDATES]
    assert len(set(words)) == len(words)
    assert (
        words[0]
        == "at least the 20 % line of the 30 min after the lead, at most the 40 % line of all until 1 h after the lead"
    )
    assert "the 30 % line of the hour after the lead, kept for 30 min" in words
    assert "at least what is wanted now, at most the 30 % line of all until 2 h after the lead" in words


# other leads and weights


def test_other_terms_give_what_the_benchmark_gives() -> None:
    history = a_history({"dev": wavy(4, 40, 30)})
    made = tg.sensitivity(history, leads=["30m", "10m"], weights=[9, 3, 9], gpus_per_node=4)
    assert made.table["lead"].tolist() == ["10 min"] * 4 + ["30 min"] * 4
    assert made.table["w"].tolist() == [3, 3, 9, 9] * 2
    report = bench(history.trace(), terms_of(history, "30m", 9, 4), "demand")
    row = made.table[(made.table["lead"] == "30 min") & (made.table["w"] == 9)].iloc[0]
    expected, rule = report.rows["learner"], report.rows["tuned_rule"]
    assert expected.gap_closed is not None
    assert expected.gap_ci is not None
    assert row["gap closed, %"] == pytest.approx(100 * expected.gap_closed)
    assert row["from"] == pytest.approx(100 * expected.gap_ci[0])
    days = (4 * 288 - history.judge_from) / 288
    assert row["saves a day"] == pytest.approx((rule.cost - expected.cost) / days)


def test_only_what_an_interval_keeps_on_one_side_of_the_rule_counts() -> None:
    history = a_history({"dev": office(20, 1, 2)})
    ours, gated = LABELS["learner"], LABELS["gated"]
    rows = [
        ("5 min", 3.0, ours, 10.0, 2.0, 20.0, 1.0, 9.0),
        ("5 min", 9.0, ours, 10.0, -2.0, 20.0, 1.0, 9.0),
        ("5 min", 30.0, ours, -40.0, -60.0, -1.0, -4.0, 9.0),
        ("5 min", 30.0, gated, np.nan, np.nan, np.nan, 0.0, 9.0),
    ]
    said = tg.Sensitivity(history, 8, pd.DataFrame(rows, columns=COLUMNS)).verdict()
    assert (
        f"**{ours}**: clearly better than the rule in 1 of 3 settings, clearly worse in 1; its worst is -40 %" in said
    )
    assert f"**{gated}**: clearly better than the rule in 0 of 1 settings, clearly worse in 0.\n" in said
    assert "guesses" not in said
    short = tg.Sensitivity(a_history({"dev": office(10, 1, 2)}), 8, pd.DataFrame(rows, columns=COLUMNS))
    assert "3.8 judged days are so few" in short.verdict()


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"leads": []}, "LEADS: none: a list of at least one"),
        ({"weights": []}, "WEIGHTS: none: a list of at least one"),
        ({"leads": "5m"}, "LEADS: 5m: a list of at least one"),
        ({"leads": ["x"]}, "LEAD: x: a duration"),
    ],
)
def test_lists_that_are_none_are_refused(given: dict[str, object], word: str) -> None:
    with pytest.raises(InputError) as caught:
        tg.sensitivity(a_history({"dev": office(3, 1, 2)}), **given)  # type: ignore[arg-type]
    assert str(caught.value).startswith(word)
