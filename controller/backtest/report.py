"""What a suite found, for people: how every policy stands, the worst rows first, and one page of HTML with all of it.

The page needs nothing beside itself: no script, no font, no network. Bars and intervals are SVG in per cent of their
cell, so that they shrink with it and text does not. Losses are in the same tables, the same type and the same order as
wins; where there is an order, the worst is first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

from controller.backtest.scenarios import BY_NAME
from controller.backtest.score import BOOTSTRAPS, gap_closed

Result = dict[str, Any]
RULE, OPTIMUM = "tuned_rule", "optimum"
BASELINES = frozenset({"static_peak", "default_reactive", RULE, OPTIMUM})
"""What there is without tidegate, and the two ends of the scale; every other policy is one that tidegate brings."""
EVEN = 0.0005
BELOW = -0.02
AXIS = 1.0
"""The gap is drawn from −100 % to +100 %; what is beyond is marked at the edge and printed beside it."""
MOST_COST = 2.5
"""Costs are drawn up to so many times the rule's."""
KINDS = {"trace": "Traces", "synthetic": "Made demand", "robustness": "After tuning"}


@dataclass(frozen=True, slots=True)
class Line:
    """One policy in one case."""

    title: str
    kind: str
    policy: str
    gap: float
    ci: tuple[float, float] | None
    cost: float
    cost_rule: float
    money_usd: float
    money_rule_usd: float

    @property
    def interval(self) -> str:
        """The interval in words."""
        return f"{percent(self.ci[0])} … {percent(self.ci[1])}" if self.ci else "–"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a policy stands over many cases; ``median`` and ``worst`` of the gap closed."""

    policy: str
    rows: int
    better: int
    even: int
    worse: int
    below: int
    median: float | None
    worst: float | None
    where: str


@dataclass(frozen=True, slots=True)
class Pooled:
    """A policy over all seeds of one lead and wait weight: sums over seeds, interval by resampling seeds."""

    lead_s: int
    wait_weight: float
    policy: str
    seeds: int
    gap: float | None
    ci: tuple[float, float] | None
    worst: float | None


@dataclass(frozen=True, slots=True)
class Document:
    """All that is printed. ``lines``: of tidegate's policies, the worst first."""

    results: tuple[Result, ...]
    made: dict[str, str]
    left_out: tuple[str, ...]
    price: float
    policies: tuple[str, ...]
    standings: tuple[Standing, ...]
    lines: tuple[Line, ...]
    pooled: tuple[Pooled, ...]
    failed: tuple[Result, ...]

    def plain(self) -> dict[str, Any]:
        """The document of ``--json``."""
        return {
            "made": self.made,
            "gpu_hour_price_usd": self.price,
            "left_out": list(self.left_out),
            "standings": [asdict(one) for one in self.standings],
            "seeds": [asdict(one) for one in self.pooled],
            "worst": [asdict(line) for line in self.lines[:25]],
            "cases": list(self.results),
        }


def document(results: Sequence[Result], made: dict[str, str], left_out: Sequence[str], price: float) -> Document:
    """Work out the summary. ``price``: US dollars a GPU-hour; refused cases join ``left_out``."""
    judged = [result for result in results if "policies" in result]
    policies = _policies(judged)
    everything = [line for result in judged for line in _lines(result, price)]
    ours = sorted((line for line in everything if line.policy not in BASELINES), key=lambda line: line.gap)
    return Document(
        results=tuple(results),
        made=made,
        left_out=(*left_out, *(f"{title(one)}: {one['refused']}" for one in results if "refused" in one)),
        price=price,
        policies=policies,
        standings=standings(everything, policies),
        lines=tuple(ours),
        pooled=pooled([result for result in judged if result["kind"] == "synthetic"], policies),
        failed=tuple(result for result in results if "failed" in result),
    )


def _policies(results: Iterable[Result]) -> tuple[str, ...]:
    """The policies whose gap means something, in the order of the benchmark: all but the two ends of the scale."""
    names = dict.fromkeys(name for result in results for name in result["policies"])
    return tuple(name for name in names if name not in (RULE, OPTIMUM))


def title(result: Result) -> str:
    """A case in words."""
    words = [result["label"], minutes(result["lead_s"]), f"w {result['wait_weight']:g}"]
    if result["scenario"]:
        words.append(f"past of {result['other']}" if result["other"] else result["scenario"].replace("_", " "))
    return " · ".join(words)


def minutes(seconds: int) -> str:
    """A lead in words."""
    return f"{seconds / 60:g} min"


def percent(value: float | None) -> str:
    """A share with its sign, a true minus; a dash where there is none."""
    if value is None:
        return "–"
    if abs(value) < EVEN:
        return "0.0 %"
    return f"{value * 100:+,.{0 if abs(value) >= 10 else 1}f} %".replace("-", "−")


def paid_gpu_h(row: dict[str, Any]) -> float:
    """GPU-hours on the bill: while a node serves, and while it boots."""
    return float(row["provisioned_gpu_h"] + row["boot_gpu_h"])


def _lines(result: Result, price: float) -> list[Line]:
    rows = result["policies"]
    return [
        Line(
            title=title(result),
            kind=result["kind"],
            policy=name,
            gap=row["gap_closed"],
            ci=tuple(row["gap_ci"]) if row["gap_ci"] else None,
            cost=row["cost"],
            cost_rule=rows[RULE]["cost"],
            money_usd=round(paid_gpu_h(row) * price, 2),
            money_rule_usd=round(paid_gpu_h(rows[RULE]) * price, 2),
        )
        for name, row in rows.items()
        if name not in (RULE, OPTIMUM) and row["gap_closed"] is not None
    ]


def standings(lines: Iterable[Line], policies: Sequence[str]) -> tuple[Standing, ...]:
    """Count better, even and worse than the tuned rule, for each policy."""
    out, everything = [], list(lines)
    for policy in policies:
        mine = [line for line in everything if line.policy == policy]
        worst = min(mine, key=lambda line: line.gap, default=None)
        better, worse = sum(line.gap >= EVEN for line in mine), sum(line.gap <= -EVEN for line in mine)
        below = sum(line.gap < BELOW for line in mine)
        middle = median(line.gap for line in mine) if mine else None
        where = (worst.gap, worst.title) if worst else (None, "")
        out.append(Standing(policy, len(mine), better, len(mine) - better - worse, worse, below, middle, *where))
    return tuple(out)


def pooled(results: Sequence[Result], policies: Sequence[str]) -> tuple[Pooled, ...]:
    """By lead and wait weight: the gap closed over the sums of all seeds, 95 % interval by resampling seeds."""
    out = []
    for lead_s, weight in sorted({(result["lead_s"], result["wait_weight"]) for result in results}):
        seeds = [one["policies"] for one in results if (one["lead_s"], one["wait_weight"]) == (lead_s, weight)]
        rule, best = (np.array([seed[name]["cost"] for seed in seeds]) for name in (RULE, OPTIMUM))
        for policy in policies:
            gap, ci = gap_closed(rule, np.array([seed[policy]["cost"] for seed in seeds]), best)
            gaps = [seed[policy]["gap_closed"] for seed in seeds if seed[policy]["gap_closed"] is not None]
            interval = (ci[0], ci[1]) if ci else None
            out.append(Pooled(lead_s, weight, policy, len(seeds), gap, interval, min(gaps, default=None)))
    return tuple(out)


def gap_x(value: float) -> float:
    """Where a gap stands on the axis, in per cent of its width; what is beyond stands at the edge."""
    return round(50 + 50 * max(-AXIS, min(AXIS, value)) / AXIS, 2)


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of a stacked bar: begin and width in per cent."""

    name: str
    x: float
    width: float


def cost_bars(row: dict[str, Any], wait_weight: float, most: float) -> list[Bar]:
    """Idle, waiting times w, boot and churn, one after another; ``most`` GPU-hours fill the width, more is cut off."""
    parts = {
        "idle": row["idle_gpu_h"],
        "wait": wait_weight * row["wait_gpu_h"],
        "boot": row["boot_gpu_h"],
        "churn": row["churn_gpu_h"],
    }
    bars, at = [], 0.0
    for name, value in parts.items():
        end = min(at + 100 * value / most, 100.0) if most > 0 else at
        bars.append(Bar(name, round(at, 2), round(end - at, 2)))
        at = end
    return bars


def _sections(doc: Document) -> dict[str, Any]:
    """What the template walks through, prepared."""
    judged = [result for result in doc.results if "policies" in result]
    tables = [result for result in judged if result["kind"] == "trace"]
    robust = [result for result in judged if result["kind"] == "robustness"]
    everything = [line for result in judged for line in _lines(result, doc.price)]
    chief = next((name for name in reversed(doc.policies) if name not in BASELINES), None)
    by_gap = [one for one in robust if chief and one["policies"][chief]["gap_closed"] is not None]
    return {
        "kinds": [
            (name, standings([line for line in everything if line.kind == kind], doc.policies))
            for kind, name in KINDS.items()
            if any(line.kind == kind for line in everything)
        ],
        "traces": _by_label(tables),
        "robust": sorted(by_gap, key=lambda one: float(one["policies"][chief]["gap_closed"])),
        "pooled": [doc.pooled[i : i + len(doc.policies)] for i in range(0, len(doc.pooled), len(doc.policies))],
        "chief": chief,
        "scenarios": BY_NAME.values(),
    }


def _by_label(results: Iterable[Result]) -> list[tuple[str, list[Result]]]:
    groups: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda one: (one["label"], one["lead_s"], one["wait_weight"])):
        groups.setdefault(result["label"], []).append(result)
    return list(groups.items())


def most_cost(result: Result) -> float:
    """What fills the width of a case's cost bars, in GPU-hours."""
    costs = [row["cost"] for row in result["policies"].values()]
    return float(min(max(costs), MOST_COST * result["policies"][RULE]["cost"]) or 1.0)


def html(doc: Document) -> str:
    """The page: one file, no script, nothing fetched."""
    environment = Environment(
        loader=PackageLoader("controller.backtest"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("suite.html")
    functions = (title, minutes, percent, gap_x, cost_bars, most_cost, paid_gpu_h)
    return page.render(
        doc=doc,
        baselines=BASELINES,
        below=BELOW,
        bootstraps=BOOTSTRAPS,
        most_cost_times=MOST_COST,
        **_sections(doc),
        **{function.__name__: function for function in functions},
    )
