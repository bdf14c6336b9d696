"""The bundled trace is a slice of the public traces, shifted in time and renamed, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

DEMO = Path(__file__).resolve().parents[2] / "controller" / "data" / "traces" / "demo"
DAY_S = 86_400
PHILLY_FROM_S, SPAN_S = 39 * DAY_S, 5 * DAY_S
TEAMS = {"6214e9": "vision", "0e4a51": "language", "103959": "speech"}


def demand(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path / "demand_5min.parquet")


def test_inference_is_azure_code_unchanged(shared_traces: Path) -> None:
    whole = demand(shared_traces / "azure_llm_2024").query("team == 'azure-code' and t_s < @SPAN_S")
    ours = demand(DEMO).query("team == 'inference'")
    assert ours.wanted_mean.to_list() == whole.wanted_mean.to_list()
    assert ours.t_s.to_list() == whole.t_s.to_list()


@pytest.mark.parametrize(("there", "here"), TEAMS.items())
def test_training_teams_have_the_demand_and_the_jobs_of_philly(shared_traces: Path, there: str, here: str) -> None:
    whole = demand(shared_traces / "philly")
    whole = whole[(whole.team == there) & whole.t_s.between(PHILLY_FROM_S, PHILLY_FROM_S + SPAN_S - 1)]
    ours = demand(DEMO)
    ours = ours[ours.team == here]
    assert (ours.t_s + PHILLY_FROM_S).to_list() == whole.t_s.to_list()
    assert ours.wanted_mean.to_list() == whole.wanted_mean.to_list()

    jobs = pd.read_parquet(shared_traces / "philly" / "jobs.parquet")
    alive = jobs[
        (jobs.team == there)
        & (jobs.submit_s < PHILLY_FROM_S + SPAN_S)
        & (jobs.submit_s + jobs.duration_s > PHILLY_FROM_S)
    ]
    bundled = pd.read_parquet(DEMO / "jobs.parquet").query("team == @here")
    assert sorted(bundled.job_id) == sorted(alive.job_id)
    assert bundled.gpus.sum() == alive.gpus.sum()
    assert (bundled.submit_s + bundled.duration_s).max() <= SPAN_S


def test_the_credits_name_source_and_licence_of_every_team() -> None:
    credits_text = (DEMO / "CREDITS.md").read_text()
    for wanted in ("CC BY 4.0", "AzurePublicDataset", "msr-fiddle/philly-traces", *demand(DEMO).team.unique()):
        assert wanted in credits_text
