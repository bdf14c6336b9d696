"""Forecast policies: chosen by their own past and by nothing that came later."""

from __future__ import annotations

import numpy as np

from controller.learning.fleet import Terms, replay
from controller.learning.forecast_only import chosen_nightly
from forecaster.series import Panel

DAY = 288


def a_total(values: np.ndarray) -> Panel:
    return Panel(("",), 4 * 86_400, 300, "UTC", values[:, None])


def daily_rhythm(days: int, seed: int = 3) -> np.ndarray:
    slots = np.arange(days * DAY) % DAY / DAY
    rng = np.random.default_rng(seed)
    return 40 + 60 * np.maximum(0, np.sin(2 * np.pi * slots)) ** 2 + rng.normal(0, 1, days * DAY)


def test_where_demand_has_a_rhythm_a_forecast_acts_and_costs_less_than_the_rule() -> None:
    total, terms, start = a_total(daily_rhythm(6)), Terms(8, 1800, 9.0), 4 * DAY
    chosen = chosen_nightly(total, terms, start)
    assert all(night.level is not None for night in chosen.nights)
    from controller.learning.rule import tuned_nightly

    ruled, _ = tuned_nightly(total.values[:, 0], terms, start, DAY)
    both = (
        replay(total.values[:, 0], np.stack([ruled, chosen.targets], axis=1), terms, int(ruled[0]))
        .cost[start:]
        .sum(axis=0)
    )
    assert both[1] < 0.9 * both[0]


def test_without_any_past_the_rule_stays() -> None:
    chosen = chosen_nightly(a_total(daily_rhythm(1)), Terms(8, 1800, 9.0), DAY // 2)
    assert [night.level for night in chosen.nights] == [None]


def test_a_poisoned_future_changes_no_target_before_it() -> None:
    terms, start, cut = Terms(8, 900, 9.0), 3 * DAY, 3 * DAY + 12
    # The cut lies an hour into a night's choice: one that looks into its own day is found out.
    honest = daily_rhythm(5)
    poisoned = honest.copy()
    poisoned[cut:] = np.random.default_rng(9).permutation(honest[cut:]) * 1e3
    one, two = (chosen_nightly(a_total(values), terms, start) for values in (honest, poisoned))
    # The decision at the first poisoned row sees the row before it, which is still honest.
    assert np.array_equal(one.targets[: cut + 1], two.targets[: cut + 1])
    assert one.nights[0] == two.nights[0]
