"""Which quantile, window and hold would have served best: all replayed, judged on days they were not chosen on.

A setting chosen on the very days it is judged on looks better than it is. So each is costed twice: on the days before
``judge_from``, by which it is chosen, and on those after, which say what the choice was worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from controller.core.errors import InputError
from controller.learning.fleet import Account, Array, Terms, held, nodes_for, replay
from dashboard.notebook.durations import minutes_text, seconds_of
from dashboard.notebook.history import History
from dashboard.notebook.policies import Draft
from dashboard.notebook.said import Note
from forecaster.windows import Window

if TYPE_CHECKING:
    from controller.backtest.run import Report

QUANTILES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
WINDOWS = ("5m", "15m", "30m", "60m")
HOLDS = ("0s", "5m", "10m", "15m", "30m", "60m")
AS_GOOD = 0.1
"""Costs closer than this to the best are not told apart by a few weeks of data (docs/BENCHMARKS.md, intervals)."""
KEYS = ["quantile", "window", "hold"]
COSTS = ["idle GPU-h", "waiting GPU-h", "starting GPU-h", "cost", "cost while learning"]


@dataclass(frozen=True, slots=True)
class Trial:
    """All combinations with their costs. ``table`` has one row each; costs are of the judged days, in GPU-hours.

    cost = idle + starting + w · waiting; ``starting`` counts each node's boot and 2 GPU-hours of churn.
    """

    history: History
    terms: Terms
    table: pd.DataFrame
    headroom: dict[tuple[float, str, str], float]
    report: Report

    def best(self, count: int = 8) -> pd.DataFrame:
        """The combinations that cost least on the days before judging, the cheapest first."""
        return self.table.sort_values("cost while learning").head(count).set_index(KEYS)

    @property
    def chosen(self) -> tuple[float, str, str]:
        """Quantile, window and hold of the cheapest."""
        quantile, window, hold = self.best(1).index[0]
        return float(quantile), str(window), str(hold)

    def cost(self, quantile: float, window: str, hold: str) -> pd.Series[float]:
        """The row of one combination; ``InputError`` names what was tried."""
        table = self.table.set_index(KEYS)
        if (quantile, window, hold) not in table.index:
            levels = ", ".join(f"{level:g}" for level in sorted(set(self.table["quantile"])))
            tried = f"quantile of {levels}, window of {', '.join(WINDOWS)}, hold of {', '.join(HOLDS)}"
            raise InputError.one("setting", f"{quantile}, {window}, {hold}", tried)
        return table.loc[[(quantile, window, hold)]].iloc[0]

    def against(self, quantile: float, window: str, hold: str) -> pd.DataFrame:
        """One combination beside what else could be done, on the judged days."""
        ours = self.cost(quantile, window, hold)
        rows = {f"quantile {quantile:g}, window {window}, hold {hold}": ours[COSTS[:4]].tolist()}
        for name, row in self.report.rows.items():
            starting = row.boot_gpu_h + row.churn_gpu_h
            rows[LABELS.get(name, name)] = [row.idle_gpu_h, row.wait_gpu_h, starting, row.cost]
        frame = pd.DataFrame(rows, index=COSTS[:4]).T
        rule = self.report.rows["tuned_rule"].cost
        frame["cost against the tuned rule"] = frame["cost"] / rule - 1 if rule else np.nan
        return frame.sort_values("cost")

    def changes(self, draft: Draft, pool: str = "") -> dict[str, Any]:
        """What these costs suggest for a policy: fields and values for ``Draft.change``.

        ``learning.quantile``: the quantiles that cost about as little as the best (within 10 %) on the days before
        judging; ``learning.maxHeadroom``: the most that the chosen one warmed beyond demand, but for 1 % of the time;
        ``waitWeight``: the w that all this was computed with.
        """
        names = [one.name for one in draft.policy.pools]
        name = pool or names[0]
        if name not in names:
            raise InputError.one("POOL", pool, f"one of {', '.join(names)}")
        limit = self.table["cost while learning"].min() * (1 + AS_GOOD)
        good = self.table.loc[self.table["cost while learning"] <= limit, "quantile"]
        changes: dict[str, Any] = {
            "spec.learning.quantile": [float(good.min()), float(good.max())],
            "spec.learning.maxHeadroom": int(np.ceil(self.headroom[self.chosen])),
        }
        if float(self.terms.wait_weight).is_integer() and self.terms.wait_weight >= 1:
            changes[f"spec.pools[{name}].waitWeight"] = int(self.terms.wait_weight)
        return changes

    def verdict(self) -> Note:
        """What the choice was worth on days it was not chosen on."""
        quantile, window, hold = self.chosen
        row, rule = self.cost(quantile, window, hold), self.report.rows["tuned_rule"].cost
        best = self.report.rows["optimum"].cost
        closed = (rule - float(row["cost"])) / (rule - best) if rule > best else float("nan")
        word = "closes" if closed > 0 else "loses"
        advice = (
            "It has earned its place on these days."
            if closed > 0.02
            else "Here the tuned rule is as good: leave `learning.mode` at `shadow`; it must prove itself first."
        )
        return Note(
            f"Cheapest before judging: **quantile {quantile:g}, window {window}, hold {hold}**. On the judged days it"
            f" {word} **{abs(closed) * 100:.0f} %** of what the tuned rule leaves to a clairvoyant. {advice}"
        )


LABELS = {
    "static_peak": "always the peak",
    "default_reactive": "reactive, as autoscalers come",
    "tuned_rule": "tuned rule",
    "forecast": "forecast, chosen anew each night",
    "learner": "learner",
    "gated": "learner, behind its gate",
    "optimum": "optimum (knows everything)",
}


def terms_of(history: History, lead: str, wait_weight: float, gpus_per_node: int) -> Terms:
    """The constants of an account, checked."""
    if not 0 <= wait_weight < float("inf"):
        raise InputError.one("WAIT_WEIGHT", wait_weight, "a number, 0 or more")
    if gpus_per_node < 1:
        raise InputError.one("GPUS_PER_NODE", gpus_per_node, "1 or more")
    return Terms(gpus_per_node, seconds_of(lead, "LEAD", least=1), float(wait_weight), history.panel.step_s)


def try_settings(
    history: History,
    *,
    lead: str = "15m",
    wait_weight: float = 9,
    gpus_per_node: int = 8,
    quantiles: Sequence[float] = QUANTILES,
) -> Trial:
    """Replay every combination of quantile, window and hold against the demand of all teams together."""
    from controller.backtest.run import bench
    from forecaster.service import CHEAP, rolling

    history.long_enough("trying settings")
    if not quantiles or not all(0 < level < 1 for level in quantiles):
        given = ", ".join(map(str, quantiles)) or "none"
        raise InputError.one("QUANTILES", given, "at least one number, all between 0 and 1")
    terms = terms_of(history, lead, wait_weight, gpus_per_node)
    trace = history.trace()
    demand, day = trace.panel.values[:, 0], trace.panel.rows_a_day
    windows = [Window(terms.lead_s, seconds_of(length, "window", least=1)) for length in WINDOWS]
    made = rolling(trace.panel, windows=windows, levels=tuple(quantiles), experts=CHEAP)
    columns, keys = [], []
    for w, length in enumerate(WINDOWS):
        for q, quantile in enumerate(quantiles):
            wanted = nodes_for(made.values[:, 0, w, q], gpus_per_node)
            for hold in HOLDS:
                columns.append(held(wanted, seconds_of(hold, "hold") // terms.step_s))
                keys.append((float(quantile), length, hold))
    targets = np.stack(columns, axis=1)
    account = replay(demand, targets, terms, int(targets[0, 0]))
    table = _table(account, keys, trace.judge_from, min(day, trace.judge_from // 2))
    beyond = np.maximum(targets * gpus_per_node - np.nan_to_num(demand)[:, None], 0.0)[trace.judge_from :]
    headroom = dict(zip(keys, np.quantile(beyond, 0.99, axis=0).tolist(), strict=True))
    return Trial(history, terms, table, headroom, bench(trace, terms, "demand"))


def _table(account: Account, keys: list[tuple[float, str, str]], start: int, warm_up: int) -> pd.DataFrame:
    """Sums by combination; the forecasts' first day counts for nobody, they had nothing to learn from."""
    terms = account.terms

    def summed(part: Array) -> Array:
        return np.asarray(part[start:].sum(axis=0))

    frame = pd.DataFrame(keys, columns=KEYS)
    frame[COSTS[0]], frame[COSTS[1]] = summed(account.idle), summed(account.wait)
    frame[COSTS[2]] = summed(account.adds) * terms.per_add
    frame[COSTS[3]] = summed(account.cost)
    frame[COSTS[4]] = account.cost[warm_up:start].sum(axis=0)
    return frame


def described(terms: Terms) -> str:
    """The constants in words, for the line under a title."""
    return f"lead {minutes_text(terms.lead_s)}, w {terms.wait_weight:g}, nodes of {terms.gpus_per_node} GPUs"
