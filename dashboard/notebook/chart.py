"""All charts of the notebooks under one name: ``tg.chart.demand(history)``. Each returns a Plotly figure."""

from dashboard.notebook.figures.demand import (
    days,
    demand,
    idle_and_waiting,
    peaks,
    rhythm,
    week,
)
from dashboard.notebook.figures.forecasts import by_team, fan, scores, settings
from dashboard.notebook.figures.learner import gate, savings, sensitivity, targets, weights, why
from dashboard.notebook.figures.waiting import by_weight, money, trade_off
from dashboard.notebook.figures.whatif import costs, fleet, team, waits

__all__ = [
    "by_team",
    "by_weight",
    "costs",
    "days",
    "demand",
    "fan",
    "fleet",
    "gate",
    "idle_and_waiting",
    "money",
    "peaks",
    "rhythm",
    "savings",
    "scores",
    "sensitivity",
    "settings",
    "targets",
    "team",
    "trade_off",
    "waits",
    "week",
    "weights",
    "why",
]
