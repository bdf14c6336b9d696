"""What is asked of demand, on demand whose answers are known by construction."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from notebook_sources import DAY_ROWS, MONDAY_S, a_history, office

from dashboard import notebook as tg
from dashboard.notebook import explore
from dashboard.notebook.explore import autocorrelation, runs


def findings(**teams: np.ndarray) -> list[tuple[str, str, float]]:
    table = tg.quality(a_history(dict(teams)))
    return [(row["team"], row["what"], row["hours"]) for _, row in table.iterrows()]


def test_good_data_has_no_findings() -> None:
    assert findings(dev=office(3, 4, 16)) == []


def test_what_is_odd_is_named_with_its_length() -> None:
    gap, zero, flat, spike = (office(3, 4, 16) for _ in range(4))
    gap[24:36] = np.nan
    zero[500:506] = 0
    flat[:] = np.linspace(5, 6, len(flat))
    flat[100:400] = 5.5
    spike[700] = 500
    assert findings(gap=gap) == [("gap", "gap", 1.0)]
    assert findings(zero=zero) == [("zero", "sudden zero", 0.5)]
    assert findings(flat=flat) == [("flat", "flat", pytest.approx(299 / 12))]
    assert findings(spike=spike) == [("spike", "spike", pytest.approx(1 / 12))]
    assert findings(never=office(1, 0, 0)) == [("never", "no demand", 24.0)]


def test_a_night_without_work_is_no_outage() -> None:
    slow = np.concatenate([np.linspace(16, 0, 72), np.zeros(72), np.linspace(0, 16, 72), np.full(72, 16.0)])
    assert [what for _, what, _ in findings(dev=np.tile(slow, 3))] == []


def test_what_all_teams_have_is_one_finding_and_the_longest_comes_first() -> None:
    first, second = office(3, 4, 16), office(3, 2, 8)
    first[24:36], second[24:36] = np.nan, np.nan
    second[600:624] = np.nan
    assert findings(a=first, b=second) == [("b", "gap", 2.0), ("all teams", "gap", 1.0)]


def test_runs_are_half_open() -> None:
    assert runs(np.array([True, True, False, True])) == [(0, 2), (3, 4)]
    assert runs(np.array([False])) == []


def test_autocorrelation() -> None:
    wave = np.sin(2 * np.pi * np.arange(4 * DAY_ROWS) / DAY_ROWS)
    assert autocorrelation(wave, DAY_ROWS) == pytest.approx(1)
    assert autocorrelation(wave, DAY_ROWS // 2) == pytest.approx(-1)
    assert math.isnan(autocorrelation(wave, 4 * DAY_ROWS))
    assert math.isnan(autocorrelation(wave, 0))
    assert math.isnan(autocorrelation(np.ones(4 * DAY_ROWS), DAY_ROWS))


def test_rhythm_tells_days_alike_from_a_random_walk() -> None:
    walk = np.abs(100 + np.cumsum(np.random.default_rng(3).normal(0, 1, 8 * DAY_ROWS)))
    table = tg.rhythm(a_history({"days": office(8, 4, 16), "walk": walk}))
    assert table.index.tolist() == ["all teams", "days", "walk"]
    assert table.loc["days", "same time yesterday"] == pytest.approx(1)
    assert table.loc["days", "same time last week"] == pytest.approx(1)
    assert table.loc["days", "mean GPUs"] == pytest.approx(9)  # 4 · 14 h + 16 · 10 h, over 24 h
    assert table.loc["days", "peak GPUs"] == 16
    # Twice a day, for six rows of 5 minutes each, demand is 12 off what it was half an hour before.
    moves = 12 * 2 * 6 / DAY_ROWS / 9 * (8 * DAY_ROWS) / (8 * DAY_ROWS - 6)
    assert table.loc["days", "moves in 30 min"] == pytest.approx(moves)
    assert str(table.loc["days", "reads as"]).startswith("has rhythm")
    assert str(table.loc["walk", "reads as"]).startswith("no rhythm")


def test_too_little_to_say() -> None:
    table = tg.rhythm(a_history({"dev": office(1, 4, 16)}))
    assert table.loc["dev", "reads as"] == "too short or too constant to say"


def test_peaks_that_never_meet_and_peaks_that_always_do() -> None:
    early, late = office(2, 1, 10, 8, 10), office(2, 1, 10, 12, 14)
    made = tg.peaks(a_history({"early": early, "late": late, "twin": early, "none": office(2, 0, 0)}))
    assert made.together.loc["early", "late"] == 0
    assert made.together.loc["early", "twin"] == 1
    assert "none" not in made.together
    assert made.sum_of_peaks == 30
    assert made.peak_of_sum == 21
    assert "take **30 GPUs**, one pool for all takes **21**: 30 % less" in made._repr_markdown_()


def test_a_plateau_is_a_peak_and_constant_demand_always_is() -> None:
    made = tg.peaks(a_history({"office": office(2, 1, 10), "same": office(2, 5, 5)}))
    assert made.together.loc["office", "same"] == 1
    assert made.together.loc["same", "office"] == pytest.approx(10 / 24)


def test_a_week_by_day_and_hour() -> None:
    table = explore.week(a_history({"dev": office(2, 4, 16)}))
    assert table.shape == (7, 24)
    assert table.loc[0, 8] == 16
    assert table.loc[1, 7] == 4
    assert math.isnan(table.loc[2, 8])  # no Wednesday


def test_idle_and_waiting_in_a_sentence() -> None:
    history = a_history({"dev": office(1, 4, 4)})
    assert "idle and waiting GPUs are unknown here" in tg.idle_and_waiting(history)
    times = MONDAY_S + 300 * np.arange(24)
    supply = pd.DataFrame({"ready": 8.0, "held": 6.0, "waiting": np.repeat([0.0, 4.0], 12)}, index=times)
    said = tg.idle_and_waiting(a_history({"dev": office(1, 4, 4)}, supply=supply))
    # 2 idle for two hours, 4 waiting for one of them, in which 2 could have served.
    assert said == (
        "Work waited **4.0 GPU-hours** in all, while **4.0 GPU-hours** stood idle;"
        " in 2.0 GPU-hours both happened at once."
    )
    unknown = supply.assign(ready=np.nan)
    assert tg.idle_and_waiting(a_history({"dev": office(1, 4, 4)}, supply=unknown)) == (
        "Work waited **4.0 GPU-hours** in all."
    )
