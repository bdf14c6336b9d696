"""``tidegate bench``: one trace, one lead, one wait weight, all policies in the same run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from controller.backtest import baselines, jobs
from controller.backtest.baselines import NAMES, Plans
from controller.backtest.score import Days, Row, daily, score
from controller.backtest.traces import Trace
from controller.core.errors import InputError
from controller.learning.fleet import Array, Terms, replay

VIEWS = ("jobs", "demand")


@dataclass(frozen=True, slots=True)
class Report:
    """One run of the benchmark."""

    trace: str
    view: str
    terms: Terms
    rows: dict[str, Row]
    plans: Plans

    def plain(self) -> dict[str, Any]:
        """The document of ``--json``."""
        return {
            "trace": self.trace,
            "view": self.view,
            "lead_s": self.terms.lead_s,
            "wait_weight": self.terms.wait_weight,
            "policies": {name: row.plain() for name, row in self.rows.items()},
        }


def bench(trace: Trace, terms: Terms, view: str | None = None, tell: Callable[[str], None] = lambda _: None) -> Report:
    """Run the benchmark. ``view`` None: jobs where the trace has them. ``tell`` hears of progress."""
    chosen = view or ("jobs" if trace.has_jobs else "demand")
    if chosen not in VIEWS:
        raise InputError.one("--view", chosen, "one of jobs, demand")
    if chosen == "jobs" and not trace.has_jobs:
        raise InputError.one(
            "--view", chosen, f"a trace with jobs.parquet; {trace.name} has demand only: --view demand"
        )
    if chosen == "jobs":
        tell("packing every job at once")
        plans = baselines.plan(jobs.nodes_taken(trace, terms.gpus_per_node), terms, trace.judge_from, tell)
        days = jobs.replay_jobs(trace, terms, plans, NAMES, tell)
    else:
        total = trace.total
        plans = baselines.plan(total, terms, trace.judge_from, tell)
        days = _fluid(total.values[:, 0], plans, terms, trace.judge_from, total.rows_a_day)
    return Report(trace.name, chosen, terms, score(days, terms), plans)


def _fluid(demand: Array, plans: Plans, terms: Terms, start: int, day: int) -> dict[str, Days]:
    """Replay targets against demand as a flow: nothing waits longer for having waited."""
    names = [name for name in NAMES if name != "optimum"]
    targets = np.stack([plans.targets[name] for name in names], axis=1)
    account = replay(demand, targets, terms, int(targets[0, 0]))
    days = {
        name: daily(
            account.provisioned[start:, i],
            account.idle[start:, i],
            account.wait[start:, i],
            account.adds[start:, i],
            day,
        )
        for i, name in enumerate(names)
    }
    return days | {"optimum": _optimum(demand[start:], plans, terms, day)}


def _optimum(demand: Array, plans: Plans, terms: Terms, day: int) -> Days:
    """The optimum's own account: its plan names nodes that serve, so nothing arrives late."""
    nodes = plans.optimum.plan.astype(np.float64)
    known = ~np.isnan(demand)
    supply, hours = nodes * terms.gpus_per_node, terms.step_s / 3600
    adds = np.maximum(np.diff(nodes, prepend=float(plans.first_nodes)), 0.0)
    spare = np.where(known, supply - np.nan_to_num(demand), 0.0)
    provisioned = np.where(known, supply, 0.0) * hours
    return daily(provisioned, np.maximum(spare, 0) * hours, np.maximum(-spare, 0) * hours, adds, day)
