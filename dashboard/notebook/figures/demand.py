"""Charts of demand: over time, over the week, against itself, teams against each other, idle against waiting."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from controller.core.quantities import HOUR_S
from dashboard.figures import BLUE, GREEN, GREY, ORANGE, RED
from dashboard.notebook import explore
from dashboard.notebook.explore import autocorrelation, runs
from dashboard.notebook.figures.style import PALETTE, REST, colours, line, nothing, titled
from dashboard.notebook.history import ALL_TEAMS, History, local_times
from dashboard.notebook.said import percent

SHOWN_TEAMS = 6
MOST_POINTS = 1500
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MOST_LAG_DAYS = 8
SATURDAY = 5
MOST_GAPS = 40


def demand(history: History) -> go.Figure:
    """Demand by team, stacked; the largest teams by name and the rest together."""
    frame = history.frame()
    step = max(1, -(-len(frame) // MOST_POINTS))
    order = frame[list(history.teams)].mean().sort_values(ascending=False).index.tolist()
    shown, rest = order[:SHOWN_TEAMS], order[SHOWN_TEAMS:]
    minutes = step * history.panel.step_s // 60
    figure = titled(
        "How many GPUs does each team want, and when?",
        f"local time ({history.zone})",
        "GPUs wanted",
        under=f"running and waiting work, {minutes}-minute means; grey: nothing recorded",
    )
    coarse = frame.groupby(np.arange(len(frame)) // step).mean().set_axis(frame.index[::step])
    for name, colour in colours(shown).items():
        _area(figure, coarse.index, coarse[name], name, colour)
    if rest:
        _area(figure, coarse.index, coarse[rest].sum(axis=1, min_count=1), f"{len(rest)} other teams", REST)
    _gaps(figure, coarse[ALL_TEAMS])
    return figure


def _gaps(figure: go.Figure, total: pd.Series) -> None:
    """Grey where not every team is known; the longest ones, a chart with a hundred of them shows nothing else."""
    found = sorted(runs(total.isna().to_numpy()), key=lambda run: run[0] - run[1])[:MOST_GAPS]
    for start, stop in found:
        right = total.index[min(stop, len(total) - 1)]
        figure.add_vrect(x0=total.index[start], x1=right, fillcolor=GREY, opacity=0.35, line_width=0)


def _area(figure: go.Figure, x: pd.Index, y: pd.Series, name: str, colour: str) -> None:
    figure.add_scatter(
        x=x,
        y=y,
        name=name,
        mode="lines",
        stackgroup="teams",
        line={"width": 0.5, "color": colour},
        stackgaps="infer zero",
        hovertemplate="%{y:,.0f}",
    )


def week(history: History, team: str = ALL_TEAMS) -> go.Figure:
    """Mean demand by weekday and hour."""
    table = explore.week(history, team)
    figure = titled(
        f"At which hours of the week do they want GPUs? ({team})",
        f"hour of the day ({history.zone})",
        "",
        under="mean GPUs wanted; white: no data for that hour",
        height=330,
    )
    figure.add_heatmap(
        z=table.to_numpy(),
        x=[f"{hour:02}" for hour in range(24)],
        y=list(DAYS),
        colorscale="Blues",
        zmin=0,
        zmax=max(1.0, float(np.nanmax(table.to_numpy(), initial=0))),
        colorbar={"title": {"text": "GPUs"}},
        hovertemplate="%{y} %{x}:00: %{z:,.1f} GPUs<extra></extra>",
        xgap=1,
        ygap=1,
    )
    figure.update_layout(yaxis={"autorange": "reversed"}, hovermode="closest", margin={"b": 50})
    return figure


def rhythm(history: History) -> go.Figure:
    """Autocorrelation of the total and the largest teams, by lag."""
    step, day = history.panel.step_s, history.panel.rows_a_day
    most = min(MOST_LAG_DAYS * day, history.panel.rows - day)
    lags = np.arange(HOUR_S // step, max(most, HOUR_S // step + 1), HOUR_S // step)
    figure = titled(
        "Does demand repeat itself after a day, or after a week?",
        "compared with demand so many days before",
        "correlation",
        under="1: the same again; 0: no relation. Humps at whole days are rhythm, a plain decline is none",
    )
    means = {
        name: float(np.nanmean(history.team(name))) for name in history.teams if np.isfinite(history.team(name)).any()
    }
    largest = sorted(means, key=lambda name: -means[name])[:4]
    for name, colour in {ALL_TEAMS: "#000000", **dict(zip(largest, PALETTE, strict=False))}.items():
        values = [autocorrelation(history.team(name), int(lag)) for lag in lags]
        width = 2.6 if name == ALL_TEAMS else 1.3
        line(figure, lags / day, values, name, colour, width=width, hovertemplate="%{y:.2f}")
    figure.update_layout(
        yaxis={"range": [-1, 1], "rangemode": "normal", "zeroline": True, "zerolinecolor": GREY},
        xaxis={"dtick": 1, "ticksuffix": " d"},
    )
    return figure


def peaks(history: History) -> go.Figure:
    """By pair of teams, the share of one's peak time in which the other peaks too."""
    together = explore.peaks(history).together
    order = together.index[:24]
    shown = together.loc[order, order]
    figure = titled(
        "When one team peaks, who peaks with it?",
        "… this team is at its peak as well",
        "of the time in which this team peaks …",
        under="share of the row team's busiest tenth; 10 % is chance, far more: they cannot lend to each other",
        height=max(330, 150 + 26 * len(order)),
    )
    text = [[percent(value) if np.isfinite(value) else "" for value in row] for row in shown.to_numpy()]
    figure.add_heatmap(
        z=shown.to_numpy(),
        x=list(shown.columns),
        y=list(order),
        text=text if len(order) <= 12 else None,
        texttemplate="%{text}" if len(order) <= 12 else None,
        colorscale="Oranges",
        zmin=0,
        zmax=1,
        colorbar={"title": {"text": "share"}, "tickformat": ".0%"},
        hovertemplate="while %{y} peaks, %{x} peaks %{z:.0%} of the time<extra></extra>",
        xgap=1,
        ygap=1,
    )
    figure.update_layout(yaxis={"autorange": "reversed"}, hovermode="closest", margin={"l": 130, "b": 90})
    return figure


def idle_and_waiting(history: History) -> go.Figure:
    """Idle GPUs above, waiting work below the line; empty with a word where the source does not know."""
    supply = history.supply
    figure = titled(
        "Do GPUs stand idle while work waits?",
        f"local time ({history.zone})",
        "GPUs: idle above, waited for below",
        under="hourly means; both at once is waste that lending removes",
    )
    if supply is None or supply.empty:
        return nothing(figure, "this source does not record what ran or stood idle")
    hourly = supply.groupby(supply.index // HOUR_S * HOUR_S).mean()
    x = local_times(hourly.index.to_numpy(), history.zone)
    if hourly["ready"].notna().any():
        _bars(figure, x, (hourly["ready"] - hourly["held"]).clip(lower=0), "idle", GREEN)
    _bars(figure, x, -hourly["waiting"], "waiting", RED)
    figure.update_layout(barmode="relative", bargap=0, yaxis={"rangemode": "normal"})
    return figure


def _bars(figure: go.Figure, x: pd.DatetimeIndex, y: pd.Series, name: str, colour: str) -> None:
    figure.add_bar(x=x, y=y, name=name, marker={"color": colour, "line": {"width": 0}}, hovertemplate="%{y:,.1f} GPUs")


def days(history: History, team: str = ALL_TEAMS) -> go.Figure:
    """Each day of a team as one line over the hours: how alike days are."""
    figure = titled(
        f"Is one day like another? ({team})",
        f"hour of the day ({history.zone})",
        "GPUs wanted",
        under="one line a day; the closer they lie, the more a forecast can know",
    )
    times, values = history.times, history.team(team)
    dates = times.normalize()
    named: set[str] = set()
    for date in dates.unique():
        day = dates == date
        kind, colour = _kind(date, dates[-1])
        line(
            figure,
            times[day].hour + times[day].minute / 60,
            values[day],
            kind,
            colour,
            width=2.4 if date == dates[-1] else 1.1,
            opacity=0.8,
            legendgroup=kind,
            showlegend=kind not in named,
            hovertemplate=f"{date:%a %d %b}: %{{y:,.0f}} GPUs<extra></extra>",
        )
        named.add(kind)
    figure.update_layout(xaxis={"range": [0, 24], "dtick": 3}, hovermode="closest")
    return figure


def _kind(date: pd.Timestamp, latest: pd.Timestamp) -> tuple[str, str]:
    if date == latest:
        return "latest day", BLUE
    return ("Saturdays and Sundays", GREY) if date.day_of_week >= SATURDAY else ("Mondays to Fridays", ORANGE)
