"""How good the forecasts are: rolling origin, refitted nightly, scored on rows that were never fitted before use.

Every model is scored on exactly the same decisions: those whose window is known and whose last value is known. Losses
are reported like wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controller.core.errors import InputError
from controller.core.forecast import TOTAL
from forecaster.metrics import LEVELS, coverage, mase, worst_day_coverage, wql
from forecaster.models.base import last_known
from forecaster.series import Array, Panel
from forecaster.service import ALL, Rolling, rolling
from forecaster.windows import Window, maxima

MIXTURE = "mixture"
CONFORMED = 0.9
"""The level whose coverage is reported: the implied quantile of the default wait weight, 9/(1+9)."""


@dataclass(frozen=True, slots=True)
class Score:
    """One model at one horizon. NaN where nothing could be scored (a gap, no demand, a single team).

    ``wql``, both MASE, ``coverage`` and ``worst_day`` are the total's; ``teams_wql`` pools all teams;
    ``teams_beating`` is the share of teams (with any demand judged) whose WQL is below that of last value.
    """

    window: Window
    model: str
    rows: int
    wql: float
    teams_wql: float
    mase_last_value: float
    mase_seasonal_naive: float
    coverage: float
    worst_day: float
    teams_beating: float


def score(
    panel: Panel, judge_from: int, windows: Sequence[Window], *, experts: Sequence[str] = ALL
) -> tuple[Score, ...]:
    """Score the mixture and each expert on rows from ``judge_from`` on, for each window.

    Forecasts are made from the first row on, so that those judged are as a running service would have made them.
    """
    if not 0 < judge_from < panel.rows:
        raise InputError.one("judge_from", judge_from, f"a row between 1 and {panel.rows - 1}")
    whole = panel.with_total()
    made = rolling(whole, windows=windows, levels=LEVELS, experts=experts)
    return tuple(row for window in windows for row in _window(whole, made, judge_from, window))


def _window(panel: Panel, made: Rolling, judge_from: int, window: Window) -> list[Score]:
    w = made.windows.index(window)
    last = last_known(panel.values)[judge_from:]
    yesterday = _a_day_ago(panel, window)[judge_from:]
    truth = maxima(panel.values, window, panel.step_s)[judge_from:]
    truth = np.where(np.isnan(last), np.nan, truth)
    models = {MIXTURE: made.values[judge_from:, :, w]}
    if made.by_expert is not None:
        models |= {name: made.by_expert[i, judge_from:, :, w] for i, name in enumerate(made.experts)}
    reference = models.get("last_value")
    return [_model(panel, window, name, truth, f, last, yesterday, reference) for name, f in models.items()]


def _a_day_ago(panel: Panel, window: Window) -> Array:
    """The seasonal naive forecast: the maximum over the same window of the latest day that is over."""
    days = -(-(window.rows(panel.step_s)[1] + 1) // panel.rows_a_day)
    back = days * panel.rows_a_day
    out = np.full_like(panel.values, np.nan)
    if back < panel.rows:
        out[back:] = maxima(panel.values, window, panel.step_s)[:-back]
    return out


def _model(
    panel: Panel,
    window: Window,
    name: str,
    truth: Array,
    forecast: Array,
    last: Array,
    yesterday: Array,
    reference: Array | None,
) -> Score:
    total = panel.names.index(TOTAL)
    teams = [i for i in range(len(panel.names)) if i != total]
    middle, high = LEVELS.index(0.5), LEVELS.index(CONFORMED)
    real, said = truth[:, total], forecast[:, total]
    return Score(
        window=window,
        model=name,
        rows=int((~np.isnan(real)).sum()),
        wql=wql(real, said),
        teams_wql=wql(truth[:, teams], forecast[:, teams]),
        mase_last_value=mase(real, said[:, middle], last[:, total]),
        mase_seasonal_naive=mase(real, said[:, middle], yesterday[:, total]),
        coverage=coverage(real, said[:, high]),
        worst_day=worst_day_coverage(real, said[:, high], panel.rows_a_day),
        teams_beating=_beating(
            truth[:, teams], forecast[:, teams], reference if reference is None else reference[:, teams]
        ),
    )


def _beating(truth: Array, forecast: Array, reference: Array | None) -> float:
    """Share of teams whose WQL is below that of last value; teams without demand have none."""
    if reference is None:
        return float("nan")
    wins = []
    for i in range(truth.shape[1]):
        theirs, ours = wql(truth[:, i], reference[:, i]), wql(truth[:, i], forecast[:, i])
        if not np.isnan(theirs):
            wins.append(ours < theirs)
    return float(np.mean(wins)) if wins else float("nan")
