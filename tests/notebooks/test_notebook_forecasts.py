"""Forecasts of a history: scored as the definitions say, on demand where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from notebook_sources import DAY_ROWS, a_history, office, wavy

from controller.core.errors import InputError
from dashboard import notebook as tg
from dashboard.notebook.forecasts import Study
from forecaster.windows import Window


@pytest.fixture(scope="module")
def study() -> Study:
    return tg.forecast(a_history({"dev": wavy(5, 40, 30), "vision": office(5, 4, 24)}), leads=("30m", "15m", "30m"))


def test_horizons_are_sorted_and_each_once(study: Study) -> None:
    assert study.horizons == ("15 min", "30 min")
    assert study.window("") == Window(900, 900)
    assert study.window("30 min") == Window(1800, 900)


def test_scores_have_every_team_horizon_and_model(study: Study) -> None:
    scores = study.scores()
    models = {"mixture", "last value", "days alike", "boosted trees", "same time yesterday"}
    assert set(scores.index.get_level_values("model")) == models
    assert set(scores.index.get_level_values("team")) == {"all teams", "dev", "vision"}
    assert len(scores) == 3 * 2 * len(models)
    assert len(study.scores("dev")) == 2 * len(models)


def test_yesterdays_score_is_what_its_definition_gives(study: Study) -> None:
    """WQL of one value said at every level: the pinball losses of all levels, over what came."""
    history, window = study.history, study.window("15 min")
    total, start = history.total, history.judge_from
    truth = np.array([total[t + 3 : t + 6].max() if t + 6 <= len(total) else np.nan for t in range(len(total))])
    said = np.concatenate([np.full(DAY_ROWS, np.nan), truth[:-DAY_ROWS]])
    known = np.isfinite(truth) & np.isfinite(said) & (np.arange(len(total)) >= start)
    error = (truth - said)[known]
    from forecaster.metrics import LEVELS

    losses = [np.maximum(level * error, (level - 1) * error).sum() for level in LEVELS]
    row = study.scores("all teams").loc[("all teams", "15 min", "same time yesterday")]
    assert row["WQL"] == pytest.approx(2 * np.mean(losses) / truth[known].sum())
    assert row["rows"] == known.sum()
    assert row["MASE yesterday"] == pytest.approx(1)
    assert study.actual("all teams", window)[:10] == pytest.approx(truth[:10])


def test_days_alike_are_known_to_all_but_the_last_value(study: Study) -> None:
    scores = study.scores("vision").xs("30 min", level="horizon").droplevel("team")
    assert scores.loc["same time yesterday", "WQL"] == pytest.approx(0, abs=1e-9)
    assert scores.loc["days alike", "WQL"] < scores.loc["last value", "WQL"]


def test_the_verdict_names_the_gain_over_the_better_naive_answer(study: Study) -> None:
    said = study.verdict("dev")
    assert said.startswith("For **dev**:")
    table = study.scores("dev").loc[("dev", "15 min")]
    naive = min(table.loc["last value", "WQL"], table.loc["same time yesterday", "WQL"])
    gain = (1 - table.loc["mixture", "WQL"] / naive) * 100
    assert f"({gain:+.0f} % in WQL)" in said.split("\n")[2]
    assert said.count("ahead**") == 2
    assert "nothing could be scored" in study.verdict("vision")  # yesterday is always right: nothing to beat


@pytest.mark.parametrize(
    ("act", "word"),
    [
        (lambda study: study.window("1 h"), "horizon: 1 h: one of 15 min, 30 min"),
        (lambda study: study.scores("nobody"), "team: nobody: one of dev, vision"),
        (lambda study: tg.forecast(study.history, leads=("x",)), "LEADS: x: a duration"),
        (lambda study: tg.forecast(study.history.last_days(1)), "history for forecasts: 1.0 days: at least 2 days"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(act, word: str, study: Study) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError) as caught:
        act(study)
    assert str(caught.value).startswith(word)
    assert "\n" not in str(caught.value)


def test_no_leads_at_all_is_refused(study: Study) -> None:
    with pytest.raises(InputError, match="LEADS"):
        tg.forecast(study.history, leads=())
