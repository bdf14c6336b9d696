"""The job view on a handful of jobs, worked out by hand; and the benchmark's views on a small trace folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from controller.backtest.jobs import _Replay
from controller.backtest.run import bench
from controller.backtest.traces import load_trace
from controller.core.errors import InputError
from controller.learning.fleet import Terms
from controller.worlds.simulated.jobs import Job

TERMS = Terms(gpus_per_node=8, lead_s=600, wait_weight=9.0)


def a_job(name: str, at: int, lasts: int, gpus: int) -> Job:
    return Job(name, "t", at, lasts, 1, gpus * 1000)


def test_by_hand_a_job_waits_for_the_node_that_is_asked_for_when_it_is_seen() -> None:
    # One node serves; job a takes it for an hour. Job b wants a node at 60 s, is seen at 300 s and starts at 900 s.
    jobs = [a_job("a", 0, 3600, 8), a_job("b", 60, 1200, 8)]
    days = _Replay(TERMS, "default_reactive", np.zeros(12), jobs, 0, 1).run(12, 288)
    assert days.queue_s is not None
    assert days.queue_s.tolist() == [900 - 60]
    assert days.wait.sum() == pytest.approx(8 * (900 - 60) / 3600)
    # b's node serves from 900 s to 2100 s, when b is done and a tick sees it. a's serves all the hour.
    assert days.provisioned.sum() == pytest.approx(8 * (3600 + 1200) / 3600)
    assert days.idle.sum() == pytest.approx(0)
    assert days.adds.sum() == 1


def test_by_hand_a_policy_that_planned_for_the_second_job_makes_it_wait_for_nothing() -> None:
    jobs = [a_job("a", 0, 3600, 8), a_job("b", 900, 1200, 8)]
    days = _Replay(TERMS, "forecast", np.full(12, 2.0), jobs, 0, 1).run(12, 288)
    assert days.wait.sum() == 0
    # The second node, asked for at 0 s, serves from 600 s and idles 300 s until b, and from 2100 s to the end.
    assert days.idle.sum() == pytest.approx(8 * (300 + 1500) / 3600)


def test_eight_free_gpus_on_two_nodes_are_no_place_for_a_gang_of_eight() -> None:
    jobs = [a_job("a", 0, 3600, 4), a_job("b", 0, 3600, 8), a_job("c", 0, 600, 4), a_job("d", 700, 600, 8)]
    days = _Replay(TERMS, "default_reactive", np.zeros(12), jobs, 0, 2).run(12, 288)
    assert days.queue_s is not None
    # d is seen at 900 s and has a node of its own at 1500 s, though four GPUs are free beside a.
    assert days.queue_s.max() == 1500 - 700


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    submit = np.sort(rng.integers(0, 4 * 86_400, 400))
    jobs = pd.DataFrame(
        {
            "job_id": [f"j{i}" for i in range(400)],
            "team": rng.choice(["red", "blue"], 400),
            "submit_s": submit.astype(float),
            "duration_s": rng.integers(300, 20_000, 400).astype(float),
            "gpus": rng.choice([1.0, 2.0, 8.0, 16.0], 400),
        }
    )
    jobs.to_parquet(tmp_path / "jobs.parquet")
    grid = np.arange(0, 4 * 86_400, 300)
    rows = []
    for team in ("red", "blue"):
        mine = jobs[jobs.team == team]
        begin, end = mine.submit_s.to_numpy(), (mine.submit_s + mine.duration_s).to_numpy()
        for at in grid:
            inside = np.clip(np.minimum(end, at + 300) - np.maximum(begin, at), 0, None) @ mine.gpus.to_numpy() / 300
            rows.append((at, team, inside, inside))
    pd.DataFrame(rows, columns=["t_s", "team", "wanted_mean", "wanted_max"]).to_parquet(
        tmp_path / "demand_5min.parquet"
    )
    (tmp_path / "trace.json").write_text(json.dumps({"t0": "2026-06-01T00:00:00"}))
    return tmp_path


def test_jobs_are_the_view_where_there_are_jobs_and_every_policy_has_its_row(folder: Path) -> None:
    report = bench(load_trace(str(folder)), TERMS).plain()
    assert report["view"] == "jobs"
    named = ["static_peak", "default_reactive", "tuned_rule", "forecast", "learner", "gated", "optimum"]
    assert list(report["policies"]) == named
    assert report["policies"]["tuned_rule"]["gap_closed"] == 0
    assert report["policies"]["optimum"]["gap_closed"] == 1
    assert report["policies"]["static_peak"]["queue_p99_s"] is not None
    assert report["policies"]["default_reactive"]["wait_gpu_h"] > 0


def test_no_policy_is_cheaper_than_the_optimum_in_the_demand_view_and_queues_are_null(folder: Path) -> None:
    rows = bench(load_trace(str(folder)), TERMS, "demand").plain()["policies"]
    assert min(row["cost"] for row in rows.values()) == rows["optimum"]["cost"]
    assert {row["queue_p50_s"] for row in rows.values()} == {None}


@pytest.mark.parametrize("view", ["jobs", "demand"])
def test_a_poisoned_future_changes_no_target_before_it(folder: Path, view: str) -> None:
    """Files, both views, every policy but the optimum: what comes after the cut is another world."""
    # A job begins in the first poisoned step, so that a look one step ahead shows.
    cut = int(pd.read_parquet(folder / "jobs.parquet").submit_s[330]) // 300
    honest = bench(load_trace(str(folder)), TERMS, view).plans
    for name, at, columns in (
        ("jobs", "submit_s", ["gpus"]),
        ("demand_5min", "t_s", ["wanted_mean", "wanted_max"]),
    ):
        path = folder / f"{name}.parquet"
        frame = pd.read_parquet(path)
        frame.loc[frame[at] >= cut * 300, columns] *= 50
        frame.to_parquet(path)
    poisoned = bench(load_trace(str(folder)), TERMS, view).plans
    assert not np.array_equal(honest.optimum.plan, poisoned.optimum.plan)
    for name, targets in honest.targets.items():
        # The decision at the first poisoned row sees the row before it, which is still honest.
        assert np.array_equal(targets[: cut + 1], poisoned.targets[name][: cut + 1]), name


def test_judge_from_of_the_trace_wins_over_the_share_to_train_on(folder: Path) -> None:
    (folder / "trace.json").write_text(json.dumps({"t0": "2026-06-01T00:00:00", "judge_from_s": 86_400 * 3}))
    assert load_trace(str(folder), train=0.1).judge_from == 3 * 288


def test_scaling_sets_the_mean_of_the_training_part(folder: Path) -> None:
    trace = load_trace(str(folder), scale=64)
    assert np.nanmean(trace.total.values[: trace.judge_from]) == pytest.approx(64)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda f: (f / "demand_5min.parquet").unlink(), "demand_5min.parquet"),
        (lambda f: _without(f / "demand_5min.parquet", "team"), "column team: missing"),
        (lambda f: _with(f / "demand_5min.parquet", "wanted_mean", -1.0), "wanted_mean, row 0: -1.0"),
        (lambda f: _without(f / "jobs.parquet", "duration_s"), "column duration_s: missing"),
        (lambda f: _with(f / "jobs.parquet", "duration_s", -5.0), "duration_s, row 0: -5.0"),
        (lambda f: (f / "trace.json").write_text("{"), "not JSON"),
        (lambda f: (f / "trace.json").write_text('{"judge_from_s": 1e9}'), "judge_from_s"),
    ],
)
def test_a_trace_that_cannot_be_one_is_refused_in_one_line(folder: Path, change, says: str) -> None:
    change(folder)
    with pytest.raises(InputError) as refused:
        bench(load_trace(str(folder)), TERMS)
    assert len(refused.value.lines()) == 1
    assert says in refused.value.lines()[0]


def _without(path: Path, column: str) -> None:
    pd.read_parquet(path).drop(columns=column).to_parquet(path)


def _with(path: Path, column: str, value: float) -> None:
    frame = pd.read_parquet(path)
    frame.loc[0, column] = value
    frame.to_parquet(path)
