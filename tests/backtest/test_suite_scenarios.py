"""Each scenario on numbers that can be followed by hand; made demand; and the account, against the benchmark's own."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.backtest import scenarios, synthetic
from controller.backtest.run import bench
from controller.backtest.scenarios import Stage
from controller.backtest.synthetic import Burst, Shape, Shift
from controller.backtest.traces import Trace
from controller.core.errors import InputError
from controller.learning import optimum
from controller.learning.fleet import Terms, replay
from forecaster.series import Panel

HOUR = 3600


def hourly(values: list[float], origin_h: int = 0) -> Panel:
    """A total by the hour, from ``origin_h`` o'clock on."""
    return Panel(("",), origin_h * HOUR, HOUR, "UTC", np.array(values, dtype=float)[:, None])


def told(stage: Stage) -> list[float]:
    return [float(value) for value in stage.told.values[:, 0]]


def test_the_level_doubles_in_the_middle_of_the_judged_part() -> None:
    stage = scenarios.level_doubled(hourly([1, 2, 3, 4, 5, 6]), 2)
    assert told(stage) == [1, 2, 3, 4, 10, 12]
    assert stage.truth.tolist() == [1, 2, 3, 4, 10, 12]


def test_everything_comes_three_hours_later_from_the_middle_on() -> None:
    stage = scenarios.phase_shifted(hourly(list(range(10))), 2)
    assert told(stage) == [0, 1, 2, 3, 4, 5, 3, 4, 5, 6]


def test_a_day_in_the_middle_is_without_demand() -> None:
    stage = scenarios.day_of_outage(hourly([7] * 60), 10)
    # 50 judged hours, 24 of them empty: 13 before and 13 after.
    assert told(stage) == [7] * 23 + [0] * 24 + [7] * 13


def test_a_week_of_zero_is_put_in_and_nothing_is_lost() -> None:
    stage = scenarios.week_of_zero(hourly([1, 2, 3, 4, 5, 6]), 2)
    assert told(stage) == [1, 2, 3, 4, *[0] * 168, 5, 6]
    assert len(stage.truth) == len(stage.stock_out) == 174


def test_missing_hours_are_unknown_to_policies_and_paid_for_all_the_same() -> None:
    stage = scenarios.missing_hours(hourly([5] * 48), 24)
    unknown = [hour for hour, value in enumerate(told(stage)) if math.isnan(value)]
    assert unknown == [34, 35, 36]
    assert stage.truth.tolist() == [5] * 48


def test_stock_outs_are_in_the_morning_by_the_clock_of_the_trace() -> None:
    stage = scenarios.stock_outs(hourly([5] * 48, origin_h=6), 18)
    # Row 0 is 06:00; the judged part begins at midnight, so 08:00 is row 26.
    assert np.flatnonzero(stage.stock_out).tolist() == [26, 27, 28, 29]


def test_another_past_is_put_before_at_the_level_and_the_time_of_day_of_its_own() -> None:
    mine = hourly([10, 10, 10, 10, 7, 8], origin_h=2)  # judged from 06:00, mean of the past 10
    other = hourly([1, 2, 3, 4, 5, 6, 7, 8, 9], origin_h=0)  # its part before 08:00 ends at 06:00: 1 … 6, mean 3.5
    stage = scenarios.others_past(mine, 4, other, 8)
    assert stage.judge_from == 6
    assert told(stage) == pytest.approx([value * 10 / 3.5 for value in (1, 2, 3, 4, 5, 6)] + [7, 8])
    assert stage.told.time(6) == 6 * HOUR


def test_a_past_without_demand_and_a_judged_part_too_short_are_refused() -> None:
    with pytest.raises(InputError, match="demand in the part before"):
        scenarios.others_past(hourly([1, 2]), 1, hourly([0, 0]), 1)
    with pytest.raises(InputError, match=r"1\.2 judged days: at least 1\.5"):
        scenarios.prepare("day_of_outage", hourly([1] * 39), 10)
    with pytest.raises(InputError, match="second trace"):
        scenarios.prepare("others_past", hourly([1] * 60), 10)


def test_the_past_is_never_touched_and_no_input_is_changed() -> None:
    total = hourly([float(value) for value in range(80)])
    before = total.values.copy()
    for scenario in scenarios.SCENARIOS:
        stage = scenarios.prepare(scenario.name, total, 40, (total, 40))
        if scenario.name != scenarios.OTHERS_PAST:
            assert told(stage)[:40] == list(range(40))
        assert (total.values == before).all()


def test_by_hand_a_node_that_a_stock_out_puts_off() -> None:
    terms = Terms(gpus_per_node=8, lead_s=300, wait_weight=9.0)
    demand, targets = np.array([8.0] * 4), np.ones((4, 1))
    # Asked for in step 0, due in step 1; steps 1 and 2 let nobody in, so it serves in step 3 and is asked for once.
    account = replay(demand, targets, terms, 0, np.array([False, True, True, False]))
    assert account.wait[:, 0] == pytest.approx([8 / 12, 8 / 12, 8 / 12, 0])
    assert account.adds[:, 0].tolist() == [1, 0, 0, 0]


def test_by_hand_a_lead_below_a_step_in_a_stock_out() -> None:
    terms = Terms(gpus_per_node=8, lead_s=60, wait_weight=9.0)
    account = replay(np.array([8.0] * 3), np.ones((3, 1)), terms, 0, np.array([True, True, False]))
    # It arrives a minute into the first step that lets nodes in.
    assert account.wait[:, 0] == pytest.approx([8 / 12, 8 / 12, 8 / 60])
    assert account.adds[:, 0].tolist() == [1, 0, 0]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 24), st.booleans()), min_size=1, max_size=5),
    st.sampled_from([300, 600]),
    st.integers(0, 2),
)
def test_no_plan_that_respects_the_stock_out_is_cheaper(steps: list[tuple[int, bool]], lead_s: int, first: int) -> None:
    terms = Terms(gpus_per_node=8, lead_s=lead_s, wait_weight=9.0)
    demand, dry = np.array([float(gpus) for gpus, _ in steps]), np.array([out for _, out in steps])

    def cost(plan: tuple[int, ...]) -> float:
        before, paid = first, 0.0
        for t, nodes in enumerate(plan):
            if nodes > before and (dry[t] or t * 300 < lead_s):
                return math.inf
            spare = 8 * nodes - demand[t]
            paid += terms.per_add * max(0, nodes - before) + (max(spare, 0) + 9 * max(-spare, 0)) / 12
            before = nodes
        return paid

    solved = optimum.solve(demand, terms, first, most_nodes=3, stock_out=dry)
    assert solved.cost == pytest.approx(min(cost(plan) for plan in itertools.product(range(4), repeat=len(steps))))
    assert cost(tuple(solved.plan.tolist())) == pytest.approx(solved.cost)


def test_the_account_without_any_scenario_is_the_benchmarks() -> None:
    made = synthetic.panel(3, days=5)
    terms = Terms(8, 900, 9.0)
    trace = Trace("made", Path(), made, 3 * 288, has_jobs=False)
    assert scenarios.judge(scenarios.staged(made, 3 * 288), terms) == bench(trace, terms, "demand").rows


def test_a_controller_holds_where_input_is_missing() -> None:
    made = synthetic.panel(3, days=5)
    stage = scenarios.prepare("missing_hours", made, 3 * 288)
    rows = scenarios.judge(stage, Terms(8, 900, 9.0))
    # Taking missing for zero would leave all of three hours' demand waiting each morning.
    missed = float(stage.truth[np.isnan(stage.told.values[:, 0])].sum()) / 12
    assert all(row.wait_gpu_h < 0.3 * missed for name, row in rows.items() if name != "static_peak")


def test_made_demand_by_hand() -> None:
    still = Shape(mean_gpus=100, daily=0.5, peak_hour=14, weekend=0.6, noise=0.0)
    values = synthetic.demand(still, days=7).reshape(7, 288)
    assert values[0, 14 * 12] == pytest.approx(150)
    assert values[0, 2 * 12] == pytest.approx(50)
    assert values[0, 8 * 12] == pytest.approx(100)
    assert values[5, 14 * 12] == pytest.approx(90)  # Saturday


def test_made_bursts_and_shifts_by_hand() -> None:
    shape = Shape(100, 0.0, 0, 1.0, 0.0, (Burst(600, 40, 300),), (Shift(1200, 0.5), Shift(1800, 3.0)))
    assert synthetic.demand(shape, days=1)[:8] == pytest.approx(
        [100, 100, 140, 120, 50 + 10, 50 + 5, 150 + 2.5, 150 + 1.25]
    )


def test_a_seed_is_the_same_each_time_and_unlike_the_next() -> None:
    assert (synthetic.panel(1, days=2).values == synthetic.panel(1, days=2).values).all()
    assert not (synthetic.panel(1, days=2).values == synthetic.panel(2, days=2).values).any()
    assert all((synthetic.panel(seed, days=2).values >= 0).all() for seed in range(5))
