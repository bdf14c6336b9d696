"""From accounts to the figures that are printed: costs, queueing, and how much of the possible was closed."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from controller.learning.fleet import CHURN_GPU_H, Array, Terms

BOOTSTRAPS = 2000
SEED = 20_240_510


@dataclass(frozen=True, slots=True)
class Days:
    """A policy's account by day of the judged part; GPU-hours, and nodes added. ``queue_s``: each judged job's wait."""

    provisioned: Array
    idle: Array
    wait: Array
    adds: Array
    queue_s: Array | None = None
    starved_min: float | None = None

    def cost(self, terms: Terms) -> Array:
        """Cost by day."""
        return self.idle + terms.wait_weight * self.wait + terms.per_add * self.adds


@dataclass(frozen=True, slots=True)
class Row:
    """What the benchmark prints of one policy."""

    provisioned_gpu_h: float
    idle_gpu_h: float
    wait_gpu_h: float
    boot_gpu_h: float
    churn_gpu_h: float
    cost: float
    queue_p50_s: float | None
    queue_p95_s: float | None
    queue_p99_s: float | None
    starved_min: float | None
    node_adds: int
    gap_closed: float | None
    gap_ci: list[float] | None

    def plain(self) -> dict[str, object]:
        """As JSON-ready values, rounded to what they can mean."""
        return {key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(self).items()}


def score(days: dict[str, Days], terms: Terms) -> dict[str, Row]:
    """Score all policies of one run; the gap is measured between tuned_rule and optimum."""
    rule, best = days["tuned_rule"].cost(terms), days["optimum"].cost(terms)
    return {name: _row(one, terms, rule, best) for name, one in days.items()}


def _row(days: Days, terms: Terms, rule: Array, best: Array) -> Row:
    adds = float(days.adds.sum())
    gap, interval = gap_closed(rule, days.cost(terms), best)
    queue = [None, None, None] if days.queue_s is None else _percentiles(days.queue_s)
    return Row(
        provisioned_gpu_h=float(days.provisioned.sum()),
        idle_gpu_h=float(days.idle.sum()),
        wait_gpu_h=float(days.wait.sum()),
        boot_gpu_h=adds * terms.gpus_per_node * terms.lead_s / 3600,
        churn_gpu_h=adds * CHURN_GPU_H,
        cost=float(days.cost(terms).sum()),
        queue_p50_s=queue[0],
        queue_p95_s=queue[1],
        queue_p99_s=queue[2],
        starved_min=days.starved_min,
        node_adds=round(adds),
        gap_closed=gap,
        gap_ci=interval,
    )


def _percentiles(waits: Array) -> list[float | None]:
    if not len(waits):
        return [None, None, None]
    return [float(value) for value in np.quantile(waits, (0.5, 0.95, 0.99))]


def gap_closed(rule: Array, other: Array, best: Array) -> tuple[float | None, list[float] | None]:
    """(cost_rule − cost_x) / (cost_rule − cost_optimum) and its 95 % interval, by resampling whole days.

    None where the rule leaves nothing to close; no interval from fewer than two days.
    """
    room = float((rule - best).sum())
    if room <= 0:
        return None, None
    gap = float((rule - other).sum()) / room
    if len(rule) < 2:
        return gap, None
    picks = np.random.default_rng(SEED).integers(0, len(rule), size=(BOOTSTRAPS, len(rule)))
    rooms = (rule - best)[picks].sum(axis=1)
    gaps = (rule - other)[picks].sum(axis=1)[rooms > 0] / rooms[rooms > 0]
    low, high = np.quantile(gaps, (0.025, 0.975))
    return gap, [round(float(low), 4), round(float(high), 4)]


def daily(provisioned: Array, idle: Array, wait: Array, adds: Array, rows_a_day: int) -> Days:
    """An account by step, summed into days; the last may be short."""
    starts = np.arange(0, len(adds), rows_a_day)
    parts = [np.add.reduceat(part, starts) if len(part) else part for part in (provisioned, idle, wait, adds)]
    return Days(parts[0], parts[1], parts[2], parts[3])
