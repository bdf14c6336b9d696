"""Charts of what waiting is worth."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from dashboard.figures import BLUE, GREEN, GREY, ORANGE, RED
from dashboard.notebook.figures.style import line, titled
from dashboard.notebook.tuning import LABELS
from dashboard.notebook.waiting import CURVES, Now, Sweep, described, quantile

COLOURS = dict(zip(CURVES, (ORANGE, BLUE, GREEN), strict=True))


def trade_off(sweep: Sweep, now: Now | None = None) -> go.Figure:
    """Idle against waiting, one curve a policy, one point a w; and where one stands today."""
    figure = titled(
        "How much idle buys how much less waiting?",
        "idle GPU-hours a day",
        "waiting GPU-hours a day",
        under=f"one point a w, as written; down and to the left is better; {described(sweep)}",
        height=460,
    )
    days = sweep.judged_days
    for name, colour in COLOURS.items():
        rows = sweep.of(LABELS[name])
        figure.add_scatter(
            x=rows["idle"] / days,
            y=rows["waiting"] / days,
            name=LABELS[name],
            mode="lines+markers+text",
            text=[f"{w:g}" for w in rows.index],
            textposition="top right",
            textfont={"size": 10, "color": colour},
            line={"color": colour, "width": 1.8},
            customdata=list(rows.index),
            hovertemplate="w %{customdata:g}: %{x:,.0f} idle, %{y:,.0f} waiting<extra>" + LABELS[name] + "</extra>",
        )
    if now is not None and np.isfinite(now.idle):
        figure.add_scatter(
            x=[now.idle],
            y=[now.waiting],
            name=f"today ({now.what.lower()})",
            mode="markers",
            marker={"symbol": "x", "size": 13, "color": RED},
            hovertemplate="%{x:,.0f} idle, %{y:,.0f} waiting",
        )
    figure.update_layout(hovermode="closest", xaxis={"rangemode": "tozero"})
    return figure


def by_weight(sweep: Sweep, policy: str = LABELS["forecast"]) -> go.Figure:
    """Idle and waiting of one policy against w."""
    rows, days = sweep.of(policy), sweep.judged_days
    figure = titled(
        f"What does a higher w change? ({policy})",
        "w: idle GPU-hours that one waiting GPU-hour is worth (the quantile it stands for)",
        "GPU-hours a day",
        under=described(sweep),
    )
    x = [f"{w:g}<br>({quantile(w):.2f})" for w in rows.index]
    for column, colour in (("idle", GREEN), ("starting", GREY), ("waiting", RED)):
        line(figure, x, rows[column] / days, column, colour, hovertemplate="%{y:,.0f}")
    figure.update_layout(xaxis={"type": "category"}, legend={"y": -0.34}, margin={"b": 110})
    return figure


def money(sweep: Sweep, price: float, policy: str = LABELS["forecast"]) -> go.Figure:
    """Money a day for idle and starting GPUs, and what an hour of waiting would have to be worth, against w."""
    rows, days = sweep.of(policy), sweep.judged_days
    figure = titled(
        f"What does it cost, at {price:g} a GPU-hour?",
        "w",
        "money a day",
        under=f"idle and starting GPUs ({policy}) beyond what the work itself takes; {described(sweep)}",
    )
    x = [f"{w:g}" for w in rows.index]
    for column, colour in (("idle", GREEN), ("starting", GREY)):
        figure.add_bar(
            x=x, y=rows[column] / days * price, name=column, marker={"color": colour}, hovertemplate="%{y:,.0f}"
        )
    figure.update_layout(barmode="stack", xaxis={"type": "category"}, bargap=0.35)
    return figure
