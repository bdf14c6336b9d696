"""What the notebooks import, in one line: ``from dashboard import notebook as tg``.

Few names, made for people who never saw the rest of the code. Everything starts with ``tg.open(SOURCE)``, which takes a
trace folder, a Parquet or CSV file, or a store, and gives a ``History``; tables come back as pandas frames, charts
(``tg.chart``) as Plotly figures, sentences as text. What is computed is computed by the product's own forecaster, loop
and benchmark: a notebook never has a second opinion of its own.
"""

from dashboard.notebook import chart
from dashboard.notebook.explore import idle_and_waiting, peaks, quality, rhythm
from dashboard.notebook.forecasts import forecast
from dashboard.notebook.history import ALL_TEAMS, History
from dashboard.notebook.other_terms import Sensitivity, sensitivity
from dashboard.notebook.policies import Draft, policy
from dashboard.notebook.records import Recorded, recorded
from dashboard.notebook.replayed import Learner, learner
from dashboard.notebook.said import Note, setting
from dashboard.notebook.shell import prepare
from dashboard.notebook.sources import open_history as open  # noqa: A004 - tg.open() is what an analyst looks for
from dashboard.notebook.tuning import try_settings
from dashboard.notebook.waiting import implied_weight, paying_now, quantile, sweep
from dashboard.notebook.whatif import what_if

__all__ = [
    "ALL_TEAMS",
    "Draft",
    "History",
    "Learner",
    "Note",
    "Recorded",
    "Sensitivity",
    "chart",
    "forecast",
    "idle_and_waiting",
    "implied_weight",
    "learner",
    "open",
    "paying_now",
    "peaks",
    "policy",
    "quality",
    "quantile",
    "recorded",
    "rhythm",
    "sensitivity",
    "setting",
    "sweep",
    "try_settings",
    "what_if",
]

prepare()
