"""Every chart: it asks a question, its axes carry units, and it draws what its table says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from notebook_sources import DAY_S, MONDAY_S, a_history, office, wavy, write_learning, write_store

from controller.core.errors import InputError
from dashboard import notebook as tg
from dashboard.notebook.forecasts import Study
from dashboard.notebook.tuning import Trial
from dashboard.notebook.waiting import Sweep
from dashboard.notebook.whatif import Comparison


@dataclass(frozen=True)
class Made:
    """One of everything that charts are drawn of."""

    history: tg.History
    store: tg.History
    study: Study
    trial: Trial
    sweep: Sweep
    compared: Comparison
    learner: tg.Learner
    recorded: tg.Recorded
    other: tg.Sensitivity


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    demand = {"dev": wavy(4, 40, 30), "vision": office(4, 4, 24)}
    history = a_history(demand)
    path = write_store(tmp_path_factory.mktemp("charts") / "store.sqlite", demand)
    store = tg.open(str(write_learning(path, MONDAY_S + 4 * DAY_S)))
    policy = tg.policy(history)
    return Made(
        history,
        store,
        tg.forecast(history, leads=("15m", "30m")),
        tg.try_settings(history),
        tg.sweep(history, weights=(3, 9)),
        tg.what_if(history, policy, policy.change(policy.floors(0.5)), days=0.2),
        tg.learner(history),
        tg.recorded(store),
        tg.sensitivity(history, leads=["15m"], weights=[9]),
    )


CHARTS: dict[str, Callable[[Made], go.Figure]] = {
    "by_team": lambda made: tg.chart.by_team(made.study, "30 min"),
    "by_weight": lambda made: tg.chart.by_weight(made.sweep),
    "costs": lambda made: tg.chart.costs(made.compared),
    "days": lambda made: tg.chart.days(made.history),
    "demand": lambda made: tg.chart.demand(made.history),
    "fan": lambda made: tg.chart.fan(made.study, "dev"),
    "fleet": lambda made: tg.chart.fleet(made.compared),
    "gate": lambda made: tg.chart.gate(made.learner),
    "idle_and_waiting": lambda made: tg.chart.idle_and_waiting(made.store),
    "money": lambda made: tg.chart.money(made.sweep, 2.5),
    "peaks": lambda made: tg.chart.peaks(made.history),
    "rhythm": lambda made: tg.chart.rhythm(made.history),
    "savings": lambda made: tg.chart.savings(made.learner),
    "scores": lambda made: tg.chart.scores(made.study),
    "sensitivity": lambda made: tg.chart.sensitivity(made.other),
    "settings": lambda made: tg.chart.settings(made.trial),
    "targets": lambda made: tg.chart.targets(made.learner),
    "team": lambda made: tg.chart.team(made.compared, "dev"),
    "trade_off": lambda made: tg.chart.trade_off(made.sweep, tg.paying_now(made.sweep)),
    "waits": lambda made: tg.chart.waits(made.compared),
    "week": lambda made: tg.chart.week(made.history),
    "weights": lambda made: tg.chart.weights(made.learner),
    "why": lambda made: tg.chart.why(made.learner.why()),
}
NAMES_ON_AXIS = {("by_team", "y"), ("costs", "x"), ("waits", "x"), ("week", "y")}
"""Axes on which names stand, which need no title."""


def title(figure: go.Figure) -> str:
    return str(figure.layout.title.text)


def test_there_is_a_case_for_every_chart() -> None:
    assert sorted(CHARTS) == sorted(tg.chart.__all__)


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_asks_a_question_and_names_its_axes(name: str, made: Made) -> None:
    figure = CHARTS[name](made)
    assert isinstance(figure, go.Figure)
    assert title(figure).split("</b>")[0].removeprefix("<b>").rstrip(")").split(" (")[0].endswith("?")
    for axis in ("x", "y"):
        said = figure.layout[f"{axis}axis"].title.text
        assert said or (name, axis) in NAMES_ON_AXIS, f"the {axis} axis of {name} has no title"


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_draws_something_and_every_trace_has_a_name(name: str, made: Made) -> None:
    figure = CHARTS[name](made)
    assert len(figure.data)
    for trace in figure.data:
        if trace.type in ("bar", "scatter"):
            shown = trace.showlegend is not False
            assert trace.name or not shown or len(figure.data) == 1
            nested = isinstance(trace.x[0], (list, tuple))  # an axis of two rows
            assert len(trace.x[0] if nested else trace.x) == len(trace.y)
        values = trace.z if trace.type == "heatmap" else trace.x if trace.orientation == "h" else trace.y
        assert np.isfinite(np.array(values, dtype=float)).any(), f"nothing but gaps: {trace.name}"


def trace(figure: go.Figure, name: str) -> go.Scatter:
    return next(one for one in figure.data if one.name == name)


def test_learners_charts_show_their_tables(made: Made) -> None:
    savings = made.learner.savings()
    bars = trace(tg.chart.savings(made.learner), "learner")
    assert list(bars.y) == savings["learner"].tolist()
    assert list(bars.x) == ["Tue 29 Sep", "Wed 30 Sep", "Thu 01 Oct"]
    weights = tg.chart.weights(made.learner)
    assert np.sum([one.y for one in weights.data], axis=0) == pytest.approx([100.0] * 96)
    targets = tg.chart.targets(made.learner, days=1)
    assert list(trace(targets, "learner").y) == made.learner.targets()["learner"].tolist()[-288:]
    why = made.learner.why()
    moment = tg.chart.why(why)
    assert sum(trace(moment, "candidates").y) == pytest.approx(100)
    assert list(trace(moment, f"rule: {why.rule:,.0f} GPUs").x) == [why.rule] * 2


def test_what_was_recorded_is_drawn_like_what_was_replayed(made: Made) -> None:
    assert list(trace(tg.chart.savings(made.recorded), "learner").y) == [2.5, -1.0]
    gate = tg.chart.gate(made.recorded)
    assert [one.name for one in gate.data] == ["the learner acts"]
    assert list(gate.data[0].y) == [1.5]
    assert list(gate.data[0].error_y.array) == [0.25]
    assert list(trace(tg.chart.targets(made.recorded), "aimed at").y) == [32, 24, 24]
    moment = tg.chart.why(made.recorded.why())
    assert "share of candidates" in moment.layout.yaxis.title.text


def test_idle_and_waiting_are_what_the_store_saw(made: Made) -> None:
    figure = tg.chart.idle_and_waiting(made.store)
    assert list(trace(figure, "idle").y) == pytest.approx([2.0] * len(trace(figure, "idle").y))
    assert list(trace(figure, "waiting").y) == pytest.approx([-4.0] * len(trace(figure, "waiting").y))


def test_where_there_is_nothing_to_draw_a_word_says_so(made: Made) -> None:
    nothing = tg.recorded(made.history)
    short = tg.learner(a_history({"dev": office(2, 1, 2)}, zone="Europe/Berlin"))
    for figure, word in (
        (tg.chart.savings(nothing), "no shadow day on record"),
        (tg.chart.targets(nothing), "nothing on record"),
        (tg.chart.gate(nothing), "no midnight yet with two judged days behind it"),
        (tg.chart.gate(short), "no midnight yet with two judged days behind it"),
        (tg.chart.why(nothing.why()), "nothing on record"),
        (tg.chart.idle_and_waiting(made.history), "this source does not record what ran or stood idle"),
    ):
        assert [note.text for note in figure.layout.annotations] == [word]
        assert not figure.data


def test_many_teams_and_gaps_are_drawn_in_bounds() -> None:
    teams = {f"team-{i:02}": office(2, 1, 2 + i) for i in range(30)}
    teams["team-00"][100:200] = np.nan
    history = a_history(teams)
    demand = tg.chart.demand(history)
    assert [one.name for one in demand.data][-1] == "24 other teams"
    assert len(demand.layout.shapes) == 1
    assert len(tg.chart.peaks(history).data[0].x) == 24


@pytest.mark.parametrize(
    ("draw", "word"),
    [
        (lambda made: tg.chart.fan(made.study, "nobody"), "team: nobody: one of dev, vision, or 'all teams'"),
        (lambda made: tg.chart.week(made.history, "nobody"), "team: nobody: one of dev, vision, or 'all teams'"),
        (lambda made: tg.chart.by_team(made.study, "7 min"), "horizon: 7 min: one of 15 min, 30 min"),
        (lambda made: tg.chart.money(made.sweep, 1, "mine"), "policy: mine: one of always the peak"),
    ],
)
def test_a_name_that_is_not_there_is_refused_in_one_line(
    draw: Callable[[Made], go.Figure], word: str, made: Made
) -> None:
    with pytest.raises(InputError) as caught:
        draw(made)
    assert str(caught.value).startswith(word)
    assert "\n" not in str(caught.value)


def test_who_only_looks_at_demand_does_not_wait_for_statistics(tmp_path: Path) -> None:
    code = (
        "import sys; from dashboard import notebook; print([m for m in ('sklearn', 'statsmodels') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]"
