"""``tidegate forecast score`` as a script sees it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from controller.cli.forecast import app as forecast
from controller.core.errors import InputError

app = typer.Typer()
app.add_typer(forecast, name="forecast")
DAY = 288


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Four days of two teams, the second constant."""
    rows = np.arange(4 * DAY)
    busy = 40 - 20 * np.cos(2 * np.pi * rows / DAY)
    frames = [
        pd.DataFrame({"t_s": rows * 300, "team": team, "wanted_mean": values})
        for team, values in (("serving", busy), ("steady", np.full(len(rows), 5.0)))
    ]
    pd.concat(frames).to_parquet(tmp_path / "demand_5min.parquet")
    (tmp_path / "trace.json").write_text(json.dumps({"t0": "2024-01-01", "judge_from_s": 3 * 86_400}))
    return tmp_path


def test_one_json_document_with_every_model_at_every_horizon(trace: Path) -> None:
    arguments = [
        "forecast",
        "score",
        "--trace",
        str(trace),
        "--team",
        "serving",
        "--lead",
        "30m",
        "--lead",
        "1h",
        "--json",
    ]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    document = json.loads(result.stdout)
    assert document["judge_from_s"] == 3 * 86_400
    assert [(h["lead_s"], h["length_s"]) for h in document["horizons"]] == [(1800, 900), (3600, 900)]
    for horizon in document["horizons"]:
        assert set(horizon["models"]) == {"mixture", "last_value", "seasonal", "boosted"}
        # an exact rhythm: the day before tells nearly all, the last value misses the slope
        assert horizon["models"]["seasonal"]["mase_last_value"] < 0.5
        assert horizon["models"]["mixture"]["wql"] < horizon["models"]["last_value"]["wql"]


def test_a_glob_without_a_team_is_refused(trace: Path) -> None:
    with pytest.raises(InputError, match="serving, steady"):
        CliRunner().invoke(
            app, ["forecast", "score", "--trace", str(trace), "--team", "nobody*"], catch_exceptions=False
        )


def test_beside_statsforecast_each_model_has_its_accuracy_and_its_time(trace: Path) -> None:
    arguments = ["forecast", "score", "--trace", str(trace), "--team", "serving", "--lead", "30m", "--json"]
    against = ["--against", "statsforecast", "--every", "1h"]
    result = CliRunner().invoke(app, [*arguments, *against], catch_exceptions=False)
    models = json.loads(result.stdout)["horizons"][0]["models"]
    peers = {"SeasonalNaive", "AutoTheta", "MSTL", "AutoETS"}
    assert set(models) == {"mixture", "last_value", "seasonal", "boosted", *peers}
    assert len({model["rows"] for model in models.values()}) == 1
    assert models["SeasonalNaive"]["wql"] == pytest.approx(0, abs=1e-9)  # each day is the day before
    assert all(models[name]["fit_s"] > 0 and models[name]["forecast_s"] > 0 for name in ("mixture", *peers))
    assert models["AutoTheta"]["teams_wql"] is None


@pytest.mark.parametrize(
    ("against", "every", "named"),
    [("prophet", "1h", "--against"), ("statsforecast", "7h", "--every"), ("statsforecast", "1m", "--every")],
)
def test_another_package_or_an_uneven_stride_is_refused(trace: Path, against: str, every: str, named: str) -> None:
    arguments = ["forecast", "score", "--trace", str(trace), "--against", against, "--every", every]
    with pytest.raises(InputError, match=named):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
