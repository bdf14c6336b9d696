"""The policies that are compared, each as node targets by step; all know only what was known at each step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.learning import forecast_only, optimum, rule, shadows
from controller.learning.fleet import Array, Terms, held, nodes_for, seen
from controller.learning.gate import Verdict
from controller.learning.limits import Limits
from forecaster.series import Panel

REACTIVE_IDLE_S = 600
"""Karpenter and Cluster Autoscaler give a node back after about ten idle minutes out of the box."""
NAMES = ("static_peak", "default_reactive", "tuned_rule", "forecast", "learner", "gated", "optimum")


@dataclass(frozen=True, slots=True)
class Plans:
    """Targets of each policy by step; until the judged part all are the rule's, so that all begin alike.

    ``verdicts``: the gate's, each night. ``optimum`` names the nodes that serve in each judged step (not targets): it
    asked a lead before.
    """

    targets: dict[str, Array]
    optimum: optimum.Optimum
    first_nodes: int
    nights: tuple[forecast_only.Choice, ...]
    verdicts: tuple[Verdict, ...]


def plan(
    total: Panel,
    terms: Terms,
    start: int,
    tell: Callable[[str], None] = lambda _: None,
    *,
    made: NDArray[np.int64] | None = None,
    truth: Array | None = None,
    stock_out: NDArray[np.bool_] | None = None,
    limits: Limits | None = None,
    costs_of: Callable[[str, Array], Array] | None = None,
) -> Plans:
    """Make the targets of all policies for a demand (a panel of one column), judged from step ``start`` on.

    ``made``: the forecasts of ``shadows.forecast``, where they exist already: they do not depend on the wait weight.
    ``truth`` (rows,): what there is, where the policies are told less. ``stock_out`` (rows,): True where no node
    arrives; policies know it once it is over, the optimum before. ``limits``: what the view makes of any target.
    ``costs_of``: GPU-hours by step of a policy and its targets (rows,), where the view counts otherwise than a flow.
    """
    demand = total.values[:, 0]
    tell("tuning the rule")
    ruled, _ = rule.tuned_nightly(demand, terms, start, total.rows_a_day, stock_out)
    tell("forecasting")
    forecast = forecast_only.chosen_nightly(total, terms, start)
    tell("replaying the candidates")
    past = shadows.past_of(total, terms, start, made, limits, stock_out)
    learned, floor = past.agreed.astype(np.float64), past.ruled.astype(np.float64)
    costs = (costs_of("learner", learned), costs_of("tuned_rule", floor)) if costs_of else None
    gated, verdicts = shadows.gated(past, total, start, costs)
    now = nodes_for(seen(demand), terms.gpus_per_node)
    peak = np.full(total.rows, float(nodes_for(np.array([np.nanmax(demand[:start])]), terms.gpus_per_node)[0]))
    targets = {
        "static_peak": _from(start, ruled, peak),
        "default_reactive": _from(start, ruled, held(now, REACTIVE_IDLE_S // terms.step_s)),
        "tuned_rule": ruled,
        "forecast": _from(start, ruled, forecast.targets),
        "learner": _from(start, ruled, learned),
        "gated": _from(start, ruled, gated.astype(np.float64)),
    }
    tell("solving for the optimum")
    first = int(ruled[start - 1])
    real = demand if truth is None else truth
    best = optimum.solve(real[start:], terms, first, stock_out=None if stock_out is None else stock_out[start:])
    return Plans(targets, best, first, forecast.nights, verdicts)


def _from(start: int, before: Array, after: Array) -> Array:
    return np.concatenate([before[:start], after[start:]])
