"""statsforecast's models on our decisions: walked without look-ahead, judged on the same rows as ours."""

from __future__ import annotations

import builtins
from dataclasses import replace

import numpy as np
import pytest
from forecaster_builders import DAY, a_panel, daily

from controller.core.errors import InputError
from forecaster.evaluate import score_beside_peers
from forecaster.peers import NAMES, peers
from forecaster.windows import Window

WINDOW = Window(1800, 900)  # rows 6, 7 and 8 after the decision's own
HOUR = 12
LEVELS = (0.1, 0.5, 0.9)


def test_a_seasonal_naive_forecast_is_yesterdays_maximum_moved_by_earlier_misses() -> None:
    values = daily(5)
    made = peers(a_panel(values, ("",)), HOUR, (WINDOW,), LEVELS, ("SeasonalNaive",))
    at = 100  # the decision at row 1200
    row = at * HOUR
    assert made.rows[at] == row
    offset = max(0.5, 0.02 * values[:DAY].mean())

    def yesterday(r: int) -> float:
        return float(np.log(values[r - DAY + 6 : r - DAY + 9].max() + offset))

    # from after two days on there are forecasts; the windows of those made up to row − 9 are over
    earlier = [r for r in range(2 * DAY + HOUR, row, HOUR) if r + 8 < row]
    misses = [float(np.log(values[r + 6 : r + 9].max() + offset)) - yesterday(r) for r in earlier]
    expected = np.exp(yesterday(row) + np.quantile(misses, LEVELS)) - offset
    np.testing.assert_allclose(made.values[0, at, 0], expected, rtol=1e-9)


def test_a_poisoned_future_changes_no_earlier_forecast_of_a_peer() -> None:
    clean = a_panel(daily(5), ("",))
    values = clean.values.copy()
    values[4 * DAY :] = 1e4
    one, two = (
        peers(p, HOUR, (WINDOW,), LEVELS, ("SeasonalNaive", "AutoETS")).values
        for p in (clean, replace(clean, values=values))
    )
    cut = 4 * DAY // HOUR + 1  # the decision at the first poisoned row does not know it yet
    assert np.isfinite(one[:, cut - 1]).all()
    np.testing.assert_array_equal(one[:, :cut], two[:, :cut])
    assert not np.array_equal(one[:, cut:], two[:, cut:])


def test_all_models_are_scored_on_the_same_decisions_and_ours_sees_the_rhythm() -> None:
    panel = a_panel(np.column_stack([daily(6), daily(6, seed=1)]), ("a", "b"))
    rows = score_beside_peers(panel, 5 * DAY + 3, (WINDOW,), 2 * HOUR, experts=("last_value", "seasonal"))
    by_model = {row.model: row for row in rows}
    assert set(by_model) == {"mixture", "last_value", "seasonal", *NAMES}
    # a day of every second hour; its first decision lies before the judged part
    assert {row.rows for row in rows} == {11}
    assert by_model["mixture"].wql < by_model["AutoETS"].wql
    assert np.isnan(by_model["MSTL"].teams_wql)
    assert np.isnan(by_model["MSTL"].teams_beating)
    for name in ("mixture", *NAMES):
        cost = by_model[name].cost
        assert cost is not None
        assert cost.fit_s > 0
    assert by_model["seasonal"].cost is None


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: object) -> object:
        if name.startswith("statsforecast"):
            raise ImportError(name)
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(InputError, match=r"tidegate\[compare\]"):
        peers(a_panel(daily(3), ("",)), HOUR, (WINDOW,), LEVELS)
