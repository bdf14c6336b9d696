"""All charts of the notebooks under one name: ``tg.chart.demand(history)``. Each returns a Plotly figure."""

from dashboard.notebook.figures.demand import (
    demand,
    idle_and_waiting,
    peaks_map,
    rhythm,
    team_week_lines,
    week_map,
)
from dashboard.notebook.figures.forecasts import by_team, fan, scores, settings
from dashboard.notebook.figures.waiting import by_weight, money, trade_off
from dashboard.notebook.figures.whatif import costs, fleet, team, waits

__all__ = [
    "by_team",
    "by_weight",
    "costs",
    "demand",
    "fan",
    "fleet",
    "idle_and_waiting",
    "money",
    "peaks_map",
    "rhythm",
    "scores",
    "settings",
    "team",
    "team_week_lines",
    "trade_off",
    "waits",
    "week_map",
]
