"""Charts of a what-if: before beside after, by team and over time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dashboard.figures import BLUE, GREEN, GREY, ORANGE, RED
from dashboard.notebook.figures.style import line, titled
from dashboard.notebook.history import local_times
from dashboard.notebook.whatif import Comparison

SHOWN_TEAMS = 20
BEFORE, AFTER = GREY, BLUE


def waits(comparison: Comparison) -> go.Figure:
    """GPU-hours waited by team, before and after."""
    teams = pd.DataFrame(comparison.teams()["waited GPU-h"])
    order = teams.max(axis=1).sort_values(ascending=False).index[:SHOWN_TEAMS]
    figure = titled(
        "Who waits less under the other policy, and who waits more?",
        "",
        "GPU-hours waited",
        under="the same work on the same days; read at each 5-minute tick",
    )
    for side, colour in (("before", BEFORE), ("after", AFTER)):
        figure.add_bar(
            x=list(order),
            y=teams.loc[order, side],
            name=side,
            marker={"color": colour},
            hovertemplate="%{y:,.1f} GPU-h",
        )
    figure.update_layout(barmode="group", bargap=0.3)
    return figure


def costs(comparison: Comparison) -> go.Figure:
    """What the cost is made of, before and after."""
    table = comparison.table()
    parts = {
        "idle": table.loc["idle GPU-h"],
        "booting": table.loc["booting GPU-h"],
        "lost to evictions": table.loc["lost GPU-h"],
    }
    shown = sum(parts.values())
    parts["waiting × w, and churn"] = table.loc["cost"] - shown
    figure = titled(
        "Is it cheaper, and what makes the difference?",
        "",
        "GPU-hours",
        under="what was paid for and served nobody, and what waiting costs by the policy in force",
    )
    for (name, row), colour in zip(parts.items(), (GREEN, "#56B4E9", ORANGE, RED), strict=True):
        figure.add_bar(
            x=["before", "after"],
            y=[row["before"], row["after"]],
            name=name,
            marker={"color": colour},
            width=0.45,
            hovertemplate="%{y:,.0f} GPU-h",
        )
    figure.update_layout(barmode="stack")
    return figure


def team(comparison: Comparison, name: str) -> go.Figure:
    """One team over time: what it wanted, what it held before and after, its floor after."""
    figure = titled(
        f"When does {name} get its GPUs?",
        f"local time ({comparison.zone})",
        "GPUs",
        under="where a line lies below the demand, work waits",
    )
    for run, colour, dash in ((comparison.before, ORANGE, "dash"), (comparison.after, BLUE, "solid")):
        rows = run.by_team[run.by_team["team"] == name].groupby("at_s").sum(numeric_only=True)
        x = local_times(rows.index.to_numpy(), comparison.zone)
        if run is comparison.before:
            line(figure, x, rows["demand"], "wanted (before)", GREY, width=1.2, hovertemplate="%{y:,.0f}")
        line(figure, x, rows["held"], f"held ({run.label})", colour, dash=dash, hovertemplate="%{y:,.0f}")
        line(figure, x, rows["floor"], f"floor ({run.label})", colour, dash="dot", width=1, hovertemplate="%{y:,.0f}")
    return figure


def fleet(comparison: Comparison) -> go.Figure:
    """GPUs ready over time, before and after, against the demand."""
    figure = titled(
        "How many GPUs stand ready under each policy?",
        f"local time ({comparison.zone})",
        "GPUs",
        under="above the demand: idle or booting too early; below it: work waits",
    )
    for run, colour in ((comparison.before, ORANGE), (comparison.after, BLUE)):
        rows = run.by_pool.groupby("at_s").sum(numeric_only=True)
        x = local_times(rows.index.to_numpy(dtype=np.int64), comparison.zone)
        if run is comparison.before:
            line(figure, x, rows["demand"], "wanted (before)", GREY, width=1.2, hovertemplate="%{y:,.0f}")
        line(figure, x, rows["ready"], f"ready ({run.label})", colour, hovertemplate="%{y:,.0f}")
    return figure
