"""Outside agents beside the benchmark: an environment from a trace, and the judged part in the benchmark's own account.

``gymnasium.make("controller.backtest.env:tidegate/Headroom-v0", trace="builtin:demo", lead_s=900)`` imports this module
and makes the environment; whoever has imported it writes ``tidegate/Headroom-v0``. Everything else works without
gymnasium.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from controller.backtest import scenarios
from controller.backtest.score import Row, score
from controller.backtest.traces import TRAIN, load_trace
from controller.core.errors import InputError
from controller.learning import course as courses
from controller.learning.course import Course
from controller.learning.env import HeadroomEnv, HeadroomVectorEnv, register
from controller.learning.fleet import Array, Terms
from forecaster.series import Panel

ID = "tidegate/Headroom-v0"
Act = Callable[[courses.Row], int]
"""An agent: from an observation to a number of nodes."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is run against what; the options of ``tidegate bench --view demand``, and their defaults.

    ``most_nodes`` None: what twice the training part's peak takes. ``step_s`` is the trace's.
    """

    trace: str = "builtin:demo"
    lead_s: int = 900
    wait_weight: float = 9.0
    gpus_per_node: int = 8
    teams: Sequence[str] = ()
    scale: float | None = None
    train: float = TRAIN
    most_nodes: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("lead_s", 0), ("gpus_per_node", 1), ("most_nodes", 1)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < least):
                raise InputError.one(name, value, f"a whole number, {least} or more")
        if not isinstance(self.wait_weight, int | float) or not 0 <= self.wait_weight < math.inf:
            raise InputError.one("wait_weight", self.wait_weight, "a number, 0 or more")

    def total(self) -> tuple[Panel, int]:
        """The demand, a panel of one column, and the first judged row. Raises ``InputError`` on what is no trace."""
        trace = load_trace(self.trace, teams=self.teams, train=self.train, scale=self.scale)
        return trace.total, trace.judge_from

    def terms(self, step_s: int) -> Terms:
        """The constants of the account."""
        return Terms(self.gpus_per_node, self.lead_s, self.wait_weight, step_s)

    def course(self) -> Course:
        """All that decisions on this trace may know; takes tenths of a second a week."""
        total, judge_from = self.total()
        return courses.course(total, self.terms(total.step_s), judge_from, self.most_nodes)


def headroom(*, episode: str = "day", **task: Any) -> HeadroomEnv:
    """One fleet. ``task``: fields of ``Task``. Raises ``InputError`` on what does not go."""
    return HeadroomEnv(_task(task).course(), episode=episode)


def headroom_vector(num_envs: int, *, episode: str = "day", **task: Any) -> HeadroomVectorEnv:
    """Many fleets, one account; ``gymnasium.make_vec`` comes here by itself."""
    if num_envs < 1:
        raise InputError.one("num_envs", num_envs, "1 or more")
    return HeadroomVectorEnv(num_envs, _task(task).course(), episode=episode)


def _task(given: dict[str, Any]) -> Task:
    known = Task.__dataclass_fields__
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InputError.one(unknown[0], given[unknown[0]], f"one of {', '.join(known)}, episode")
    return Task(**given)


def walked(course: Course, act: Act) -> Array:
    """An agent's targets in the judged part, (judged rows,) nodes. It sees each row once and learns nothing here."""
    env = HeadroomEnv(course, episode="judged")
    observation, _ = env.reset()
    targets, over = [], False
    while not over:
        action = np.int64(act(observation))
        observation, _, _, over, _ = env.step(action)
        targets.append(float(action))
    return np.array(targets)


def judged(agents: dict[str, Array], task: Task, tell: Callable[[str], None] = lambda _: None) -> dict[str, Row]:
    """The rows of ``tidegate bench --view demand`` on this task, and those of agents by the same account.

    ``agents``: each one's targets, (judged rows,) nodes; until the judged part they are the rule's, like everybody's.
    Raises ``InputError`` on a name that a policy of the benchmark has, or on another number of targets.
    """
    total, judge_from = task.total()
    stage, terms = scenarios.staged(total, judge_from), task.terms(total.step_s)
    plans = scenarios.planned(stage, terms, tell)
    ruled, theirs = plans.targets["tuned_rule"], {}
    for name, targets in agents.items():
        if name in plans.targets or name == "optimum":
            raise InputError.one("agents", name, "a name that no policy of the benchmark has")
        if targets.shape != (total.rows - judge_from,):
            raise InputError.one(name, targets.shape, f"{total.rows - judge_from} targets, one a judged row")
        theirs[name] = np.concatenate([ruled[:judge_from], targets])
    everyone = replace(plans, targets=plans.targets | theirs)
    return score(scenarios.flow(stage, everyone, terms), terms)


register(ID, f"{__name__}:headroom", f"{__name__}:headroom_vector")
