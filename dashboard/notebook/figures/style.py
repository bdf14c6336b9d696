"""How every chart of the notebooks looks: a title that asks, units on axes, the dashboard's colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from dashboard.figures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY

PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED, "#F0E442", "#000000")
"""Okabe & Ito (2008), told apart by all kinds of colour vision."""
REST = GREY
LEGEND_ROW = 22
TOP = 70
EMPTY = 170


def titled(question: str, x: str, y: str, *, under: str = "", height: int = 380) -> go.Figure:
    """An empty figure. ``question`` is its title, ``under`` a smaller line below it; axes carry their units."""
    text = f"<b>{question}</b>" + (f"<br><span style='font-size:12px;color:#555'>{under}</span>" if under else "")
    figure = go.Figure()
    figure.update_layout(
        template="plotly_white",
        title={
            "text": text,
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 12},
            "font": {"size": 16},
        },
        height=height,
        margin={"l": 64, "r": 24, "t": TOP, "b": 90},
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": -0.22, "yanchor": "top"},
        hovermode="x unified",
        xaxis={"title": {"text": x, "standoff": 8}},
        yaxis={"title": {"text": y, "standoff": 8}, "rangemode": "tozero"},
    )
    return figure


def line(
    figure: go.Figure, x: Any, y: Any, name: str, colour: str, *, dash: str = "solid", width: float = 1.8, **more: Any
) -> None:
    """A line with a name in the legend."""
    figure.add_scatter(x=x, y=y, name=name, mode="lines", line_color=colour, line_dash=dash, line_width=width, **more)


def nothing(figure: go.Figure, why: str) -> go.Figure:
    """The figure with a word where there is nothing to draw, and low: an empty chart needs no room."""
    figure.add_annotation(text=why, showarrow=False, font={"size": 14}, xref="paper", yref="paper", x=0.5, y=0.5)
    figure.update_layout(xaxis={"visible": False}, yaxis={"visible": False}, height=EMPTY, margin={"b": 24})
    return figure


def band(figure: go.Figure, x: Any, low: Any, high: Any, name: str, alpha: float) -> None:
    """A filled band between two lines."""
    hidden = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    figure.add_scatter(x=x, y=low, showlegend=False, **hidden)
    figure.add_scatter(x=x, y=high, name=name, fill="tonexty", fillcolor=f"rgba(86,180,233,{alpha})", **hidden)


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name, in their order; beyond the palette grey."""
    return {name: PALETTE[i] if i < len(PALETTE) else REST for i, name in enumerate(names)}
