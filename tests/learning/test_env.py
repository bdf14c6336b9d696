"""The gymnasium environments: gymnasium's own checker, the benchmark's costs to the last digit, errors in words."""

from __future__ import annotations

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from controller.core.errors import InputError
from controller.learning.course import Course, course
from controller.learning.env import HeadroomEnv, HeadroomVectorEnv
from controller.learning.fleet import Terms, replay
from controller.learning.rule import tuned_nightly
from forecaster.series import Panel

DAY = 288
TERMS = Terms(8, 700, 9.0)  # nodes arrive in the middle of a step
JUDGED = 3 * DAY + 20
ROWS = 4 * DAY + 100
GAP = slice(JUDGED + 30, JUDGED + 40)


@pytest.fixture(scope="module")
def made() -> Course:
    rng = np.random.default_rng(11)
    values = 40 + 30 * np.sin(np.arange(ROWS) / DAY * 2 * np.pi) + rng.uniform(0, 20, ROWS)
    values[GAP] = np.nan
    return course(Panel(("",), 0, 300, "UTC", values[:, None]), TERMS, JUDGED)


def rule_of(info: dict) -> np.int64:
    return np.int64(info["rule_nodes"])


@pytest.mark.parametrize("episode", ["day", "train", "judged"])
def test_gymnasiums_own_checker_has_no_complaint(made: Course, episode: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(HeadroomEnv(made, episode=episode), skip_render_check=True)


def test_an_agent_that_names_the_rules_targets_pays_what_the_rule_pays(made: Course) -> None:
    env = HeadroomEnv(made, episode="judged")
    _, info = env.reset()
    paid, parts, over = 0.0, [], False
    while not over:
        _, reward, terminated, over, info = env.step(rule_of(info))
        paid -= reward
        parts.append([info[name] for name in ("provisioned_gpu_h", "idle_gpu_h", "wait_gpu_h", "nodes_added")])
        assert reward == -info["cost_gpu_h"]
        assert not terminated
    ruled, _ = tuned_nightly(made.demand, TERMS, JUDGED, DAY)
    account = replay(made.demand, ruled[:, None], TERMS, int(ruled[0]))
    assert paid == pytest.approx(account.cost[JUDGED:].sum(), abs=1e-9)
    theirs = np.column_stack([account.provisioned, account.idle, account.wait, account.adds])[JUDGED:]
    assert np.abs(np.array(parts) - theirs).max() < 1e-9


def test_a_step_costs_idle_weighted_waiting_and_what_a_node_added_costs(made: Course) -> None:
    env = HeadroomEnv(made, episode="judged")
    observation, info = env.reset()
    here = round(observation[made.names.index("ready") :].sum() * made.scale_gpus / 8)
    _, reward, _, _, info = env.step(np.int64(here + 2))
    spare = round(observation[made.names.index("ready")] * made.scale_gpus) - made.demand[JUDGED]
    assert not observation[made.names.index("coming_0") :].any(), "nothing arrives in this step"
    assert reward == pytest.approx(-(max(spare, 0) / 12 + 9 * max(-spare, 0) / 12 + 2 * (8 * 700 / 3600 + 2)))
    assert info["nodes_added"] == 2
    assert info["row"] == JUDGED + 1


def test_what_was_asked_for_is_seen_coming_and_then_serving(made: Course) -> None:
    env, most = HeadroomEnv(made, episode="judged"), made.most_nodes * 8 / made.scale_gpus
    ready, first, second, third = env.reset()[0][made.names.index("ready") :]
    asked = most - (ready + first + second + third)
    assert asked > 0
    seen = [env.step(np.int64(made.most_nodes))[0][made.names.index("ready") :] for _ in range(3)]
    # 700 s: two whole steps and a third of one. What is asked for in a step arrives in the second one after it.
    assert seen[0] == pytest.approx([ready + first, second, third + asked, 0.0], abs=1e-6)
    assert seen[1] == pytest.approx([ready + first + second, third + asked, 0.0, 0.0], abs=1e-6)
    assert seen[2] == pytest.approx([most, 0.0, 0.0, 0.0], abs=1e-6)


def test_episodes_are_a_day_the_training_part_and_the_judged_part(made: Course) -> None:
    env = HeadroomEnv(made)
    for episode, first, steps in (("judged", JUDGED, ROWS - JUDGED), ("train", DAY, JUDGED - DAY), ("day", None, DAY)):
        _, info = env.reset(seed=5, options={"episode": episode})
        begin = info["row"]
        assert begin == first or (first is None and DAY <= begin <= JUDGED - DAY)
        taken, over = 0, False
        while not over:
            _, _, _, over, info = env.step(rule_of(info))
            taken += 1
        assert taken == steps
        assert info["row"] == begin + steps
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(np.int64(1))


def test_a_gap_costs_nothing(made: Course) -> None:
    env = HeadroomEnv(made, episode="judged")
    env.reset()
    rewards = [env.step(np.int64(10))[1] for _ in range(GAP.stop - JUDGED + 5)]
    assert rewards[GAP.start - JUDGED : GAP.stop - JUDGED] == [0.0] * 10
    assert rewards[GAP.start - JUDGED - 1] < 0
    assert rewards[GAP.stop - JUDGED] < 0


def test_the_same_seed_is_the_same_day_and_another_is_another(made: Course) -> None:
    env = HeadroomEnv(made)
    begins = [env.reset(seed=seed)[1]["row"] for seed in (1, 2, 3, 1, 2, 3)]
    assert begins[:3] == begins[3:]
    assert len(set(begins)) == 3
    env.reset(seed=1)
    assert env.reset()[1]["row"] != begins[0], "without a seed the days go on being drawn"


def test_many_fleets_are_as_many_single_ones(made: Course) -> None:
    many, singles = HeadroomVectorEnv(5, made, episode="train"), [HeadroomEnv(made, episode="train") for _ in range(5)]
    seen, _ = many.reset(seed=0)
    assert np.array_equal(seen, [env.reset()[0] for env in singles])
    rng = np.random.default_rng(0)
    for _ in range(JUDGED - DAY):
        actions = rng.integers(0, made.most_nodes + 1, 5)
        seen, rewards, terminated, truncated, info = many.step(actions)
        alone = [env.step(action) for env, action in zip(singles, actions, strict=True)]
        assert np.array_equal(seen, [each[0] for each in alone])
        assert rewards.tolist() == [each[1] for each in alone]
        assert truncated.tolist() == [each[3] for each in alone]
        assert info["cost_gpu_h"].tolist() == [each[4]["cost_gpu_h"] for each in alone]
        assert not terminated.any()
    assert truncated.all()


def test_days_of_many_fleets_are_drawn_by_the_seed_and_begin_anew_after_the_last_step(made: Course) -> None:
    many = HeadroomVectorEnv(6, made)
    seen, info = many.reset(seed=4)
    again, same = many.reset(seed=4)
    assert np.array_equal(seen, again)
    assert len(set(info["row"])) > 1
    single = HeadroomEnv(made)
    assert HeadroomVectorEnv(1, made).reset(seed=4)[1]["row"][0] == single.reset(seed=4)[1]["row"]
    for _ in range(DAY):
        _, _, _, truncated, _ = many.step(same["rule_nodes"].astype(np.int64))
    assert truncated.all()
    seen, rewards, _, truncated, begun = many.step(np.full(6, 3))
    assert not truncated.any()
    assert not rewards.any()
    assert begun["row"].tolist() != info["row"].tolist()
    assert np.array_equal(seen, made.observation(begun["row"], made.fleets(begun["row"])))


@pytest.mark.parametrize("action", [-1, 10_000, 2.5, np.float64(2.0), "3", None])
def test_a_number_of_nodes_that_is_none_is_refused(made: Course, action: object) -> None:
    env = HeadroomEnv(made)
    env.reset(seed=0)
    with pytest.raises(InputError, match="whole number of nodes from 0 to"):
        env.step(action)  # type: ignore[arg-type]


@pytest.mark.parametrize("actions", [[1, 2], [1, 2, -1], [1, 2, 10_000], [1.5, 2.0, 3.0], [np.nan, 1.0, 1.0]])
def test_numbers_of_nodes_that_are_none_are_refused(made: Course, actions: list[float]) -> None:
    many = HeadroomVectorEnv(3, made)
    many.reset(seed=0)
    with pytest.raises(InputError, match="3 whole numbers of nodes, 0 to"):
        many.step(np.array(actions))  # type: ignore[arg-type]


def test_other_episodes_and_options_are_refused(made: Course) -> None:
    with pytest.raises(InputError, match="one of day, train, judged"):
        HeadroomEnv(made, episode="night")
    env = HeadroomEnv(made)
    with pytest.raises(InputError, match="one of day, train, judged"):
        env.reset(options={"episode": 3})
    with pytest.raises(InputError, match="only episode"):
        env.reset(options={"rows": 3})


def test_a_step_before_the_first_reset_is_refused(made: Course) -> None:
    with pytest.raises(gymnasium.error.ResetNeeded):
        HeadroomEnv(made).step(np.int64(1))
    with pytest.raises(gymnasium.error.ResetNeeded):
        HeadroomVectorEnv(2, made).step(np.array([1, 1]))


WITHOUT = """
import sys
sys.modules["gymnasium"] = None
import controller.cli.app, controller.backtest.run, controller.learning.course
from controller.core.errors import InputError
for module in ("controller.learning.env", "controller.backtest.env"):
    try:
        __import__(module)
    except InputError as error:
        print(error)
"""


def test_without_the_extra_all_else_works_and_the_error_names_it() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert done.stdout.count("pip install 'tidegate[gym]'") == 2
