"""Forecasts: what was expected against what came, and whether it was better than the naive answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse

from controller.store import ScoredForecast
from dashboard.context import Look, Looking, render
from dashboard.view import shortest
from forecaster.metrics import coverage, mase, wql

router = APIRouter(include_in_schema=False)
LEAST = 12
"""Fewer forecasts than an hour of them say nothing about accuracy."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How good the stored forecasts of a series were. Ratios below 1 are better than the naive answer."""

    forecasts: int
    wql: float
    against_last_value: float
    against_seasonal: float
    covered: float


@router.get("/forecasts", response_class=HTMLResponse)
def forecasts(
    request: Request,
    look: Looking,
    series: Annotated[str, Query(max_length=300)] = "",
    window: Annotated[str, Query(pattern=r"^(\d+-\d+)?$")] = "",
) -> Any:
    """A fan against the actual demand, for a team or a pool's total."""
    if look.now is None:
        return render(request, "empty.html", look, page="forecasts")
    known = look.store.series(look.cluster)
    chosen = _chosen(known, series)
    windows = look.store.forecast_windows(look.cluster, *chosen)
    picked = next((w for w in windows if f"{w.start_s}-{w.end_s}" == window), shortest(windows))
    scored = []
    if picked is not None:
        scored = look.store.forecast_vs_actual(
            look.cluster, *chosen, (picked.start_s, picked.end_s), look.span.start_s, look.span.stop_s, 1000
        )
    return render(
        request,
        "forecasts.html",
        look,
        page="forecasts",
        known=known,
        chosen=chosen,
        windows=windows,
        picked=picked,
        accuracy=accuracy(scored),
    )


def _chosen(known: tuple[tuple[str, str], ...], series: str) -> tuple[str, str]:
    if not series:
        return known[0]
    pool, _, team = series.partition("/")
    if (pool, team) not in known:
        raise HTTPException(404, f"no series {series!r}")
    return pool, team


def accuracy(scored: list[ScoredForecast]) -> Accuracy | None:
    """Score stored forecasts; None while there are too few whose window is over."""
    if len(scored) < LEAST:
        return None
    levels = scored[0].forecast.levels_permille
    rows = [s for s in scored if s.forecast.levels_permille == levels]
    truth = np.array([s.actual for s in rows], dtype=np.float64)
    made = np.array([s.forecast.milli_gpus for s in rows], dtype=np.float64)
    last = np.array([np.nan if s.last_value is None else s.last_value for s in rows], dtype=np.float64)
    seasonal = np.array([np.nan if s.seasonal is None else s.seasonal for s in rows], dtype=np.float64)
    middle = made[:, min(range(len(levels)), key=lambda i: abs(levels[i] - 500))]
    high = made[:, min(range(len(levels)), key=lambda i: abs(levels[i] - 900))]
    return Accuracy(
        len(rows),
        wql(truth, made, [level / 1000 for level in levels]),
        mase(truth, middle, last),
        mase(truth, middle, seasonal),
        coverage(truth, high),
    )


def window_text(look: Look, start_s: int, end_s: int) -> str:
    """A window in words."""
    return f"most demand {start_s // 60}–{end_s // 60} min ahead"
