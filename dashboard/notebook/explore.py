"""Questions an analyst asks of demand before trusting any forecast of it: where it is known, and how regular it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from controller.core.quantities import HOUR_S
from dashboard.notebook.history import ALL_TEAMS, History
from dashboard.notebook.said import Note, hours, percent
from forecaster.series import Array

PEAK = 0.9
"""A team is at its peak in the busiest tenth of its own time."""
RHYTHM = 0.3
"""Correlation with the day (week) before from which on one can see the same day again by eye."""
HUMP = 0.1
"""By how much it must exceed that with half a day before: what merely drifts slowly is alike to both."""
SPIKE = 5.0
HELD_ROWS = 288
GAP_ROWS = 3


def quality(history: History) -> pd.DataFrame:
    """What is wrong or odd with the history, one row a finding, the longest first."""
    teams: dict[tuple[str, float, str, str], list[str]] = {}
    for name in history.teams:
        for finding in _findings(history, name):
            teams.setdefault(finding, []).append(name)
    rows = [(_joined(names, history.teams), *finding) for finding, names in teams.items()]
    frame = pd.DataFrame(rows, columns=["team", "from", "hours", "what", "what it means"])
    return frame.sort_values("hours", ascending=False, kind="stable").reset_index(drop=True)


def _joined(names: list[str], everyone: tuple[str, ...]) -> str:
    if len(names) == len(everyone) > 1:
        return ALL_TEAMS
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _findings(history: History, name: str) -> list[tuple[str, float, str, str]]:
    values, step = history.team(name), history.panel.step_s
    found = []
    for start, stop in runs(np.isnan(values)):
        if stop - start >= GAP_ROWS:
            found.append((start, stop, "gap", "nothing recorded: left out of fits and scores, not read as zero"))
    known = values[np.isfinite(values)]
    if not len(known) or not known.max() > 0:
        found.append((0, len(values), "no demand", "nothing to forecast: this team never wanted a GPU"))
    else:
        for start, stop in runs(values == 0):
            if stop - start >= 2 and start and _sudden(values, start, stop, known):
                found.append((start, stop, "sudden zero", "falls to zero and back at once: an outage of the metrics?"))
        for start, stop in runs(np.concatenate([[False], np.diff(values) == 0])):
            if stop - start >= HELD_ROWS and values[start] > 0:
                found.append((start, stop, "flat", "the same value for a day or more: held by one job, or stale?"))
        spike = int(np.nanargmax(values))
        if known.max() > SPIKE * max(float(np.quantile(known, 0.99)), 1.0):
            found.append((spike, spike + 1, "spike", "more than five times what it exceeds in 1 % of its time: real?"))
    times = history.times
    return [
        (f"{times[start]:%a %Y-%m-%d %H:%M}", (stop - start) * step / HOUR_S, what, meaning)
        for start, stop, what, meaning in found
    ]


def _sudden(values: Array, start: int, stop: int, known: Array) -> bool:
    """Whether a stretch of zeros begins and ends with a cliff from ordinary demand."""
    usual = float(np.median(known))
    after = values[stop] if stop < len(values) else np.nan
    return usual > 0 and values[start - 1] >= usual / 2 and after >= usual / 2


def runs(mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[tuple[int, int]]:
    """Stretches ``[start, stop)`` where a mask holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def rhythm(history: History) -> pd.DataFrame:
    """How regular each team's demand is: one row a team, the total first.

    ``same time yesterday`` and ``same time last week``: autocorrelation (1: the same again, 0: no relation). ``moves
    in 30 min``: mean change within half an hour as a share of mean demand: what the last value cannot know.
    """
    rows = []
    for name in (ALL_TEAMS, *history.teams):
        values, day = history.team(name), history.panel.rows_a_day
        daily, weekly = autocorrelation(values, day), autocorrelation(values, 7 * day)
        mean, half = float(np.nanmean(values)) if np.isfinite(values).any() else np.nan, 1800 // history.panel.step_s
        moves = float(np.nanmean(np.abs(values[half:] - values[:-half]))) / mean if mean > 0 else np.nan
        rows.append((name, mean, float(np.nanmax(values, initial=0)), daily, weekly, moves, _verdict(values, day)))
    names = [
        "team",
        "mean GPUs",
        "peak GPUs",
        "same time yesterday",
        "same time last week",
        "moves in 30 min",
        "reads as",
    ]
    return pd.DataFrame(rows, columns=names).set_index("team")


def _verdict(values: Array, day: int) -> str:
    half, daily, weekly = (autocorrelation(values, lag) for lag in (day // 2, day, 7 * day))
    if np.isnan(daily):
        return "too short or too constant to say"
    if max(daily, np.nan_to_num(weekly, nan=-1.0)) >= max(RHYTHM, half + HUMP):
        return "has rhythm: a forecast can help"
    return "no rhythm: the last value is hard to beat"


def autocorrelation(values: Array, lag: int) -> float:
    """Correlation with itself ``lag`` rows before, over pairs that are both known; NaN for less than a day of pairs."""
    if lag <= 0 or lag >= len(values):
        return float("nan")
    now, then = values[lag:], values[:-lag]
    known = np.isfinite(now) & np.isfinite(then)
    if known.sum() < HELD_ROWS or np.std(now[known]) == 0 or np.std(then[known]) == 0:
        return float("nan")
    return float(np.corrcoef(now[known], then[known])[0, 1])


@dataclass(frozen=True, slots=True)
class Peaks:
    """Whether teams want their most at the same time.

    ``together``: by pair, the share of the first team's peak time (busiest tenth) in which the second peaks as well; by
    chance it would be 10 %. ``sum_of_peaks`` and ``peak_of_sum`` in GPUs: what partitions need, what one pool needs.
    """

    together: pd.DataFrame
    sum_of_peaks: float
    peak_of_sum: float

    def _repr_markdown_(self) -> str:
        saved = 1 - self.peak_of_sum / self.sum_of_peaks if self.sum_of_peaks else 0.0
        return (
            f"Own partitions for every team's peak take **{self.sum_of_peaks:,.0f} GPUs**, one pool for all takes"
            f" **{self.peak_of_sum:,.0f}**: {percent(saved)} less, because peaks do not all coincide."
        )


def peaks(history: History) -> Peaks:
    """How far the teams' peaks coincide."""
    names = [name for name in history.teams if np.nanmax(history.team(name), initial=0) > 0]
    at_peak = {}
    for name in names:
        at_peak[name] = _busiest(history.team(name))
    share = [[_share(at_peak[a], at_peak[b]) for b in names] for a in names]
    together = pd.DataFrame(share, index=pd.Index(names), columns=names)
    highest = sum(float(np.nanmax(history.team(name))) for name in names)
    return Peaks(together, highest, float(np.nanmax(history.total)))


def _busiest(values: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Where demand is in its busiest tenth; a level held all day and left for an hour is not its own peak."""
    level = max(float(np.nanquantile(values, PEAK)), 1e-9)
    above, at_least = values > level, values >= level
    return above if above.any() and at_least.sum() > 2 * (1 - PEAK) * np.isfinite(values).sum() else at_least


def _share(
    first: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], second: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> float:
    return float(second[first].mean()) if first.any() else float("nan")


def week(history: History, team: str = ALL_TEAMS) -> pd.DataFrame:
    """Mean demand by weekday (rows) and hour of the day (columns), in GPUs, local time; NaN where there is none."""
    times = history.times
    frame = pd.DataFrame({"gpus": history.team(team), "day": times.day_of_week, "hour": times.hour})
    table = frame.pivot_table(index="day", columns="hour", values="gpus", aggfunc="mean", dropna=False)
    return table.reindex(index=range(7), columns=range(24))


def idle_and_waiting(history: History) -> Note:
    """What the source knows of GPUs that stood idle and of work that waited, in a sentence."""
    supply = history.supply
    if supply is None or supply.empty:
        return Note(
            "This source knows what was wanted, not what ran: **idle and waiting GPUs are unknown here**. A tidegate"
            " store records both; a Parquet file of wanted GPUs cannot."
        )
    step = float(np.median(np.diff(supply.index))) / HOUR_S
    waited = float(np.nansum(supply["waiting"])) * step
    said = f"Work waited **{hours(waited)}** in all"
    if supply["ready"].notna().any():
        idle = float(np.nansum(np.maximum(supply["ready"] - supply["held"], 0))) * step
        both = float(np.nansum(np.minimum(np.maximum(supply["ready"] - supply["held"], 0), supply["waiting"]))) * step
        said += f", while **{hours(idle)}** stood idle; in {hours(both)} both happened at once"
    return Note(said + ".")
