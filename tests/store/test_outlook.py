"""Forecasts are stored as issued and compared only with what came later."""

from __future__ import annotations

from store_builders import DAY, T0, a_decision, a_forecast, a_team, put

from controller.store import ForecastWindow, Store

NEAR, FAR = (900, 1800), (900, 4500)


def test_a_forecast_that_several_ticks_use_is_stored_once(store: Store) -> None:
    issued = a_forecast(T0, "dev", (*NEAR, (5, 9)), (*FAR, (6, 11)))
    put(store, a_decision(T0), issued)
    put(store, a_decision(T0 + 60), issued)
    put(store, a_decision(T0 + 300), a_forecast(T0 + 300, "dev", (*NEAR, (7, 8))))
    points = store.forecast_series("east", "h100", "dev", NEAR)
    assert [(point.issued_at_s, point.levels_permille, point.milli_gpus, point.model) for point in points] == [
        (T0, (500, 900), (5, 9), "mix"),
        (T0 + 300, (500, 900), (7, 8), "mix"),
    ]
    assert store.forecast_windows("east", "h100", "dev") == [ForecastWindow(*NEAR, 2), ForecastWindow(*FAR, 1)]
    assert store.forecast_windows("east", "h100") == []


def test_the_newest_forecast_is_that_of_the_moment_asked_for(store: Store) -> None:
    put(store, a_decision(T0), a_forecast(T0, "", (*NEAR, (5, 9)), (*FAR, (6, 11))))
    put(store, a_decision(T0 + 300), a_forecast(T0 + 300, "", (*NEAR, (7, 8))))
    assert [point.milli_gpus for point in store.latest_forecast("east", "h100")] == [(7, 8)]
    earlier = store.latest_forecast("east", "h100", at_s=T0 + 299)
    assert [(point.end_s, point.milli_gpus) for point in earlier] == [(1800, (5, 9)), (4500, (6, 11))]
    assert store.latest_forecast("east", "h100", at_s=T0 - 1) == []


def test_a_long_range_of_forecasts_is_thinned_by_stride(store: Store) -> None:
    for step in range(24):
        put(store, a_decision(T0 + 300 * step), a_forecast(T0 + 300 * step, "dev", (*NEAR, (step, step))))
    points = store.forecast_series("east", "h100", "dev", NEAR, max_points=4)
    assert [point.issued_at_s - T0 for point in points] == [0, 1800, 3600, 5400]
    part = store.forecast_series("east", "h100", "dev", NEAR, T0 + 600, T0 + 1200)
    assert [point.milli_gpus[0] for point in part] == [2, 3]


def test_actuals_are_the_maximum_of_the_window_and_of_the_same_a_day_earlier(store: Store) -> None:
    # Demand today: 100 at T0, then 101, 102, ... each 5 minutes, a spike of 500 at +20 min; yesterday 40 all along.
    yesterday = [(T0 - DAY + 300 * step, "h100", "dev", 40, 40 + step) for step in range(12)]
    store.load_demand("east", yesterday)
    for step in range(9):
        demand = 500 if step == 4 else 100 + step
        put(
            store,
            a_decision(T0 + 300 * step, teams=(a_team(demand=demand),)),
            a_forecast(T0 + 300 * step, "dev", (*NEAR, (step, 2 * step))),
        )
    scored = store.forecast_vs_actual("east", "h100", "dev", NEAR)
    # Windows are [+15 min, +30 min): bins 3-5 from the issue. The last whole one is issued at +15 min (bins 6-8).
    assert [(one.forecast.issued_at_s - T0, one.actual, one.last_value, one.seasonal) for one in scored] == [
        (0, 500, 100, 45),
        (300, 500, 101, 46),
        (600, 107, 102, 47),
        (900, 108, 103, 48),
    ]


def test_a_window_that_nobody_saw_whole_is_not_compared(store: Store) -> None:
    for step in (0, 1, 2, 3, 5, 6, 7, 8, 9):
        put(store, a_decision(T0 + 300 * step), a_forecast(T0 + 300 * step, "dev", (*NEAR, (1, 1))))
    scored = store.forecast_vs_actual("east", "h100", "dev", NEAR)
    assert [(one.forecast.issued_at_s - T0) // 300 for one in scored] == [2, 3]
    assert [one.seasonal for one in scored] == [None, None]
