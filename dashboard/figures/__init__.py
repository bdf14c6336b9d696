"""Charts as plain documents: data in, a Plotly figure out. The only package that knows Plotly; it draws, nothing else.

Colours are those of Okabe & Ito (2008), told apart by all kinds of colour vision; a meaning keeps its colour on every
page. Times are in the policy's zone. Colours of text and ground are left to the page, which knows light from dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from zoneinfo import ZoneInfo

import plotly
import plotly.graph_objects as go

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#8A8A8A",
)
DEMAND, HELD, SUPPLY, TARGET, SHARE, FLOOR, CEILING, WAITING = ORANGE, BLUE, GREEN, PURPLE, GREEN, GREY, GREY, RED


def plotly_js() -> Path:
    """The plotly.js that the installed package carries: served by us, so that a page asks nobody else."""
    return Path(str(files("plotly") / "package_data" / "plotly.min.js"))


def plotly_version() -> str:
    """The version, for cache keys."""
    return str(plotly.__version__)


def times(at_s: Sequence[int], zone: str) -> list[str]:
    """Instants as local wall-clock text, which Plotly draws as it is."""
    tz = ZoneInfo(zone)
    return [datetime.fromtimestamp(at, UTC).astimezone(tz).strftime("%Y-%m-%d %H:%M:%S") for at in at_s]


def gpus(milli: Sequence[int]) -> list[float]:
    """Milli-GPUs as GPUs."""
    return [value / 1000 for value in milli]


def blank(zone: str, unit: str = "GPUs") -> go.Figure:
    """A chart over time without lines yet."""
    figure = go.Figure()
    figure.update_layout(
        margin={"l": 56, "r": 12, "t": 8, "b": 40},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        hovermode="x unified",
        xaxis={"title": {"text": f"time ({zone})", "standoff": 6}, "type": "date"},
        yaxis={"title": {"text": unit}, "rangemode": "tozero"},
        uirevision="keep",
    )
    return figure


def line(
    figure: go.Figure,
    x: list[str],
    y: Sequence[float | None],
    name: str,
    colour: str,
    *,
    dash: str = "solid",
    width: float = 2,
) -> None:
    """Add a line of steps: a value holds until the next one."""
    figure.add_scatter(
        x=x,
        y=list(y),
        name=name,
        mode="lines",
        line={"color": colour, "dash": dash, "width": width, "shape": "hv"},
        hovertemplate="%{y:,.1f}",
    )


def document(figure: go.Figure) -> str:
    """The figure as JSON text."""
    text = figure.to_json()
    return str(text)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a forecast says of a coming window: the most demand, between two of its quantiles, in milli-GPUs."""

    start_s: int
    end_s: int
    low_permille: int
    high_permille: int
    low: int
    high: int


def fleet(
    at_s: Sequence[int],
    columns: Mapping[str, Sequence[int]],
    zone: str,
    gpus_per_node: int = 0,
    expected: Expected | None = None,
) -> go.Figure:
    """A pool's demand against what it holds, has and aims at, and what is expected; milli-GPUs in ``columns``.

    ``gpus_per_node`` 0: not known, the target is left out.
    """
    figure, x = blank(zone), times(at_s, zone)
    figure.add_scatter(
        x=x,
        y=gpus(columns["supply_milli_gpus"]),
        name="GPUs ready",
        mode="lines",
        fill="tozeroy",
        fillcolor="rgba(0,158,115,0.12)",
        line={"color": SUPPLY, "width": 1.5, "shape": "hv"},
        hovertemplate="%{y:,.1f}",
    )
    line(figure, x, gpus(columns["held_milli_gpus"]), "held by work", HELD)
    line(figure, x, gpus(columns["demand_milli_gpus"]), "demand (running + waiting)", DEMAND)
    line(figure, x, gpus(columns["obtainable_milli_gpus"]), "most that can be had", CEILING, dash="dot", width=1)
    if gpus_per_node:
        target = [nodes * gpus_per_node for nodes in columns["target_nodes"]]
        line(figure, x, target, "target", TARGET, dash="dash", width=1.5)
    if expected is not None:
        _box(figure, expected, zone)
    return figure


def _box(figure: go.Figure, window: Expected, zone: str) -> None:
    """A coming window as a box: as long as the window, as high as the quantiles are apart."""
    left, right = times([window.start_s, window.end_s], zone)
    low, high = window.low / 1000, window.high / 1000
    share = f"{window.low_permille / 10:g}–{window.high_permille / 10:g} %"
    minutes = (window.end_s - window.start_s) // 60
    figure.add_scatter(
        x=[left, right, right, left, left],
        y=[low, low, high, high, low],
        name=f"expected peak of {minutes} min, {share}",
        mode="lines",
        fill="toself",
        fillcolor="rgba(86,180,233,0.35)",
        line={"color": SKY, "width": 1},
        hoverinfo="skip",
    )


def nodes(at_s: Sequence[int], columns: Mapping[str, Sequence[int]], zone: str) -> go.Figure:
    """A pool's nodes by state, and the targets."""
    figure, x = blank(zone, "nodes"), times(at_s, zone)
    for field, name, colour in (("nodes_ready", "ready", SUPPLY), ("nodes_booting", "booting", SKY)):
        figure.add_scatter(
            x=x,
            y=list(columns[field]),
            name=name,
            mode="lines",
            stackgroup="nodes",
            line={"color": colour, "width": 0.5, "shape": "hv"},
            hovertemplate="%{y:,.0f}",
        )
    line(figure, x, columns["target_nodes"], "target", TARGET, width=1.5)
    line(figure, x, columns["rule_nodes"], "what the rule alone would have", GREY, dash="dot", width=1.5)
    return figure


def team(at_s: Sequence[int], columns: Mapping[str, Sequence[int]], zone: str) -> go.Figure:
    """A team's demand and holdings within its share and bounds."""
    figure, x = blank(zone), times(at_s, zone)
    line(figure, x, gpus(columns["ceiling"]), "ceiling", CEILING, dash="dot", width=1)
    line(figure, x, gpus(columns["floor"]), "floor", FLOOR, dash="dash", width=1)
    figure.add_scatter(
        x=x,
        y=gpus(columns["share"]),
        name="share (may hold)",
        mode="lines",
        fill="tozeroy",
        fillcolor="rgba(0,158,115,0.12)",
        line={"color": SHARE, "width": 1.5, "shape": "hv"},
        hovertemplate="%{y:,.1f}",
    )
    line(figure, x, gpus(columns["demand"]), "demand", DEMAND)
    line(figure, x, gpus(columns["held"]), "held", HELD)
    return figure


def waits(at_s: Sequence[int], pending: Sequence[int], longest_wait_s: Sequence[int], zone: str) -> go.Figure:
    """GPUs waited for, and how long the longest wait is."""
    figure, x = blank(zone, "GPUs waited for"), times(at_s, zone)
    figure.add_scatter(
        x=x,
        y=gpus(pending),
        name="GPUs waited for",
        mode="lines",
        fill="tozeroy",
        fillcolor="rgba(213,94,0,0.15)",
        line={"color": WAITING, "width": 1.5, "shape": "hv"},
        hovertemplate="%{y:,.1f} GPUs",
    )
    figure.add_scatter(
        x=x,
        y=[value / 60 for value in longest_wait_s],
        name="longest wait (right)",
        mode="lines",
        yaxis="y2",
        line={"color": PURPLE, "width": 1.5, "dash": "dot", "shape": "hv"},
        hovertemplate="%{y:,.0f} min",
    )
    figure.update_layout(
        yaxis2={
            "title": {"text": "minutes"},
            "overlaying": "y",
            "side": "right",
            "rangemode": "tozero",
            "showgrid": False,
            "tickmode": "auto",
            "nticks": 4,
        },
        margin={"r": 56},
    )
    return figure


Quantiles = Mapping[int, Sequence[int]]
"""Permille level → milli-GPUs by row."""


def forecast(
    made_for_s: Sequence[int], quantiles: Quantiles, actual_at_s: Sequence[int], actual: Sequence[int], zone: str
) -> go.Figure:
    """Forecast quantiles at the moments they were made for, against what came; each band names its levels."""
    figure, x = blank(zone), times(made_for_s, zone)
    levels = sorted(quantiles)
    for low, high, alpha in _bands(levels):
        figure.add_scatter(
            x=x, y=gpus(quantiles[low]), mode="lines", line={"width": 0}, showlegend=False, hoverinfo="skip"
        )
        figure.add_scatter(
            x=x,
            y=gpus(quantiles[high]),
            mode="lines",
            line={"width": 0},
            fill="tonexty",
            fillcolor=f"rgba(86,180,233,{alpha})",
            name=f"forecast, {low / 10:g}–{high / 10:g} %",
            hovertemplate="up to %{y:,.1f}",
        )
    if 500 in quantiles:
        figure.add_scatter(
            x=x,
            y=gpus(quantiles[500]),
            name="forecast, median",
            mode="lines",
            line={"color": BLUE, "width": 1.5},
            hovertemplate="%{y:,.1f}",
        )
    line(figure, times(actual_at_s, zone), gpus(actual), "actual demand", ORANGE)
    return figure


def ahead(
    hours_s: Sequence[int], quantiles: Quantiles, actual_at_s: Sequence[int], actual: Sequence[int], zone: str
) -> go.Figure:
    """The coming hours as a band, after what was."""
    figure, x = blank(zone), times(hours_s, zone)
    line(figure, times(actual_at_s, zone), gpus(actual), "demand so far", ORANGE, width=1.5)
    if quantiles:
        low, high = min(quantiles), max(quantiles)
        figure.add_scatter(
            x=x, y=gpus(quantiles[low]), mode="lines", line={"width": 0}, showlegend=False, hoverinfo="skip"
        )
        figure.add_scatter(
            x=x,
            y=gpus(quantiles[high]),
            mode="lines",
            line={"width": 0},
            fill="tonexty",
            fillcolor="rgba(86,180,233,0.3)",
            name=f"expected, {low / 10:g}–{high / 10:g} %",
            hovertemplate="up to %{y:,.1f}",
        )
        line(figure, x, gpus(quantiles[500]), "expected, median", BLUE)
    return figure


def _bands(levels: list[int]) -> list[tuple[int, int, float]]:
    """Bands from the outermost levels inwards, the inner ones stronger."""
    wanted = [(100, 980, 0.18), (100, 900, 0.30), (500, 900, 0.40)]
    found = [(low, high, alpha) for low, high, alpha in wanted if low in levels and high in levels]
    return found[:2] or ([(levels[0], levels[-1], 0.25)] if len(levels) > 1 else [])
