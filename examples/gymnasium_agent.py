"""An agent from outside against the tuned rule: evolution of a linear policy, numpy only.

It sees what production would see, is trained on the training part of a trace and judged once on the rest, in the
account of ``tidegate bench --view demand``. What came of it, wins and losses, is in docs/reference/gymnasium.md.

    pip install 'tidegate[gym]'
    python examples/gymnasium_agent.py --lead 15 --seeds 10

The policy asks for the rule's GPUs plus a weighted sum of how demand moved and of how far forecasts lie above it, and
keeps more than that while it is not too much more. All weights 0 is the tuned rule itself. The weights are found by the
cross-entropy method (Rubinstein, 1999): draw a population around a mean, let each walk through the training part, move
mean and spread to those that paid least.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np

from controller.backtest.env import Task, judged, walked
from controller.backtest.score import Row
from controller.core.errors import InputError
from controller.learning.course import Course
from controller.learning.env import HeadroomVectorEnv

POPULATION, ELITE = 64, 12
SPREAD, LEAST_SPREAD = 0.1, 0.002
FORECASTS = ("q50_of_900s", "q90_of_900s", "q50_of_3600s", "q90_of_3600s")
LOOKED_AT = ("rule", "demand", "past_6", *FORECASTS)
WEIGHTS = 2 + len(FORECASTS) + 1


@dataclass(frozen=True)
class Linear:
    """Policies that are linear in a few columns of the observation. ``weights``: (policies, ``WEIGHTS``)."""

    course: Course
    weights: np.ndarray

    def nodes(self, observations: np.ndarray) -> np.ndarray:
        """Nodes to have, one number a policy. ``observations``: (policies, columns)."""
        names, nodes_a_unit = self.course.names, self.course.scale_gpus / self.course.terms.gpus_per_node
        rule, demand, before, *ahead = observations[:, [names.index(name) for name in LOOKED_AT]].T
        rises = np.stack([demand, demand - before, *(quantile - demand for quantile in ahead)], axis=1)
        least = np.maximum(rule + (self.weights[:, :-1] * rises).sum(axis=1), 0.0)
        most = least + np.maximum(self.weights[:, -1], 0.0) * demand
        low, high = (np.ceil(units * nodes_a_unit - 1e-3) for units in (least, most))
        here = np.round(observations[:, names.index("ready") :].sum(axis=1) * nodes_a_unit)
        return np.clip(np.clip(here, low, high), 0, self.course.most_nodes).astype(np.int64)


def costs(env: HeadroomVectorEnv, weights: np.ndarray) -> np.ndarray:
    """What policies pay from one end of the training part to the other, GPU-hours. ``weights``: (fleets, WEIGHTS)."""
    policies, paid, over = Linear(env.course, weights), np.zeros(env.num_envs), False
    observations, _ = env.reset(options={"episode": "train"})
    while not over:
        observations, rewards, _, truncated, _ = env.step(policies.nodes(observations))
        paid -= rewards
        over = bool(truncated[0])
    return paid


def trained(env: HeadroomVectorEnv, seed: int, generations: int) -> np.ndarray:
    """The weights, (WEIGHTS,), that the last generation's best have on average."""
    random = np.random.default_rng(seed)
    mean, spread = np.zeros(WEIGHTS), np.full(WEIGHTS, SPREAD)
    for generation in range(1, generations + 1):
        if sys.stderr.isatty():
            print(f"\rseed {seed}: generation {generation} of {generations} ", end="", file=sys.stderr)
        drawn = mean + spread * random.standard_normal((env.num_envs, WEIGHTS))
        best = drawn[np.argsort(costs(env, drawn), kind="stable")[:ELITE]]
        mean, spread = best.mean(axis=0), np.maximum(best.std(axis=0), LEAST_SPREAD)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return mean


def options() -> argparse.Namespace:
    """The command line."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--trace", default="builtin:demo", help="a trace folder (default: %(default)s)")
    asked.add_argument("--team", action="append", default=[], help="only teams that match; may be repeated")
    asked.add_argument("--lead", type=int, default=15, help="minutes (default: %(default)s)")
    asked.add_argument("--wait-weight", type=float, default=9.0, help="(default: %(default)s)")
    asked.add_argument("--seeds", type=int, default=10, help="how many agents (default: %(default)s)")
    asked.add_argument("--generations", type=int, default=60, help="of each (default: %(default)s)")
    return asked.parse_args()


def run(task: Task, seeds: int, generations: int) -> None:
    """Train an agent with each seed, then judge all of them once, and print what each paid."""
    env, agents, began = HeadroomVectorEnv(POPULATION, task.course(), episode="train"), {}, time.monotonic()
    print(f"training part: the rule pays {costs(env, np.zeros((POPULATION, WEIGHTS)))[0]:.0f} GPU-hours")
    for seed in range(seeds):
        weights = trained(env, seed, generations)
        print(f"training part: seed {seed} pays {costs(env, np.tile(weights, (POPULATION, 1)))[0]:.0f}", flush=True)
        policy = Linear(env.course, weights[None])
        agents[f"seed {seed}"] = walked(env.course, lambda row, policy=policy: int(policy.nodes(row[None])[0]))
    print(f"trained in {time.monotonic() - began:.0f} s\n")
    rows = judged(agents, task)
    print(f"{'judged part':18}{'cost':>9}{'idle':>9}{'wait':>9}  gap closed")
    for name, row in rows.items():
        print(f"{name:18}{row.cost:9.0f}{row.idle_gpu_h:9.0f}{row.wait_gpu_h:9.0f}  {closed(row)}")
    gaps = [rows[name].gap_closed or 0.0 for name in agents]
    print(f"\n{sum(gap > 0 for gap in gaps)} of {seeds} seeds beat the tuned rule: ", end="")
    print(f"median {np.median(gaps):+.1%}, from {min(gaps):+.1%} to {max(gaps):+.1%}")


def closed(row: Row) -> str:
    """The part of the gap between rule and optimum that was closed, with its interval over days."""
    gap = "–" if row.gap_closed is None else f"{row.gap_closed:+.1%}"
    return gap + (f" [{row.gap_ci[0]:+.1%}, {row.gap_ci[1]:+.1%}]" if row.gap_ci else "")


def main() -> int:
    """Run what the command line says."""
    given = options()
    try:
        task = Task(given.trace, given.lead * 60, given.wait_weight, teams=tuple(given.team))
        run(task, max(given.seeds, 1), max(given.generations, 1))
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
