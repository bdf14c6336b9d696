"""How good the forecasts are: rolling origin, refitted nightly, scored on rows that were never fitted before use.

Every model is scored on exactly the same decisions: those whose window is known and whose last value is known. Losses
are reported like wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from controller.core.errors import InputError
from controller.core.forecast import TOTAL
from forecaster.metrics import LEVELS, coverage, mase, worst_day_coverage, wql
from forecaster.models.base import last_known
from forecaster.peers import Cost, Ints, Peers, peers
from forecaster.series import Array, Panel
from forecaster.service import ALL, Forecaster, Rolling, rolling
from forecaster.windows import Window, maxima

MIXTURE = "mixture"
CONFORMED = 0.9
"""The level whose coverage is reported: the implied quantile of the default wait weight, 9/(1+9)."""


HIGH = LEVELS.index(CONFORMED)
"""From this level on, quantiles are what nodes are held for."""


@dataclass(frozen=True, slots=True)
class Score:
    """One model at one horizon. NaN where nothing could be scored (a gap, no demand, a single team).

    ``wql``, ``wql_high`` (levels from .9 on), both MASE, ``coverage`` and ``worst_day`` are the total's; ``teams_wql``
    pools all teams; ``teams_beating`` is the share of teams (with any demand judged) whose WQL is below that of last
    value. Peers forecast the total only. ``cost``: where it was measured, with peers.
    """

    window: Window
    model: str
    rows: int
    wql: float
    wql_high: float
    teams_wql: float
    mase_last_value: float
    mase_seasonal_naive: float
    coverage: float
    worst_day: float
    teams_beating: float
    cost: Cost | None = None


def score(
    panel: Panel, judge_from: int, windows: Sequence[Window], *, experts: Sequence[str] = ALL
) -> tuple[Score, ...]:
    """Score the mixture and each expert on rows from ``judge_from`` on, for each window.

    Forecasts are made from the first row on, so that those judged are as a running service would have made them.
    """
    return _score(panel, judge_from, windows, 1, experts, None)


def score_beside_peers(
    panel: Panel, judge_from: int, windows: Sequence[Window], stride: int, *, experts: Sequence[str] = ALL
) -> tuple[Score, ...]:
    """The same beside statsforecast's models, all on the decisions at every ``stride``-th row that each can make."""
    whole = panel.with_total()
    total = Panel((TOTAL,), panel.origin_s, panel.step_s, panel.timezone, whole.values[:, [whole.names.index(TOTAL)]])
    return _score(panel, judge_from, windows, stride, experts, peers(total, stride, windows, LEVELS))


def _score(
    panel: Panel,
    judge_from: int,
    windows: Sequence[Window],
    stride: int,
    experts: Sequence[str],
    beside: Peers | None,
) -> tuple[Score, ...]:
    if not 0 < judge_from < panel.rows:
        raise InputError.one("judge_from", judge_from, f"a row between 1 and {panel.rows - 1}")
    whole = panel.with_total()
    made = rolling(whole, windows=windows, levels=LEVELS, experts=experts)
    rows = np.arange(-(-judge_from // stride) * stride, panel.rows, stride, dtype=np.int64)
    scores = [row for window in windows for row in _window(whole, made, rows, window, beside)]
    if beside is None:
        return tuple(scores)
    costs = dict(zip(beside.names, beside.costs, strict=True)) | {MIXTURE: _cost(whole, windows, experts)}
    return tuple(replace(row, cost=costs.get(row.model)) for row in scores)


def _cost(panel: Panel, windows: Sequence[Window], experts: Sequence[str]) -> Cost:
    """What the service's fit and forecast of the total cost at the end of its history."""
    column = panel.values[:, [panel.names.index(TOTAL)]]
    total = Panel((TOTAL,), panel.origin_s, panel.step_s, panel.timezone, column)
    service = Forecaster(0, experts=experts)
    service.windows = tuple(windows)
    moments = [perf_counter()]
    service.fit(total, total.time(total.rows))
    moments.append(perf_counter())
    service.forecasts(total, total.time(total.rows), "")
    moments.append(perf_counter())
    return Cost(moments[1] - moments[0], moments[2] - moments[1])


def _window(panel: Panel, made: Rolling, rows: Ints, window: Window, beside: Peers | None) -> list[Score]:
    w = made.windows.index(window)
    last = last_known(panel.values)[rows]
    yesterday = _a_day_ago(panel, window)[rows]
    truth = maxima(panel.values, window, panel.step_s)[rows]
    truth = np.where(np.isnan(last), np.nan, truth)
    models = {MIXTURE: made.values[rows, :, w]}
    if made.by_expert is not None:
        models |= {name: made.by_expert[i, rows, :, w] for i, name in enumerate(made.experts)}
    reference = models.get("last_value")
    theirs = {} if beside is None else _of_peers(panel, beside, rows, w)
    for forecast in theirs.values():
        truth = np.where(np.isnan(forecast[:, [panel.names.index(TOTAL)], 0]), np.nan, truth)
    # Rows lie a stride apart, and all days have as many.
    day = max(1, panel.rows_a_day // int(rows[1] - rows[0])) if len(rows) > 1 else panel.rows_a_day
    return [
        _model(panel, window, name, truth, f, last, yesterday, reference, day) for name, f in (models | theirs).items()
    ]


def _of_peers(panel: Panel, beside: Peers, rows: Ints, w: int) -> dict[str, Array]:
    """Peers' forecasts in the shape of ours: (rows, series, levels), unknown for teams."""
    at = np.searchsorted(beside.rows, rows)
    out = {}
    for name, values in zip(beside.names, beside.values, strict=True):
        forecast = np.full((len(rows), len(panel.names), values.shape[-1]), np.nan)
        forecast[:, panel.names.index(TOTAL)] = values[at, w]
        out[name] = forecast
    return out


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
    day: int,
) -> Score:
    total = panel.names.index(TOTAL)
    teams = [i for i in range(len(panel.names)) if i != total]
    middle, high = LEVELS.index(0.5), HIGH
    real, said = truth[:, total], forecast[:, total]
    return Score(
        window=window,
        model=name,
        rows=int((~np.isnan(real)).sum()),
        wql=wql(real, said),
        wql_high=wql(real, said[:, HIGH:], LEVELS[HIGH:]),
        teams_wql=wql(truth[:, teams], forecast[:, teams]),
        mase_last_value=mase(real, said[:, middle], last[:, total]),
        mase_seasonal_naive=mase(real, said[:, middle], yesterday[:, total]),
        coverage=coverage(real, said[:, high]),
        worst_day=worst_day_coverage(real, said[:, high], day),
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
        if not np.isnan([theirs, ours]).any():
            wins.append(ours < theirs)
    return float(np.mean(wins)) if wins else float("nan")
