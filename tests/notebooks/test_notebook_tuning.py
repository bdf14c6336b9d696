"""Trying settings and weights: costs agree with a replay written out step by step, choices with their definition."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from notebook_sources import DAY_ROWS, MONDAY_S, a_history, office, wavy

from controller.backtest.run import bench
from controller.core.errors import InputError
from dashboard import notebook as tg
from dashboard.notebook.tuning import COSTS, HOLDS, LABELS, QUANTILES, WINDOWS, Trial, terms_of
from dashboard.notebook.waiting import Now, Sweep


@pytest.fixture(scope="module")
def trial() -> Trial:
    return tg.try_settings(a_history({"dev": wavy(4, 40, 30)}), lead="10m", wait_weight=5, gpus_per_node=4)


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    return tg.sweep(a_history({"dev": wavy(4, 40, 30)}), lead="10m", gpus_per_node=4, weights=(9, 3, 9))


def test_every_combination_is_tried_once(trial: Trial) -> None:
    assert len(trial.table) == len(QUANTILES) * len(WINDOWS) * len(HOLDS)
    assert not trial.table[["quantile", "window", "hold"]].duplicated().any()


def test_costs_of_constant_demand_by_hand() -> None:
    """18 GPUs in nodes of 8 are three nodes, of which 6 GPUs stand idle; nothing waits, nothing is started."""
    history = a_history({"dev": office(3, 18, 18)})
    made = tg.try_settings(history, quantiles=(0.5, 0.9))
    judged_h = (history.panel.rows - history.judge_from) / 12
    assert made.table["idle GPU-h"].tolist() == pytest.approx([6 * judged_h] * len(made.table))
    assert made.table["waiting GPU-h"].abs().max() == 0
    assert made.table["starting GPU-h"].abs().max() == 0
    assert made.headroom[made.chosen] == 6


def test_a_cost_adds_up(trial: Trial) -> None:
    table = trial.table
    expected = table["idle GPU-h"] + 5 * table["waiting GPU-h"] + table["starting GPU-h"]
    assert table["cost"].tolist() == pytest.approx(expected.tolist())
    nodes = table["starting GPU-h"] / (4 * 600 / 3600 + 2)  # boot of four GPUs, and churn
    assert nodes.tolist() == pytest.approx(nodes.round().tolist())


def test_a_longer_hold_never_waits_more_and_never_idles_less(trial: Trial) -> None:
    for _, rows in trial.table.groupby(["quantile", "window"]):
        assert rows["waiting GPU-h"].is_monotonic_decreasing
        assert rows["idle GPU-h"].is_monotonic_increasing


def test_the_choice_is_made_before_judging_and_costed_after(trial: Trial) -> None:
    cheapest = trial.table.sort_values("cost while learning").iloc[0]
    assert trial.chosen == (cheapest["quantile"], cheapest["window"], cheapest["hold"])
    assert trial.best(3)["cost while learning"].is_monotonic_increasing
    against = trial.against(*trial.chosen)
    ours = against.loc[f"quantile {trial.chosen[0]:g}, window {trial.chosen[1]}, hold {trial.chosen[2]}"]
    assert ours["cost"] == cheapest["cost"]
    assert against.loc["tuned rule", "cost against the tuned rule"] == 0
    rule, best = (against.loc[LABELS[name], "cost"] for name in ("tuned_rule", "optimum"))
    closed = (rule - ours["cost"]) / (rule - best)
    assert f"**{abs(closed) * 100:.0f} %**" in trial.verdict()
    assert ("closes" if closed > 0 else "loses") in trial.verdict()


def test_what_was_cheap_on_judged_days_only_is_not_chosen(trial: Trial) -> None:
    table = trial.table.copy()
    dearest = table["cost while learning"].idxmax()
    table.loc[dearest, "cost"] = 0.0
    flattered = replace(trial, table=table)
    assert flattered.chosen == trial.chosen
    assert 0.0 not in flattered.best()["cost"].tolist()


def test_policies_beside_it_are_the_benchmarks(trial: Trial) -> None:
    report = bench(trial.history.trace(), terms_of(trial.history, "10m", 5, 4), "demand")
    against = trial.against(0.5, "15m", "0s")
    for name, row in report.rows.items():
        starting = row.boot_gpu_h + row.churn_gpu_h
        expected = [row.idle_gpu_h, row.wait_gpu_h, starting, row.cost]
        assert against.loc[LABELS[name], COSTS[:4]].tolist() == pytest.approx(expected)


def test_changes_are_limits_around_what_cost_about_as_little(trial: Trial) -> None:
    draft = tg.policy(trial.history)
    changes = trial.changes(draft)
    best = trial.table["cost while learning"].min()
    good = trial.table.loc[trial.table["cost while learning"] <= 1.1 * best, "quantile"]
    assert changes["spec.learning.quantile"] == [good.min(), good.max()]
    assert changes["spec.pools[gpus].waitWeight"] == 5
    after = draft.change(changes).policy
    assert after.pools[0].wait_weight == 5
    assert after.learning.low_permille == round(1000 * good.min())
    assert after.learning.max_headroom_gpus == math.ceil(trial.headroom[trial.chosen])
    with pytest.raises(InputError, match="POOL: a10: one of gpus"):
        trial.changes(draft, pool="a10")


def test_a_weight_that_a_policy_cannot_write_is_left_out() -> None:
    made = tg.try_settings(a_history({"dev": office(2, 4, 8)}), wait_weight=2.5, quantiles=(0.5,))
    assert set(made.changes(tg.policy(made.history))) == {"spec.learning.quantile", "spec.learning.maxHeadroom"}


@pytest.mark.parametrize(
    ("act", "word"),
    [
        (lambda trial: trial.against(0.55, "15m", "0s"), "setting: 0.55, 15m, 0s: quantile of 0.3, 0.4"),
        (lambda trial: tg.try_settings(trial.history, lead="x"), "LEAD: x: a duration"),
        (lambda trial: tg.try_settings(trial.history, wait_weight=float("nan")), "WAIT_WEIGHT: nan: a number"),
        (lambda trial: tg.try_settings(trial.history, gpus_per_node=0), "GPUS_PER_NODE: 0: 1 or more"),
        (lambda trial: tg.try_settings(trial.history.last_days(1)), "history for trying settings: 1.0 days"),
        (lambda trial: tg.try_settings(trial.history, quantiles=()), "QUANTILES: none: at least one number"),
        (
            lambda trial: tg.try_settings(trial.history, quantiles=(90,)),
            "QUANTILES: 90: at least one number, all between 0 and 1",
        ),
        (lambda trial: tg.sweep(trial.history, weights=()), "WEIGHTS: none: at least one wait weight"),
        (lambda trial: tg.sweep(trial.history, weights=(-1,)), "WAIT_WEIGHT: -1: a number, 0 or more"),
        (lambda trial: tg.sweep(trial.history.last_days(1)), "history for weighing idle against waiting: 1.0 days"),
    ],
)
def test_what_cannot_be_tried_is_refused_in_one_line(act, word: str, trial: Trial) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError) as caught:
        act(trial)
    assert str(caught.value).startswith(word)
    assert "\n" not in str(caught.value)


# the cost of waiting


def test_a_weight_is_a_quantile_and_back() -> None:
    assert tg.quantile(9) == 0.9
    assert tg.quantile(0) == 0
    assert tg.implied_weight(0.9) == pytest.approx(9)
    assert tg.implied_weight(1) == math.inf


def test_a_sweep_is_one_benchmark_a_weight(sweep: Sweep) -> None:
    assert sweep.weights == (3, 9)
    report = bench(sweep.history.trace(), terms_of(sweep.history, "10m", 9, 4), "demand")
    row, expected = sweep.of("tuned rule").loc[9], report.rows["tuned_rule"]
    assert row["idle"] == pytest.approx(expected.idle_gpu_h)
    assert row["waiting"] == pytest.approx(expected.wait_gpu_h)
    assert row["nodes added"] == expected.node_adds
    with pytest.raises(InputError, match="policy: mine: one of always the peak"):
        sweep.of("mine")


def test_choices_tell_what_an_hour_less_of_waiting_took() -> None:
    history = a_history({"dev": office(4, 4, 8)}, judge_from=2 * DAY_ROWS)
    rows = [("tuned rule", w, idle, wait, 10.0, 1.0, 0.0) for w, idle, wait in ((1, 20, 50), (9, 60, 30), (30, 90, 30))]
    columns = ["policy", "w", "idle", "waiting", "starting", "nodes added", "cost"]
    made = Sweep(history, 900, 8, pd.DataFrame(rows, columns=columns))
    table = made.choices("tuned rule", price=2.0)
    assert table["quantile"].tolist() == [0.5, 0.9, 0.97]
    assert table["idle GPU-h a day"].tolist() == [10, 30, 45]
    spent = table["GPU-h spent per GPU-h less waiting"]
    assert math.isnan(spent[1])
    assert spent[9] == 2.0  # 40 idle GPU-hours for 20 less waiting
    assert math.isnan(spent[30])
    assert table["money a day"].tolist() == [30, 70, 100]
    assert "money a day" not in made.choices("tuned rule")
    said = made.verdict("tuned rule")
    assert "From w = 1 to w = 30" in said
    assert "**10 GPU-hours less waiting a day** for **35 more idle**" in said


def test_what_is_paid_today_is_read_off_the_record(sweep: Sweep) -> None:
    times = MONDAY_S + 300 * np.arange(DAY_ROWS)
    waiting = np.where(np.arange(DAY_ROWS) < 72, 4.0, 0.0)  # six hours of the day
    supply = pd.DataFrame({"ready": 8.0, "held": 6.0, "waiting": waiting}, index=times)
    recorded = Sweep(a_history({"dev": office(4, 4, 8)}, supply=supply), 900, 8, sweep.table)
    now = tg.paying_now(recorded)
    assert (now.served, now.idle, now.waiting) == (0.75, pytest.approx(48), pytest.approx(24))
    assert now.weight == pytest.approx(3)
    said = now._repr_markdown_()
    assert "nothing waited 75 % of the time, 48 GPU-hours a day stand idle and 24 GPU-hours a day wait" in said
    assert "**w = 3.0**" in said


def test_where_only_demand_is_known_it_is_what_autoscalers_do(sweep: Sweep) -> None:
    now = tg.paying_now(sweep)
    assert now.what == "Autoscalers as they come, replayed"
    days = sweep.judged_days
    row = sweep.of("reactive, as autoscalers come").loc[3]
    assert (now.idle, now.waiting) == (row["idle"] / days, row["waiting"] / days)
    assert 0 < now.served < 1


def test_nothing_ever_waited() -> None:
    assert "beyond any number" in Now("As recorded", 1.0, float("nan"), 0.0)._repr_markdown_()
