"""A forecast must not know what comes after its decision: the future is poisoned, and nothing may change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from forecaster_builders import DAY

from forecaster.models.base import look_back, offsets
from forecaster.models.seasonal import Seasonal
from forecaster.series import Panel
from forecaster.service import ALL, Forecaster, rolling
from forecaster.split import LookAheadError, assert_past, known_before, origins
from forecaster.windows import Window, standard_windows

CUT = 3 * DAY + 100
WINDOWS = standard_windows(900)


def poisoned(panel: Panel, kind: str) -> Panel:
    values = panel.values.copy()
    after = values[CUT:]
    if kind == "shuffled":
        values[CUT:] = np.random.default_rng(7).permutation(after, axis=0)
    else:
        values[CUT:] = {"unknown": np.nan, "huge": 1e9}[kind]
    return replace(panel, values=values)


@pytest.mark.parametrize("kind", ["unknown", "huge", "shuffled"])
def test_a_poisoned_future_leaves_every_earlier_forecast_bit_identical(rhythm: Panel, kind: str) -> None:
    clean = rolling(rhythm, windows=WINDOWS, experts=ALL, start=DAY)
    dirty = rolling(poisoned(rhythm, kind), windows=WINDOWS, experts=ALL, start=DAY)
    # the decision at row CUT knows the rows before it, and none of those is poisoned
    assert clean.values[: CUT + 1 - DAY].tobytes() == dirty.values[: CUT + 1 - DAY].tobytes()
    # and the test can see poison at all: later forecasts differ
    assert clean.values[CUT + 1 - DAY :].tobytes() != dirty.values[CUT + 1 - DAY :].tobytes()


@pytest.mark.parametrize("kind", ["unknown", "huge"])
def test_the_service_does_not_read_past_its_now(rhythm: Panel, kind: str) -> None:
    made = []
    for panel in (rhythm, poisoned(rhythm, kind)):
        service = Forecaster(900, experts=("last_value", "seasonal"))
        service.fit(panel, panel.time(CUT))
        made.append(service.forecasts(panel, panel.time(CUT), "h100"))
    assert made[0].series
    assert made[0] == made[1]


def test_the_guard_refuses_a_read_at_the_decision_itself() -> None:
    assert_past(4, 5)
    with pytest.raises(LookAheadError):
        assert_past(5, 5)
    with pytest.raises(LookAheadError):
        assert_past(np.array([1, 9]), np.array([5, 5]))


def test_the_seasonal_expert_uses_only_windows_that_are_over(rhythm: Panel) -> None:
    past = look_back(rhythm, offsets(rhythm))
    # a window that ends a day and more after the decision: yesterday's is not over yet, two days ago's is
    points = Seasonal().points(past, Window(86_400, 3600), 3 * DAY, 3 * DAY + 1)
    assert np.isfinite(points).all()


def test_a_view_ends_before_the_decision(rhythm: Panel) -> None:
    assert known_before(rhythm, 7).rows == 7


def test_origins_meet_without_a_hole_and_one_is_the_start() -> None:
    assert list(origins(5, 12, 3)) == [(0, 2), (2, 5), (5, 8), (8, 11), (11, 12)]
    assert list(origins(0, 4, 3)) == [(0, 3), (3, 4)]
    assert list(origins(0, 0, 3)) == []
