"""Forecasts of a history as they would have been made, and how good they were: by team, by horizon, by model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from controller.core.errors import InputError
from dashboard.notebook.durations import minutes_text, seconds_of
from dashboard.notebook.history import ALL_TEAMS, History
from dashboard.notebook.said import Note, percent
from forecaster.metrics import LEVELS, coverage, mase, worst_day_coverage, wql
from forecaster.models.base import last_known
from forecaster.series import Array
from forecaster.windows import Window, maxima

if TYPE_CHECKING:  # scikit-learn takes seconds to import: whoever only looks at demand does not wait for it
    from forecaster.service import Rolling

LENGTH_S = 900
CHECKED = 0.9
"""The level whose coverage is shown: what the default wait weight of 9 asks for, 9/(1+9)."""
MIXTURE, SEASONAL_NAIVE = "mixture", "same time yesterday"
NAMES = {"mixture": MIXTURE, "last_value": "last value", "seasonal": "days alike", "boosted": "boosted trees"}
COLUMNS = (
    "team",
    "horizon",
    "model",
    "WQL",
    "MASE last value",
    "MASE yesterday",
    "covered at 90 %",
    "worst day",
    "rows",
)


@dataclass(frozen=True, slots=True)
class Study:
    """Rolling forecasts of a history: refitted each night, each made from what was known then."""

    history: History
    made: Rolling
    windows: tuple[Window, ...]

    @property
    def horizons(self) -> tuple[str, ...]:
        """The leads that were asked for, as text."""
        return tuple(minutes_text(window.lead_s) for window in self.windows)

    def window(self, horizon: str) -> Window:
        """The window of a horizon; the first by default."""
        if not horizon:
            return self.windows[0]
        if horizon not in self.horizons:
            raise InputError.one("horizon", horizon, f"one of {', '.join(self.horizons)}")
        return self.windows[self.horizons.index(horizon)]

    def actual(self, team: str, window: Window) -> Array:
        """What came: the maximum demand in the window, for a decision at each row; NaN where unknown."""
        values = self.history.team(team)[:, None]
        return maxima(values, window, self.history.panel.step_s)[:, 0]

    def quantiles(self, team: str, window: Window, model: str = MIXTURE) -> Array:
        """What was said: (rows, levels) GPUs."""
        column, w = self.history.column(team), self.windows.index(window)
        if model == MIXTURE or self.made.by_expert is None:
            return self.made.values[:, column, w]
        return self.made.by_expert[self.made.experts.index(model), :, column, w]

    def scores(self, team: str = "") -> pd.DataFrame:
        """One row a team, horizon and model (``team``: only of that one). Lower is better, but for coverage: 0.90.

        WQL: error of all quantiles as a share of demand. MASE: error of the median over that of the last value, and of
        the same time yesterday; below 1 is better than those. Scored from ``judge_from`` on.
        """
        teams = [team] if team else [ALL_TEAMS, *self.history.teams]
        rows = [row for name in teams for window in self.windows for row in self._scored(name, window)]
        return pd.DataFrame(rows, columns=list(COLUMNS)).set_index(["team", "horizon", "model"])

    def _scored(self, team: str, window: Window) -> list[tuple[object, ...]]:
        start, day = self.history.judge_from, self.history.panel.rows_a_day
        values = self.history.team(team)[:, None]
        last = last_known(values)[start:, 0]
        yesterday = _a_day_ago(values, window, self.history)[start:]
        truth = np.where(np.isnan(last), np.nan, self.actual(team, window)[start:])
        said = {MIXTURE: self.quantiles(team, window)[start:]}
        said |= {NAMES[name]: self.quantiles(team, window, name)[start:] for name in self.made.experts}
        said[SEASONAL_NAIVE] = np.repeat(yesterday[:, None], len(LEVELS), axis=1)
        middle, high = LEVELS.index(0.5), LEVELS.index(CHECKED)
        rows: list[tuple[object, ...]] = []
        for model, made in said.items():
            known = int((~np.isnan(truth) & ~np.isnan(made[:, middle])).sum())
            rows.append(
                (
                    *(team, minutes_text(window.lead_s), model),
                    *(wql(truth, made), mase(truth, made[:, middle], last), mase(truth, made[:, middle], yesterday)),
                    *(coverage(truth, made[:, high]), worst_day_coverage(truth, made[:, high], day), known),
                )
            )
        return rows

    def verdict(self, team: str = ALL_TEAMS) -> Note:
        """Who wins, in a sentence a horizon: the mixture against the better of the two naive answers."""
        return _verdict(self.scores(team), team)


def forecast(history: History, leads: Sequence[str] = ("15m", "30m", "60m")) -> Study:
    """Forecast the maximum demand in the quarter of an hour after each lead, for every team, over the whole history."""
    from forecaster.service import ALL, rolling

    history.long_enough("forecasts")
    if not leads:
        raise InputError.one("LEADS", "none", 'at least one duration, such as ["15m"]')
    windows = tuple(sorted({Window(seconds_of(lead, "LEADS"), LENGTH_S) for lead in leads}))
    made = rolling(history.panel, windows=windows, levels=LEVELS, experts=ALL)
    return Study(history, made, windows)


def _a_day_ago(values: Array, window: Window, history: History) -> Array:
    """The maximum over the same window of the latest day that is over."""
    day = history.panel.rows_a_day
    back = -(-(window.rows(history.panel.step_s)[1] + 1) // day) * day
    out = np.full(len(values), np.nan)
    if back < len(values):
        out[back:] = maxima(values, window, history.panel.step_s)[:-back, 0]
    return out


def _verdict(scores: pd.DataFrame, team: str) -> Note:
    """Who wins, in a sentence a horizon: the mixture against the better of the two naive answers."""
    lines = []
    for horizon in dict.fromkeys(scores.loc[team].index.get_level_values("horizon")):
        table = scores.loc[(team, horizon)]
        ours, last = float(table.loc[MIXTURE, "WQL"]), float(table.loc["last value", "WQL"])
        naive = min(last, float(table.loc[SEASONAL_NAIVE, "WQL"]))
        if not np.isfinite(ours) or not naive > 0:
            lines.append(f"- **{horizon}**: nothing could be scored.")
            continue
        gain = 1 - ours / naive
        word = "better than" if gain > 0.02 else "worse than" if gain < -0.02 else "no better than"
        covered = float(table.loc[MIXTURE, "covered at 90 %"])
        honest = "as it should be" if abs(covered - CHECKED) <= 0.03 else "it should be 90 %"
        lines.append(
            f"- **{horizon} ahead**: the forecast is {word} the best naive answer ({gain * 100:+.0f} % in WQL); demand"
            f" stayed at or below its 90 % line {percent(covered)} of the time ({honest})."
        )
    return Note(f"For **{team}**:\n\n" + "\n".join(lines))
