"""What the forecaster answers where there is little to go by: each case has a defined answer, never an error."""

from __future__ import annotations

import numpy as np
import pytest
from forecaster_builders import DAY, a_panel, daily

from controller.core.forecast import TOTAL, Forecasts
from forecaster.series import Panel
from forecaster.service import ALL, Forecaster, rolling
from forecaster.windows import standard_windows

WINDOWS = standard_windows(900)


def forecast(panel: Panel, experts: tuple[str, ...] = ("last_value", "seasonal")) -> Forecasts:
    service = Forecaster(900, experts=experts)
    now = panel.time(panel.rows)
    service.fit(panel, now)
    return service.forecasts(panel, now, "h100")


def test_without_a_fit_or_history_there_are_no_forecasts() -> None:
    assert Forecaster(900).forecasts(a_panel(daily(1)), 10**9, "h100") == Forecasts()
    assert forecast(a_panel(np.zeros((0, 1)))) == Forecasts()


def test_constant_demand_is_forecast_exactly() -> None:
    made = forecast(a_panel(np.full(2 * DAY, 8.0), ("a",)), ALL)
    assert {v for s in made.series for w in s.windows for v in w.milli_gpus} == {8000}


def test_constant_zero_is_forecast_as_zero() -> None:
    made = forecast(a_panel(np.zeros(2 * DAY), ("a",)), ALL)
    assert made.of("h100", "a") is not None
    assert {v for s in made.series for w in s.windows for v in w.milli_gpus} == {0}


def test_one_day_of_history_gives_a_forecast_near_the_last_value() -> None:
    made = forecast(a_panel(daily(1), ("a",)), ALL).of("h100", "a")
    assert made is not None
    assert made.windows[0].at(500) == pytest.approx(20_000, abs=5_000)


def test_a_team_whose_demand_was_never_known_has_no_forecast_and_spoils_no_other() -> None:
    values = np.column_stack([daily(3), np.full(3 * DAY, np.nan)])
    made = forecast(a_panel(values, ("a", "b")))
    assert made.of("h100", "a") is not None
    assert made.of("h100", "b") is None
    assert made.of("h100", TOTAL) is None


def test_a_new_team_is_forecast_from_its_first_known_hours() -> None:
    new = np.full(3 * DAY, np.nan)
    new[-12:] = 4.0
    made = forecast(a_panel(np.column_stack([daily(3), new]), ("a", "new"))).of("h100", "new")
    assert made is not None
    assert made.windows[0].at(500) == 4000


def test_a_renamed_team_keeps_its_history() -> None:
    old, new = daily(4), np.full(4 * DAY, np.nan)
    new[-20:], old[-20:] = old[-20:], np.nan
    joined = a_panel(np.column_stack([old, new]), ("old", "new")).renamed({"old": "new"})
    assert joined.names == ("new",)
    assert forecast(joined).of("h100", "new") == forecast(a_panel(daily(4), ("new",))).of("h100", "new")


def test_an_unknown_hour_holds_the_last_known_value() -> None:
    values = np.full(3 * DAY, 6.0)
    values[-12:] = np.nan
    made = forecast(a_panel(values, ("a",))).of("h100", "a")
    assert made is not None
    assert made.windows[0].at(900) == 6000


def test_quantiles_never_cross_and_are_never_negative(rhythm: Panel) -> None:
    made = rolling(rhythm.with_total(), windows=WINDOWS, experts=ALL)
    assert (np.diff(made.values, axis=-1) >= 0).all()
    assert (made.values >= 0).all()


def test_the_same_history_gives_the_same_forecast(rhythm: Panel) -> None:
    assert forecast(rhythm, ALL) == forecast(rhythm, ALL)


def test_with_a_rhythm_the_mixture_sees_the_rise_that_last_value_misses(rhythm: Panel) -> None:
    made = rolling(rhythm, windows=WINDOWS, start=5 * DAY)
    at_8 = 96  # cos: demand climbs by about 4.4 GPUs an hour here
    middle = made.of("serving", WINDOWS[1], 0.5)[at_8]
    last = rhythm.values[5 * DAY + at_8 - 1, 0]
    # the peak of 15–75 minutes ahead, from the formula that made the data
    true = 40 - 20 * np.cos(2 * np.pi * (96 + 14) / DAY)
    assert abs(middle - true) < abs(last - true) / 2
