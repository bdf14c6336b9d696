"""Series: right at full resolution, thinned to what a chart can show, whole after pruning."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event
from store_builders import DAY, T0, a_decision, a_pool, a_team, put

from controller.store import Store
from controller.store.samples import step_for


def fill(store: Store, demands: list[int], every_s: int = 300) -> None:
    for step, demand in enumerate(demands):
        team = a_team(demand=demand, held=demand // 2, share=7, longest_wait_s=step, starved=demand > 4000)
        pool = a_pool(demand_milli_gpus=demand, nodes_ready=step)
        put(store, a_decision(T0 + step * every_s, teams=(team,), pools=(pool,)))


def test_a_short_series_has_a_point_a_tick(store: Store) -> None:
    fill(store, [1000, 2000, 6000])
    series = store.team_series("east", "h100", "dev")
    assert series.step_s == 0
    assert series.at_s == [T0, T0 + 300, T0 + 600]
    assert series["demand"] == series["demand_max"] == [1000, 2000, 6000]
    assert series["longest_wait_s_max"] == [0, 1, 2]
    assert series["starved_max"] == [0, 0, 1]
    assert series["share"] == [7, 7, 7]
    assert store.pool_series("east", "h100")["nodes_ready"] == [0, 1, 2]


def test_a_range_begins_at_its_start_and_ends_before_its_stop(store: Store) -> None:
    fill(store, [1000, 2000, 6000])
    assert store.team_series("east", "h100", "dev", T0 + 300, T0 + 600)["demand"] == [2000]
    assert store.pool_series("east", "h100", T0 + 301, T0 + 601)["demand_milli_gpus"] == [6000]
    assert len(store.team_series("east", "h100", "dev", T0 + 601)) == 0


def test_a_thinned_series_has_the_mean_and_the_maximum_of_each_stretch(store: Store) -> None:
    fill(store, [1000, 2000, 6000, 3001])
    series = store.team_series("east", "h100", "dev", max_points=2)
    assert series.step_s == 600
    assert series.at_s == [T0, T0 + 600]
    assert series["demand"] == [1500, 4501]  # 4500.5, halves up
    assert series["demand_max"] == [2000, 6000]
    assert series["held_max"] == [1000, 3000]
    assert series["starved_max"] == [0, 1]
    pool = store.pool_series("east", "h100", max_points=2)
    assert (pool["demand_milli_gpus"], pool["nodes_ready"]) == ([1500, 4501], [1, 3])


def test_an_hour_weighs_as_much_as_it_has_ticks(store: Store) -> None:
    # One tick of 9000 in the first hour, three of 1000 in the second: the mean of the four is 3000, not 5000.
    for at_s, demand in ((0, 9000), (3600, 1000), (3900, 1000), (4200, 1000), (7200, 500)):
        put(store, a_decision(T0 + at_s, teams=(a_team(demand=demand),)))
    series = store.team_series("east", "h100", "dev", max_points=2)
    assert (series.step_s, series["demand"], series["demand_max"]) == (7200, [3000, 500], [9000, 500])


def test_thinning_agrees_with_pandas_at_every_width(store: Store) -> None:
    rng = np.random.default_rng(7)
    demands = [int(value) for value in rng.integers(0, 64_000, 160)]
    fill(store, demands, every_s=660)
    frame = pd.Series(demands, index=pd.to_datetime([T0 + 660 * i for i in range(160)], unit="s"))
    for points in (150, 100, 60, 20, 6, 3, 2):
        series = store.team_series("east", "h100", "dev", max_points=points)
        assert 0 < len(series) <= points
        grouped = frame.resample(f"{series.step_s}s", origin="epoch").agg(["mean", "max"]).dropna()
        assert series.at_s == [int(moment.timestamp()) for moment in grouped.index]
        assert series["demand_max"] == [int(value) for value in grouped["max"]]
        assert series["demand"] == [int(np.floor(value + 0.5)) for value in grouped["mean"]]


@given(first=st.integers(0, 2_000_000_000), span=st.integers(1, 5 * 366 * DAY), points=st.integers(2, 3000))
def test_a_width_never_gives_more_points_than_asked_for(first: int, span: int, points: int) -> None:
    step = step_for(first, first + span, points)
    assert (first + span - 1) // step - first // step + 1 <= points


def test_after_pruning_the_hours_still_tell_the_story(store: Store) -> None:
    fill(store, [2000] * 12 + [5000] * 12)
    now = T0 + 36 * DAY
    put(store, a_decision(now, teams=(a_team(demand=9000),)))
    store.prune(now)
    assert store.info().rows["team_samples"] == 1
    series = store.team_series("east", "h100", "dev", T0, now + 1, max_points=1000)
    assert series.step_s == 3600
    assert series.at_s == [T0, T0 + 3600, now]
    assert series["demand"] == [2000, 5000, 9000]
    late = store.team_series("east", "h100", "dev", now - DAY, now + 1)
    assert (late.step_s, late["demand"]) == (0, [9000])


def test_from_an_hour_on_the_hours_are_read_and_not_every_tick(store: Store) -> None:
    fill(store, [1000, 2000, 6000, 3001], every_s=1800)
    asked = []

    def listen(_c: object, _cursor: object, sql: str, *_: object) -> None:
        asked.append(sql)

    event.listen(store._engine, "before_cursor_execute", listen)
    series = store.team_series("east", "h100", "dev", max_points=2)
    assert (series.step_s, series["demand"]) == (3600, [1500, 4501])
    assert "FROM team_hours" in asked[-1]
    assert "GROUP BY" in asked[-1]


def test_demand_is_kept_on_the_grid_of_five_minutes(store: Store) -> None:
    for at_s, demand in ((0, 1000), (60, 4000), (299, 1001), (300, 7000)):
        put(
            store,
            a_decision(T0 + at_s, teams=(a_team(demand=demand),), pools=(a_pool(demand_milli_gpus=demand + 1),)),
        )
    total, dev = store.demand_history("east")
    assert (total.team, dev.team) == ("", "dev")
    assert dev.at_s == total.at_s == [T0, T0 + 300]
    assert (dev.mean, dev.max) == ([2000, 7000], [4000, 7000])
    assert (total.mean, total.max) == ([2001, 7001], [4001, 7001])
    assert store.demand_history("east", T0 + 300)[1].mean == [7000]
    assert store.demand_history("east", T0, T0 + 300)[1].mean == [2000]


def test_loaded_history_fills_what_nobody_saw_and_changes_nothing_else(store: Store) -> None:
    put(store, a_decision(T0, teams=(a_team(demand=1000),)))
    rows = [(T0 - 600, "h100", "dev", 10, 20), (T0, "h100", "dev", 77, 77), (T0 - 600, "h100", "", 30, 40)]
    store.load_demand("east", rows)
    store.load_demand("east", rows)
    total, dev = store.demand_history("east")
    assert (dev.at_s, dev.mean, dev.max) == ([T0 - 600, T0], [10, 1000], [20, 1000])
    assert total.mean[0] == 30
    columns = store.demand_series("east", "h100", "dev")
    assert (columns.step_s, columns["demand"], columns["demand_max"]) == (300, [10, 1000], [20, 1000])
    store.load_demand("east", [(T0 + 300, "h100", "dev", 3, 1500), (T0 + 600, "h100", "dev", 5, 5)])
    thin = store.demand_series("east", "h100", "dev", T0, max_points=2)
    assert (thin.step_s, thin["demand"], thin["demand_max"]) == (600, [502, 5], [1500, 5])  # 501.5, halves up


@pytest.mark.parametrize("points", [0, 1, 2, 3, 10])
def test_thinned_demand_never_has_more_points_than_asked_for(store: Store, points: int) -> None:
    store.load_demand("east", [(T0 + 300 * i, "h100", "dev", i, i) for i in range(300)])
    assert 0 < len(store.demand_series("east", "h100", "dev", max_points=points)) <= max(points, 2)
