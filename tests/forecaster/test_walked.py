"""What a fit walked through is what a backtest of the same weeks forecasts."""

from __future__ import annotations

import numpy as np

from forecaster.series import Panel
from forecaster.service import CHEAP, Forecaster, rolling
from forecaster.windows import Window

DAY = 86_400


def test_the_weeks_of_a_fit_are_forecast_as_a_backtest_forecasts_them() -> None:
    rows = np.arange(5 * 288)
    demand = 40 + 30 * np.sin(2 * np.pi * rows / 288) + np.random.default_rng(1).normal(0, 2, len(rows))
    panel = Panel(("",), 7 * DAY, 300, "UTC", demand[:, None])
    model = Forecaster(900, experts=CHEAP, levels=(0.2, 0.5, 0.9), history_days=4)
    assert model.walked() is None
    model.windows = (Window(900, 900), Window(0, 4500))
    model.fit(panel, panel.time(panel.rows))
    walked = model.walked()
    assert walked is not None
    origin_s, made = walked
    assert origin_s == panel.time(288)
    last_four = Panel(("",), origin_s, 300, "UTC", panel.values[288:])
    again = rolling(last_four, windows=model.windows, levels=model.levels, experts=CHEAP)
    assert np.array_equal(made.values, again.values)
