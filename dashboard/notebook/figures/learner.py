"""Charts of the learner: savings by day, weights, the gate, targets, one moment, and other leads and weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from controller.learning.candidates import RULE
from dashboard.figures import BLUE, GREEN, GREY, ORANGE, RED
from dashboard.notebook.figures.style import PALETTE, REST, line, nothing, titled
from dashboard.notebook.other_terms import POLICIES, Sensitivity
from dashboard.notebook.records import Recorded
from dashboard.notebook.replayed import LEARNER, Learner
from dashboard.notebook.said import Note
from dashboard.notebook.tuning import LABELS, described
from dashboard.notebook.why import Why

Source = Learner | Recorded
SHOWN_FLEETS = 7
TARGET_DAYS = 2.0
MOST_GAP = 150.0


def _under(source: Source) -> str:
    return described(source.terms) if isinstance(source, Learner) else "as recorded"


def savings(source: Source) -> go.Figure:
    """GPU-hours that the learner would have saved over the rule by day, among its candidates."""
    frame = source.savings()
    figure = titled(
        "On which days would the learner have saved, and on which not?",
        f"day ({source.history.zone})",
        "GPU-hours saved over the rule",
        under=f"0 is the tuned rule; below it the day would have cost more; {_under(source)}",
    )
    if frame.empty:
        recorded = isinstance(source, Recorded)
        return nothing(figure, "no shadow day on record" if recorded else "no whole day that could be judged")
    days = [f"{day:%a %d %b}" for day in frame.index]
    mine = frame[LEARNER] if LEARNER in frame else pd.Series(np.nan, index=frame.index)
    figure.add_bar(
        x=days,
        y=mine,
        name=LEARNER,
        marker={"color": [BLUE if value >= 0 else ORANGE for value in mine]},
        width=0.5,
        hovertemplate="learner %{y:+,.1f} GPU-h<extra></extra>",
    )
    others = frame.drop(columns=[LEARNER, RULE], errors="ignore")
    figure.add_scatter(
        x=np.repeat(days, others.shape[1]),
        y=others.to_numpy().ravel(),
        name="each candidate alone",
        mode="markers",
        marker={"symbol": "line-ew-open", "size": 16, "color": GREY, "line": {"width": 1.2}},
        customdata=list(others.columns) * len(frame),
        hovertemplate="%{customdata}: %{y:+,.1f} GPU-h<extra></extra>",
    )
    figure.update_layout(
        hovermode="closest",
        xaxis={"type": "category"},
        yaxis={"range": _around(mine, others), "zeroline": True, "zerolinecolor": "black", "zerolinewidth": 1.2},
    )
    return figure


def _around(mine: pd.Series[float], others: pd.DataFrame) -> list[float]:
    """A range in which the learner is to be seen: candidates that lost ten times as much lie outside."""
    spread = np.nanquantile(np.abs(others.to_numpy()), 0.7) if others.size else 0.0
    most = 1.15 * max(float(np.nan_to_num(np.nanmax(np.abs(mine)))), float(np.nan_to_num(spread)), 1.0)
    return [-most, most]


def weights(source: Source) -> go.Figure:
    """The hedge's weights over time, stacked; the heaviest by name and the rest together."""
    frame = source.weights() * 100
    figure = titled(
        "Whom does the learner listen to?",
        f"local time ({source.history.zone})",
        "share of the weight, %",
        under=f"what each candidate cost lately decides; the first day counts for nobody; {_under(source)}",
        height=440,
    )
    if frame.empty:
        return nothing(figure, "no weights on record")
    order = frame.mean().sort_values(ascending=False).index.tolist()
    named = [name for name in order if name != RULE][: SHOWN_FLEETS - 1]
    rest = [name for name in order if name not in named and name != RULE]
    colour = dict(zip(named, (c for c in PALETTE if c != "#000000"), strict=False)) | {RULE: "#000000"}
    for name in (RULE, *named):
        _layer(figure, frame.index, frame[name], "tuned rule" if name == RULE else name, colour.get(name, REST))
    _layer(figure, frame.index, frame[rest].sum(axis=1), f"{len(rest)} others", REST)
    figure.update_layout(yaxis={"range": [0, 100]}, legend={"y": -0.2}, margin={"b": 120})
    return figure


def _layer(figure: go.Figure, x: pd.Index, y: pd.Series[float], name: str, colour: str) -> None:
    figure.add_scatter(
        x=x,
        y=y,
        name=name,
        mode="lines",
        stackgroup="weights",
        line={"width": 0.5, "color": colour},
        hovertemplate="%{y:.0f} %",
    )


def gate(source: Source) -> go.Figure:
    """By midnight, the learner's mean saving with one standard error.

    The gate opens where the whole bar is above 2 % of what the rule costs.
    """
    frame = source.gate()
    figure = titled(
        "May the learner act?",
        f"midnight ({source.history.zone})",
        "GPU-hours saved a day",
        under="mean of the last 7 shadow days ± 1 standard error; acts where the bar is above 2 % of the rule's cost",
    )
    known = frame[np.isfinite(frame["standard error"])]
    if known.empty:
        return nothing(figure, "no midnight yet with two judged days behind it")
    on = known["acts"] != RULE
    for rows, name, colour in ((known[on], "the learner acts", BLUE), (known[~on], "the rule acts", ORANGE)):
        if len(rows):
            figure.add_scatter(
                x=[f"{day:%a %d %b}" for day in rows.index],
                y=rows["saved a day"],
                error_y={"array": rows["standard error"], "thickness": 2, "width": 7},
                name=name,
                mode="markers",
                marker={"size": 9, "color": colour},
                customdata=rows["says"],
                hovertemplate="%{x}: %{y:+,.1f}<br>%{customdata}<extra></extra>",
            )
    figure.update_layout(
        hovermode="closest",
        showlegend=True,
        xaxis={
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [f"{day:%a %d %b}" for day in known.index],
        },
        yaxis={"zeroline": True, "zerolinecolor": "black", "zerolinewidth": 1.2},
    )
    return figure


def targets(source: Source, days: float = TARGET_DAYS) -> go.Figure:
    """What rule and learner asked for on the last days, against what was wanted."""
    frame = source.targets()
    done = frame.columns[-1]
    figure = titled(
        "How many GPUs did the learner ask for, and how many the rule?",
        f"local time ({source.history.zone})",
        "GPUs",
        under=f"asked for at that moment, to serve a lead later; dotted: {done}; {_under(source)}",
    )
    if frame.empty:
        return nothing(figure, "nothing on record")
    shown = frame[frame.index > frame.index[-1] - pd.Timedelta(days=days)]
    line(figure, shown.index, shown["wanted"], "wanted", GREY, width=1.2, hovertemplate="%{y:,.0f}")
    for name, colour in (("rule", ORANGE), (LEARNER, BLUE)):
        line(figure, shown.index, shown[name], name, colour, hovertemplate="%{y:,.0f}", line_shape="hv")
    line(figure, shown.index, shown[done], done, "#000000", dash="dot", width=1.2, hovertemplate="%{y:,.0f}")
    return figure


def why(moment: Why | Note) -> go.Figure:
    """One moment: how much weight asked for how many GPUs, what was made of it, and what came."""
    if isinstance(moment, Note):
        return nothing(titled("Why so many GPUs just then?", "", ""), "nothing on record")
    shares = moment.shares() * 100
    counted = bool(moment.votes["weight"].isna().all())
    figure = titled(
        f"Why so many GPUs just then? ({moment.when:%a %Y-%m-%d %H:%M})",
        "GPUs asked for",
        "share of candidates, %" if counted else "share of the weight, %",
        under="bars: how much of the candidates' weight asked for so many; lines: what was made of it, and what came",
    )
    figure.add_bar(
        x=shares.index,
        y=shares.to_numpy(),
        name="candidates",
        marker={"color": REST},
        hovertemplate="%{x:,.0f}: %{y:.0f} %",
    )
    top = float(shares.max()) * 1.1 if len(shares) else 1.0
    for value, name, colour, dash in (
        (moment.wanted, "wanted then", GREEN, "dot"),
        (moment.rule, "rule", ORANGE, "solid"),
        (moment.learner, LEARNER, BLUE, "solid"),
        (moment.came, "most wanted in the hour after the lead", RED, "dash"),
    ):
        if np.isfinite(value):
            said = f"{name}: {value:,.0f} GPUs"
            line(figure, [value, value], [0, top], said, colour, dash=dash, width=2.5, hoverinfo="name")
    figure.update_layout(hovermode="closest")
    return figure


def sensitivity(made: Sensitivity) -> go.Figure:
    """The gap closed by learner and gated learner at every lead and w, with intervals."""
    figure = titled(
        "Would it earn its place with another lead, or another w?",
        "w, and below it the lead",
        "gap closed, %",
        under="0: the tuned rule, 100: an optimum that knows everything; bars: 95 % by whole days; judged days only",
        height=440,
    )
    lowest = 0.0
    for name, colour in zip(POLICIES, (BLUE, GREEN), strict=True):
        rows = made.table[made.table["policy"] == LABELS[name]]
        y = rows["gap closed, %"]
        figure.add_bar(
            x=[rows["lead"].tolist(), [f"w {w:g}" for w in rows["w"]]],
            y=y,
            name=LABELS[name],
            marker={"color": colour},
            error_y=_interval(rows),
            hovertemplate="%{y:+.0f} %",
        )
        lowest = min(lowest, float(np.nan_to_num(np.nanmin(rows[["from", "gap closed, %"]].to_numpy()))))
    low = max(lowest * 1.1, -MOST_GAP) if lowest < 0 else 0.0
    figure.update_layout(
        barmode="group",
        hovermode="closest",
        yaxis={"range": [low, 100], "zeroline": True, "zerolinecolor": "black", "zerolinewidth": 1.2},
        legend={"y": -0.28},
        margin={"b": 120},
    )
    return figure


def _interval(rows: pd.DataFrame) -> dict[str, Any]:
    up, down = rows["to"] - rows["gap closed, %"], rows["gap closed, %"] - rows["from"]
    return {"type": "data", "array": up, "arrayminus": down, "thickness": 1.2, "width": 4, "color": "#000000"}
