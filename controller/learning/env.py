"""The account of a fleet as a gymnasium environment, so that agents from outside can be compared with the tuned rule.

One pool, one decision a step, exactly the costs of ``controller.learning.fleet``: an agent that names the rule's
targets pays, to the last digit, what the benchmark says that the rule pays. gymnasium is an optional extra; only this
module and ``controller.backtest.env`` need it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.core.errors import InputError
from controller.learning.course import Course, Row
from controller.learning.fleet import Array

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ModuleNotFoundError as error:
    raise InputError.one("gymnasium", "not installed", "install it with: pip install 'tidegate[gym]'") from error

EPISODES = ("day", "train", "judged")
Ints = NDArray[np.int64]


def chosen_episode(value: object) -> str:
    """Check the name of a kind of episode."""
    if value not in EPISODES:
        raise InputError.one("episode", value, f"one of {', '.join(EPISODES)}")
    return str(value)


def register(name: str, one: str, many: str) -> None:
    """Make an environment known to gymnasium. ``one``, ``many``: ``module:function`` that make one and many."""
    if name not in gymnasium.registry:
        gymnasium.register(name, one, vector_entry_point=many)


class _Walk:
    """One or several fleets on their way through a course, each over the same number of rows."""

    def __init__(self, course: Course, episode: str) -> None:
        self.course, self.episode = course, chosen_episode(episode)
        self.rows: Ints = np.zeros(0, dtype=np.int64)
        self.left = 0
        low, high = course.bounds()
        self.observations = spaces.Box(low, high, dtype=np.float32)
        self.actions = spaces.Discrete(course.most_nodes + 1)

    def begin(self, fleets: int, random: np.random.Generator, options: dict[str, Any] | None) -> None:
        """Place fleets at the beginning of an episode."""
        unknown = sorted(set(options or {}) - {"episode"})
        if unknown:
            raise InputError.one("options", ", ".join(unknown), "only episode")
        here, kind = self.course, chosen_episode((options or {}).get("episode", self.episode))
        if kind == "judged":
            first, self.left = np.full(fleets, here.judge_from), here.rows - here.judge_from
        elif kind == "train":
            first, self.left = np.full(fleets, here.first), here.judge_from - here.first
        else:
            self.left = min(here.rows_a_day, here.judge_from - here.first)
            first = random.integers(here.first, here.judge_from - self.left, size=fleets, endpoint=True)
        self.rows = first.astype(np.int64)
        self.fleets = here.fleets(self.rows)

    def step(self, targets: Array) -> tuple[Array, dict[str, Array]]:
        """Go one step; the cost of it, and its parts."""
        if self.left <= 0:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset()")
        terms = self.course.terms
        provisioned, idle, wait, adds = self.fleets.step(targets, self.course.demand[self.rows])
        self.rows = self.rows + 1
        self.left -= 1
        cost = idle + terms.wait_weight * wait + terms.per_add * adds
        parts = {
            "provisioned_gpu_h": provisioned,
            "idle_gpu_h": idle,
            "wait_gpu_h": wait,
            "nodes_added": adds,
            "cost_gpu_h": cost,
        }
        return cost, parts

    def observe(self) -> Row:
        return self.course.observation(self.rows, self.fleets)

    def where(self) -> dict[str, Array | Ints]:
        """What the next decision is about: its row, and the nodes that the tuned rule would have."""
        return {"row": self.rows.copy(), "rule_nodes": self.course.ruled[np.minimum(self.rows, self.course.rows - 1)]}


class HeadroomEnv(gymnasium.Env[Row, np.int64]):
    """One fleet against a recorded demand that it does not change.

    Action: nodes to have, ``0 … most_nodes``. Observation: a vector, its columns named by ``names``. Reward: minus the
    cost of the step in GPU-hours, 0 in a gap. An episode is a day of the training part drawn by the seed ("day"), all
    of the training part ("train") or all of the judged part ("judged"), and ends by truncation: the task goes on.
    ``reset(options={"episode": ...})`` chooses for once. Raises ``InputError`` on another name or option.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - gymnasium's way

    def __init__(self, course: Course, *, episode: str = "day") -> None:
        self.course = course
        self.names = course.names
        self._walk = _Walk(course, episode)
        self.observation_space = self._walk.observations
        self.action_space = self._walk.actions

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Row, dict[str, Any]]:
        """Begin an episode; the fleet stands where the rule would have left it."""
        super().reset(seed=seed)
        self._walk.begin(1, self.np_random, options)
        return self._walk.observe()[0], self._info({})

    def step(self, action: np.int64) -> tuple[Row, float, bool, bool, dict[str, Any]]:
        """Have ``action`` nodes. Raises ``InputError`` on one that is not in the action space."""
        if not self.action_space.contains(action):
            raise InputError.one("action", action, f"a whole number of nodes from 0 to {self.course.most_nodes}")
        cost, parts = self._walk.step(np.array([float(action)]))
        return self._walk.observe()[0], -float(cost[0]), False, self._walk.left == 0, self._info(parts)

    def _info(self, parts: dict[str, Array]) -> dict[str, Any]:
        where = {name: int(values[0]) for name, values in self._walk.where().items()}
        return where | {name: float(values[0]) for name, values in parts.items()}


class HeadroomVectorEnv(VectorEnv[Row, Ints, NDArray[Any]]):
    """Many fleets at once, as ``HeadroomEnv`` one by one: the account is vectorised, so a hundred cost what ten do.

    All episodes have one length, so all end together; the step after that begins new ones (next-step autoreset).
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, num_envs: int, course: Course, *, episode: str = "day") -> None:
        self.num_envs, self.course, self.names = num_envs, course, course.names
        self._walk = _Walk(course, episode)
        self.single_observation_space, self.single_action_space = self._walk.observations, self._walk.actions
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Row, dict[str, Any]]:
        """Begin an episode with each fleet; days are drawn one by one from the seed."""
        super().reset(seed=seed)
        self._walk.begin(self.num_envs, self.np_random, options)
        return self._walk.observe(), dict(self._walk.where())

    def step(self, actions: Ints) -> tuple[Row, Array, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Have ``actions`` nodes, one number a fleet. Raises ``InputError`` on what is not in the action space."""
        never = np.zeros(self.num_envs, dtype=np.bool_)
        if not self._walk.left and len(self._walk.rows):
            self._walk.begin(self.num_envs, self.np_random, None)
            return self._walk.observe(), np.zeros(self.num_envs), never, never.copy(), dict(self._walk.where())
        wanted = np.asarray(actions)
        if not np.issubdtype(wanted.dtype, np.integer) or not self.action_space.contains(wanted.astype(np.int64)):
            allowed = f"{self.num_envs} whole numbers of nodes, 0 to {self.course.most_nodes}"
            raise InputError.one("actions", actions, allowed)
        cost, parts = self._walk.step(wanted.astype(np.float64))
        over = np.full(self.num_envs, self._walk.left == 0)
        return self._walk.observe(), -cost, never, over, dict(self._walk.where()) | parts
