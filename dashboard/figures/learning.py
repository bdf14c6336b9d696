"""Charts of learning: what it saved by day, and what it would have had against what the rule had."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import plotly.graph_objects as go

from controller.core.quantities import DAY_S
from controller.store import LearningPoint
from dashboard.figures import BLUE, DEMAND, GREY, SKY, TARGET, blank, gpus, line, times

LEARNER, RULE, GATED = BLUE, GREY, TARGET
_COLOURS = {"hedge": LEARNER, "hindsight": SKY, "gated": GATED}
_NAMES = {
    "hedge": "learner: hedge over the candidates",
    "hindsight": "learner: from hindsight",
    "gated": "with the gate: whom it let act, else the rule",
}
FAINT = 0.35
_DAY_MS = 1000 * DAY_S

Days = Sequence[tuple[int, int, bool]]


def saving(series: Sequence[tuple[str, Days]], zone: str, gpu_hour_micro_usd: int = 0) -> go.Figure:
    """Bars by day, in GPU-hours saved over the rule. ``series``: a fleet's name and its days, each its local midnight,
    milli-GPU-hours and whether it counts (faint where not). Without a price money is left out."""
    figure, tz = blank(zone, "GPU-hours saved over the rule"), ZoneInfo(zone)
    for name, days in series:
        money = [saved / 1000 * gpu_hour_micro_usd / 1_000_000 for _, saved, _ in days]
        figure.add_bar(
            x=[datetime.fromtimestamp(day_s, UTC).astimezone(tz).strftime("%Y-%m-%d") for day_s, _, _ in days],
            y=[saved / 1000 for _, saved, _ in days],
            name=_NAMES.get(name, name),
            xperiod=_DAY_MS,
            xperiodalignment="middle",
            customdata=money,
            marker={
                "color": _COLOURS.get(name, GREY),
                "opacity": [1.0 if counts else FAINT for _, _, counts in days],
            },
            hovertemplate="%{y:+,.1f} GPU-hours" + (", $%{customdata:+,.0f}" if gpu_hour_micro_usd else ""),
        )
    figure.update_layout(
        barmode="group",
        bargap=0.25,
        xaxis={"title": {"text": f"day ({zone})"}, "tickformat": "%a %d %b", "hoverformat": "%a %d %b %Y"},
        yaxis={"zeroline": True, "zerolinecolor": GREY, "zerolinewidth": 2},
    )
    return figure


def targets(points: Sequence[LearningPoint], zone: str, gpus_per_node: int) -> go.Figure:
    """Demand against the targets of rule and learner, and what was aimed at after the shield; GPUs."""
    figure, x = blank(zone), times([one.at_s for one in points], zone)

    def of_nodes(milli_nodes: Sequence[int | None]) -> list[float | None]:
        return [None if value is None else value * gpus_per_node / 1000 for value in milli_nodes]

    aimed = of_nodes([one.target_milli_nodes for one in points])
    line(figure, x, aimed, "aimed at", TARGET, width=6)
    figure.data[-1].update(opacity=FAINT)
    line(figure, x, of_nodes([one.rule_milli_nodes for one in points]), "what the rule wants", RULE, dash="dash")
    line(figure, x, of_nodes([one.learner_milli_nodes for one in points]), "what the learner wants", LEARNER)
    line(figure, x, gpus([one.demand_milli_gpus for one in points]), "demand", DEMAND)
    return figure
