"""Agents beside the benchmark: made by name, paid like everybody, and the example that the reference reports on."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from controller.backtest import env as backtest_env
from controller.backtest.env import ID, Task, headroom, headroom_vector, judged, walked
from controller.backtest.run import bench
from controller.backtest.score import Row
from controller.backtest.traces import load_trace
from controller.core.errors import InputError
from controller.learning.course import HISTORY, LENGTHS_S, LEVELS, Course
from controller.learning.env import EPISODES

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "gymnasium_agent.py"
REFERENCE = ROOT / "docs" / "reference" / "gymnasium.md"
TASK = Task(lead_s=1800)


@pytest.fixture(scope="module")
def made() -> Course:
    return TASK.course()


@pytest.fixture(scope="module")
def ruled(made: Course) -> np.ndarray:
    """The targets of an agent that looks up the rule in its observation."""
    column = made.names.index("rule")
    return walked(made, lambda row: round(float(row[column]) * made.scale_gpus / 8))


@pytest.fixture(scope="module")
def rows(ruled: np.ndarray) -> dict[str, Row]:
    return judged({"copy": ruled, "lavish": ruled + 5}, TASK)


def test_gymnasium_makes_it_by_name_in_a_process_that_knows_nothing_of_it() -> None:
    text = f"import gymnasium; print(gymnasium.make('controller.backtest.env:{ID}', lead_s=1800).reset(seed=1)[1])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert "rule_nodes" in done.stdout
    assert not done.stderr


def test_the_registered_environment_passes_gymnasiums_checker() -> None:
    env = gymnasium.make(ID, trace="builtin:demo", lead_s=900, wait_weight=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    assert env.unwrapped.course.terms.wait_weight == 3.0


def test_gymnasium_makes_many_with_one_account() -> None:
    many = gymnasium.make_vec(ID, num_envs=3, lead_s=1800, episode="judged")
    assert isinstance(many, backtest_env.HeadroomVectorEnv)
    observations, info = many.reset(seed=0)
    assert observations.shape == (3, len(many.names))
    assert info["row"].tolist() == [many.course.judge_from] * 3


def test_the_rows_of_the_benchmark_are_the_benchmarks(rows: dict[str, Row]) -> None:
    total, _ = TASK.total()
    report = bench(load_trace("builtin:demo"), TASK.terms(total.step_s), "demand")
    assert {name: rows[name] for name in report.rows} == report.rows


def test_an_agent_that_names_the_rules_targets_pays_the_benchmarks_cost_of_the_rule(rows: dict[str, Row]) -> None:
    assert rows["copy"].cost == pytest.approx(rows["tuned_rule"].cost, abs=1e-9)
    assert rows["copy"].gap_closed == pytest.approx(0.0, abs=1e-12)
    assert list(rows)[-1] == "optimum"


def test_what_the_environment_pays_out_is_what_the_benchmark_counts(
    made: Course, ruled: np.ndarray, rows: dict[str, Row]
) -> None:
    env, paid = headroom(episode="judged", **asdict(TASK)), 0.0
    env.reset()
    for target in ruled + 5:
        paid -= env.step(np.int64(target))[1]
    assert paid == pytest.approx(rows["lavish"].cost, abs=1e-9)
    assert rows["lavish"].cost > rows["tuned_rule"].cost


def test_an_agent_is_shown_each_judged_row_once_and_in_order(made: Course) -> None:
    shown = []
    targets = walked(made, lambda row: shown.append(row) or 7)
    assert len(shown) == len(targets) == made.rows - made.judge_from
    assert np.array_equal(np.array(shown)[:, : len(made.columns)], made.table[made.judge_from : made.rows])
    assert set(targets) == {7.0}


def test_agents_with_a_taken_name_or_too_few_targets_are_refused(ruled: np.ndarray) -> None:
    for name in ("gated", "optimum"):
        with pytest.raises(InputError, match="no policy of the benchmark has"):
            judged({name: ruled}, TASK)
    with pytest.raises(InputError, match="548 targets, one a judged row"):
        judged({"short": ruled[1:]}, TASK)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lead_s": -1}, "lead_s"),
        ({"lead_s": 1.5}, "whole number"),
        ({"gpus_per_node": 0}, "1 or more"),
        ({"most_nodes": 0}, "most_nodes"),
        ({"wait_weight": -1.0}, "0 or more"),
        ({"wait_weight": float("nan")}, "wait_weight"),
        ({"wait_weight": "much"}, "wait_weight"),
        ({"trace": "builtin:none"}, "builtin:demo"),
        ({"teams": ("nobody",)}, "nobody"),
        ({"lead": 15}, "one of trace, lead_s"),
        ({"episode": "night"}, "one of day, train, judged"),
    ],
)
def test_what_does_not_go_is_said(given: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        gymnasium.make(ID, **given)


def test_no_fleet_is_not_many() -> None:
    with pytest.raises(InputError, match="num_envs"):
        headroom_vector(0)


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gymnasium_agent", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclass looks for its own annotations
    spec.loader.exec_module(module)
    return module


def test_the_examples_policy_with_all_weights_0_is_the_rule(
    example: ModuleType, made: Course, ruled: np.ndarray
) -> None:
    still = example.Linear(made, np.zeros((1, example.WEIGHTS)))
    assert np.array_equal(walked(made, lambda row: int(still.nodes(row[None])[0])), ruled)


def test_the_examples_agent_learns_what_pays_on_its_training_part(example: ModuleType, made: Course) -> None:
    many = backtest_env.HeadroomVectorEnv(example.POPULATION, made, episode="train")
    weights = np.stack([np.zeros(example.WEIGHTS), example.trained(many, seed=0, generations=12)])
    paid = example.costs(many, np.resize(weights, (example.POPULATION, example.WEIGHTS)))
    assert paid[1] < paid[0]


def an_example_run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE), *options], cwd=ROOT, env=os.environ, capture_output=True, text=True
    )


def test_the_example_runs_and_says_who_won(rows: dict[str, Row]) -> None:
    done = an_example_run("--lead", "30", "--seeds", "2", "--generations", "1")
    assert done.returncode == 0
    assert f"{'tuned_rule':18}{rows['tuned_rule'].cost:9.0f}" in done.stdout
    gaps = [float(text) for text in re.findall(r"^seed \d .*?([+-][0-9.]+)%", done.stdout, re.MULTILINE)]
    assert len(gaps) == 2
    assert f"\n{sum(gap > 0 for gap in gaps)} of 2 seeds beat the tuned rule" in done.stdout
    assert f"from {min(gaps):+.1f}% to {max(gaps):+.1f}%" in done.stdout


def test_the_example_says_in_one_line_what_is_wrong_with_its_input() -> None:
    done = an_example_run("--trace", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("--trace: nowhere")
    assert len(done.stderr.splitlines()) == 1


def expanded(name: str, counts: dict[str, list[str]]) -> list[str]:
    """``past_{1…12}`` and ``q{…}_of_{…}s`` as the names that they stand for."""
    found = re.search(r"\{(.*?)\}", name)
    if not found:
        return [name]
    return [full for value in counts[found[1]] for full in expanded(name.replace(found[0], value, 1), counts)]


def test_the_reference_names_every_column_episode_and_option(made: Course) -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    counts = {
        f"1…{HISTORY}": [str(back) for back in range(1, HISTORY + 1)],
        ", ".join(str(round(100 * level)) for level in LEVELS): [str(round(100 * level)) for level in LEVELS],
        ", ".join(str(length) for length in LENGTHS_S): [str(length) for length in LENGTHS_S],
        "0…L": [str(late) for late in range(made.terms.whole_steps + 1)],
    }
    table = text.split("## What is observed")[1].split("\n## ")[0]
    named = [full for name in re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE) for full in expanded(name, counts)]
    assert sorted(named) == sorted(made.names)
    episodes = text.split("## Episodes")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(.*?)` \|", episodes, re.MULTILINE) == list(EPISODES)
    options = text.split("## Making one")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(.*?)` \|", options, re.MULTILINE) == [*Task.__dataclass_fields__, "episode"]
