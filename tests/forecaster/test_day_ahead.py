"""The day-ahead view: a rhythm is continued, and every kind of poor history has a defined answer."""

from __future__ import annotations

import numpy as np
import pytest

from forecaster.models.day_ahead import by_the_hour, day_ahead
from forecaster.series import Panel

HOUR = 12  # rows of five minutes
DAY = 24 * HOUR


def a_panel(values: np.ndarray) -> Panel:
    return Panel(("team",), 4 * 86_400, 300, "UTC", values[:, None].astype(float))


def rhythm(days: float, noise: float = 0.0) -> np.ndarray:
    rows = np.arange(int(days * DAY))
    rng = np.random.default_rng(2)
    return (
        50 + 30 * np.sin(2 * np.pi * rows / DAY) + rng.normal(0, noise, len(rows))
        if noise
        else 50 + 30 * np.sin(2 * np.pi * rows / DAY)
    )


def test_a_daily_rhythm_goes_on() -> None:
    values = rhythm(7)
    made = day_ahead(a_panel(values[: 6 * DAY]), "team", 4 * 86_400 + 6 * 86_400)
    truth = by_the_hour(values[6 * DAY :], HOUR)
    assert made.model == "Holt-Winters"
    assert made.values.shape == (36, 3)
    assert np.abs(made.values[:24, 1] - truth).max() < 3
    assert made.start_s == (4 + 6) * 86_400


def test_its_bands_hold_about_as_much_as_they_say() -> None:
    values = rhythm(15, noise=6.0)
    held = []
    for day in range(8, 14):
        made = day_ahead(a_panel(values[: day * DAY]), "team", (4 + day) * 86_400)
        truth = by_the_hour(values[day * DAY : (day + 1) * DAY], HOUR)
        held.append((truth >= made.values[:24, 0]) & (truth <= made.values[:24, 2]))
    assert 0.65 <= np.mean(held) <= 0.95  # 10 % to 90 % should hold 80 %


@pytest.mark.parametrize(
    ("values", "model", "expected"),
    [
        (np.zeros(0), "no history", 0.0),
        (np.zeros(5 * DAY), "constant", 0.0),
        (np.full(5 * DAY, 8.0), "constant", 8.0),
        (np.full(5 * DAY, np.nan), "no history", 0.0),
        (np.linspace(4, 6, 3 * HOUR), "last value", None),
        (rhythm(1.5), "as the day before", None),
    ],
)
def test_poor_histories_have_a_defined_answer(values: np.ndarray, model: str, expected: float | None) -> None:
    made = day_ahead(a_panel(values), "team", 4 * 86_400 + len(values) * 300)
    assert made.model == model
    assert np.isfinite(made.values).all()
    assert (np.diff(made.values, axis=1) >= 0).all()
    if expected is not None:
        assert np.allclose(made.values, expected)


def test_yesterday_is_expected_again_while_there_is_little_history() -> None:
    values = rhythm(1.5)
    made = day_ahead(a_panel(values), "team", 4 * 86_400 + len(values) * 300)
    assert np.allclose(made.values[:24, 1], by_the_hour(values, HOUR)[-24:], rtol=0.35)


def test_an_outage_does_not_teach_that_nights_are_quiet() -> None:
    values = rhythm(6)
    holed = values.copy()
    holed[5 * DAY : 5 * DAY + 6 * HOUR] = np.nan
    whole, gap = (day_ahead(a_panel(v), "team", (4 + 6) * 86_400).values[:, 1] for v in (values, holed))
    assert np.abs(whole - gap).max() < 4


def test_what_comes_after_the_moment_changes_nothing() -> None:
    values = rhythm(7, noise=3.0)
    poisoned = values.copy()
    poisoned[5 * DAY :] = 1e9
    one, two = (day_ahead(a_panel(v), "team", (4 + 5) * 86_400).values for v in (values, poisoned))
    assert np.array_equal(one, two)
