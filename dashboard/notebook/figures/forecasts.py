"""Charts of forecasts: what was said against what came, who is better, what each setting costs."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from dashboard.figures import BLUE, GREY, ORANGE
from dashboard.notebook.durations import minutes_text
from dashboard.notebook.figures.style import band, colours, line, titled
from dashboard.notebook.forecasts import Study
from dashboard.notebook.history import ALL_TEAMS
from dashboard.notebook.tuning import HOLDS, Trial, described
from forecaster.metrics import LEVELS

FAN_DAYS = 2.0


def fan(study: Study, team: str = ALL_TEAMS, horizon: str = "", days: float = FAN_DAYS) -> go.Figure:
    """Forecast quantiles at the moment they were made for, against the peak that came, on the last days."""
    window, history = study.window(horizon), study.history
    rows = slice(max(0, history.panel.rows - round(days * history.panel.rows_a_day)), None)
    said, actual = study.quantiles(team, window)[rows], study.actual(team, window)[rows]
    lead = minutes_text(window.lead_s)
    x = history.times[rows] + np.timedelta64(window.lead_s, "s")
    figure = titled(
        f"Was the coming peak where the forecast saw it? ({team})",
        f"local time the forecast was made for ({history.zone})",
        "GPUs, peak of 15 minutes",
        under=f"said {lead} before; demand should cross the upper edge of the dark band one time in ten",
    )
    at = {level: said[:, i] for i, level in enumerate(LEVELS)}
    band(figure, x, at[0.1], at[0.98], "forecast, 10–98 %", 0.25)
    band(figure, x, at[0.1], at[0.9], "forecast, 10–90 %", 0.4)
    line(figure, x, at[0.5], "forecast, median", BLUE, width=1.4, hovertemplate="%{y:,.0f}")
    line(figure, x, actual, "what came", ORANGE, hovertemplate="%{y:,.0f}")
    return figure


def scores(study: Study, team: str = ALL_TEAMS) -> go.Figure:
    """WQL of every model at every horizon, side by side."""
    table = study.scores(team)["WQL"]
    models = list(dict.fromkeys(table.index.get_level_values("model")))
    figure = titled(
        f"Whose forecast is closest, and how fast does it get worse? ({team})",
        "how far ahead",
        "WQL (error as a share of demand)",
        under="lower is better; the two naive answers are what any forecast must beat",
    )
    for model, colour in colours(models).items():
        rows = table.xs(model, level="model")
        horizons = rows.index.get_level_values("horizon")
        figure.add_bar(
            x=list(horizons), y=rows.to_numpy(), name=model, marker={"color": colour}, hovertemplate="%{y:.3f}"
        )
    figure.update_layout(barmode="group", bargap=0.25)
    return figure


def by_team(study: Study, horizon: str = "") -> go.Figure:
    """By team, the mixture's WQL against that of the last value: who gains, who loses."""
    lead = minutes_text(study.window(horizon).lead_s)
    wql = study.scores()["WQL"].xs(lead, level="horizon").unstack("model")
    known = wql[np.isfinite(wql["mixture"]) & (wql["last value"] > 0)]
    gain = (1 - known["mixture"] / known["last value"]).sort_values()
    figure = titled(
        "For which teams is the forecast worth having?",
        "error below that of the last value (left of 0: worse)",
        "",
        under=f"{lead} ahead, WQL, judged days only",
        height=max(300, 150 + 24 * len(gain)),
    )
    names = [f"{name} " for name in gain.index]
    fill = [BLUE if value >= 0 else ORANGE for value in gain]
    text = [f"{value * 100:+.0f} %" for value in gain]
    figure.add_bar(
        x=gain.to_numpy(),
        y=names,
        orientation="h",
        marker={"color": fill},
        text=text,
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}: %{x:.1%}<extra></extra>",
    )
    figure.update_layout(
        hovermode="closest", xaxis={"tickformat": ".0%", "zeroline": True, "zerolinecolor": GREY}, margin={"l": 130}
    )
    return figure


def settings(trial: Trial, window: str = "") -> go.Figure:
    """Cost of quantile × hold at one window, against the tuned rule; the chosen one is marked."""
    quantile, chosen_window, hold = trial.chosen
    length = window or chosen_window
    table = trial.table[trial.table["window"] == length]
    rule = trial.report.rows["tuned_rule"].cost
    grid = (table.pivot(index="quantile", columns="hold", values="cost")[list(HOLDS)] / rule - 1) * 100
    limit = float(min(100.0, np.nanmax(np.abs(grid.to_numpy()))))
    figure = titled(
        "Which quantile and hold would have cost least?",
        "hold: how long a target is kept",
        "quantile of the coming peak",
        under=f"cost against the tuned rule, %; blue cheaper, orange dearer; window {length}, {described(trial.terms)}",
        height=430,
    )
    figure.add_heatmap(
        z=grid.to_numpy(),
        x=list(HOLDS),
        y=[f"{q:g}" for q in grid.index],
        text=grid.round(0).to_numpy(),
        texttemplate="%{text:+.0f}",
        zmin=-limit,
        zmax=limit,
        zmid=0,
        colorscale=[[0, BLUE], [0.5, "#ffffff"], [1, ORANGE]],
        colorbar={"title": {"text": "%"}},
        hovertemplate="quantile %{y}, hold %{x}: %{z:+.1f} %<extra></extra>",
        xgap=1,
        ygap=1,
    )
    if length == chosen_window:
        figure.add_scatter(
            x=[hold],
            y=[f"{quantile:g}"],
            mode="markers",
            name="chosen on the days before judging",
            hoverinfo="skip",
            marker={"symbol": "square-open", "size": 34, "color": "black", "line": {"width": 2}},
        )
    figure.update_layout(hovermode="closest", xaxis={"type": "category"}, yaxis={"type": "category"})
    return figure
