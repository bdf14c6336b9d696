"""What waiting is worth: idle against waiting as w rises, in GPU-hours and money, and the w that today implies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from controller.core.errors import InputError
from dashboard.notebook.durations import minutes_text
from dashboard.notebook.history import History
from dashboard.notebook.said import Note, percent
from dashboard.notebook.tuning import LABELS, terms_of

WEIGHTS = (1, 2, 3, 5, 9, 15, 30, 50)
CURVES = ("tuned_rule", "forecast", "optimum")
LEAST_SPARE = 1e-9


def quantile(wait_weight: float) -> float:
    """The quantile of demand that a wait weight stands for: w/(1+w), the newsvendor's critical ratio."""
    return wait_weight / (1 + wait_weight)


def implied_weight(served: float) -> float:
    """The wait weight that a share of time without waiting stands for: the inverse of ``quantile``."""
    return served / (1 - served) if served < 1 else float("inf")


@dataclass(frozen=True, slots=True)
class Sweep:
    """One row a policy and w: GPU-hours idle, waiting and starting on the judged days, nodes added, and cost."""

    history: History
    lead_s: int
    gpus_per_node: int
    table: pd.DataFrame

    @property
    def weights(self) -> tuple[float, ...]:
        """The weights that were tried."""
        return tuple(dict.fromkeys(self.table["w"]))

    @property
    def judged_days(self) -> float:
        """Days that the sums are of."""
        return (self.history.panel.rows - self.history.judge_from) / self.history.panel.rows_a_day

    def of(self, policy: str) -> pd.DataFrame:
        """One policy's rows, by w; ``InputError`` names the policies there are."""
        there = list(dict.fromkeys(self.table["policy"]))
        if policy not in there:
            raise InputError.one("policy", policy, f"one of {', '.join(there)}")
        return self.table[self.table["policy"] == policy].set_index("w")

    def choices(self, policy: str = LABELS["forecast"], price: float = 0) -> pd.DataFrame:
        """By w, a day: GPU-hours idle and waiting, and what one GPU-hour less of waiting costs in idle ones.

        With a ``price`` of a GPU-hour also the money that idle and starting GPUs cost a day.
        """
        rows = self.of(policy)
        days = self.judged_days
        frame = pd.DataFrame({"quantile": [quantile(w) for w in rows.index]}, index=rows.index)
        frame["idle GPU-h a day"] = rows["idle"] / days
        frame["waiting GPU-h a day"] = rows["waiting"] / days
        spent, spared = (rows["idle"] + rows["starting"]).diff(), -rows["waiting"].diff()
        frame["GPU-h spent per GPU-h less waiting"] = np.where(spared > LEAST_SPARE, spent / spared, np.nan)
        if price:
            frame["money a day"] = (rows["idle"] + rows["starting"]) / days * price
        return frame.round(2)

    def verdict(self, policy: str = LABELS["forecast"]) -> Note:
        """What going from the lowest to the highest w buys and costs, in a sentence."""
        rows, days = self.of(policy), self.judged_days
        low, high = rows.iloc[0], rows.iloc[-1]
        return Note(
            f"From w = {rows.index[0]:g} to w = {rows.index[-1]:g} the policy '{policy}' buys"
            f" **{(low['waiting'] - high['waiting']) / days:,.0f} GPU-hours less waiting a day** for"
            f" **{(high['idle'] - low['idle']) / days:,.0f} more idle**. The steep part of the curve is cheap to climb;"
            " where it runs flat, more idle GPUs buy next to nothing."
        )


def sweep(history: History, *, lead: str = "15m", gpus_per_node: int = 8, weights: Sequence[float] = WEIGHTS) -> Sweep:
    """Run the benchmark once for each w: rule and forecast tuned for that w, and the optimum under it."""
    from controller.backtest.run import bench

    history.long_enough("weighing idle against waiting")
    if not weights:
        raise InputError.one("WEIGHTS", "none", "at least one wait weight")
    rows = []
    for w in sorted(set(weights)):
        terms = terms_of(history, lead, w, gpus_per_node)
        report = bench(history.trace(), terms, "demand")
        for name, row in report.rows.items():
            starting = row.boot_gpu_h + row.churn_gpu_h
            costs = (row.idle_gpu_h, row.wait_gpu_h, starting, row.node_adds, row.cost)
            rows.append((LABELS.get(name, name), float(w), *costs))
    table = pd.DataFrame(rows, columns=["policy", "w", "idle", "waiting", "starting", "nodes added", "cost"])
    return Sweep(history, terms.lead_s, gpus_per_node, table)


@dataclass(frozen=True, slots=True)
class Now:
    """What is done today, and the w that it stands for. ``idle`` and ``waiting`` are GPU-hours a day."""

    what: str
    served: float
    idle: float
    waiting: float

    @property
    def weight(self) -> float:
        """The implied w."""
        return implied_weight(self.served)

    def _repr_markdown_(self) -> str:
        w = "beyond any number (nothing ever waited)" if np.isinf(self.weight) else f"about **w = {self.weight:.1f}**"
        idle = f"{self.idle:,.0f} GPU-hours a day stand idle and " if np.isfinite(self.idle) else ""
        return (
            f"{self.what}: nothing waited {percent(self.served)} of the time, {idle}{self.waiting:,.0f} GPU-hours a day"
            f" wait. That is how somebody behaves to whom one waiting GPU-hour is worth {w} idle ones."
        )


def paying_now(sweep: Sweep) -> Now:
    """The w that today's behaviour implies: from the share of time in which nothing waited, q, it is q/(1−q).

    Today is what the store recorded, or a trace that tells what ran. Where only demand is known it is what autoscalers
    do out of the box, replayed on the judged days.
    """
    supply = sweep.history.supply
    if supply is not None and not supply.empty:
        step = float(np.median(np.diff(supply.index)))
        days = len(supply) * step / 86_400
        idle = (supply["ready"] - supply["held"]).clip(lower=0).sum(min_count=1) * step / 3600 / days
        waiting = float(supply["waiting"].sum()) * step / 3600 / days
        served = float((supply["waiting"] < LEAST_SPARE).mean())
        return Now("As recorded", served, float(idle), waiting)
    rows = sweep.of(LABELS["default_reactive"]).iloc[0]
    served = _served(sweep)
    days = sweep.judged_days
    return Now("Autoscalers as they come, replayed", served, rows["idle"] / days, rows["waiting"] / days)


def _served(sweep: Sweep) -> float:
    """The share of judged steps in which the reactive policy keeps nobody waiting."""
    from controller.backtest.baselines import plan
    from controller.learning.fleet import replay

    terms = terms_of(sweep.history, f"{sweep.lead_s}s", 1, sweep.gpus_per_node)
    trace = sweep.history.trace()
    demand, start = trace.panel.values[:, 0], trace.judge_from
    targets = plan(trace.panel, terms, start).targets["default_reactive"][:, None]
    account = replay(demand, targets, terms, int(targets[0, 0]))
    known = np.isfinite(demand[start:])
    return float((account.wait[start:, 0][known] < LEAST_SPARE).mean())


def described(sweep: Sweep) -> str:
    """The constants in words, for the line under a title."""
    return f"lead {minutes_text(sweep.lead_s)}, nodes of {sweep.gpus_per_node} GPUs, judged days only"
