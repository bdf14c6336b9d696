"""``tidegate bench``: one trace, one lead, one wait weight, all policies in the same run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.backtest import baselines, jobs, scenarios
from controller.backtest.baselines import NAMES, Plans
from controller.backtest.score import Row, score
from controller.backtest.traces import Trace
from controller.core.errors import InputError
from controller.learning.fleet import Terms
from forecaster.series import Panel

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


def bench(
    trace: Trace,
    terms: Terms,
    view: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
    made: NDArray[np.int64] | None = None,
    taken: Panel | None = None,
) -> Report:
    """Run the benchmark. ``view`` None: jobs where the trace has them. ``tell`` hears of progress.

    ``made``: the forecasts of ``shadows.forecast`` for this demand and lead, ``taken``: that of
    ``jobs.nodes_taken``, where they exist already.
    """
    chosen = view or ("jobs" if trace.has_jobs else "demand")
    if chosen not in VIEWS:
        raise InputError.one("--view", chosen, "one of jobs, demand")
    if chosen == "jobs" and not trace.has_jobs:
        raise InputError.one(
            "--view", chosen, f"a trace with jobs.parquet; {trace.name} has demand only: --view demand"
        )
    if chosen == "jobs":
        tell("packing every job at once")
        plans = baselines.plan(
            jobs.nodes_taken(trace, terms.gpus_per_node) if taken is None else taken,
            terms,
            trace.judge_from,
            tell,
            made=made,
            limits=jobs.LIMITS,
            costs_of=lambda name, targets: jobs.costs_by_step(trace, terms, targets, name),
        )
        days = jobs.replay_jobs(trace, terms, plans, NAMES, tell)
    else:
        stage = scenarios.staged(trace.total, trace.judge_from)
        plans = scenarios.planned(stage, terms, tell, made)
        days = scenarios.flow(stage, plans, terms)
    return Report(trace.name, chosen, terms, score(days, terms), plans)
