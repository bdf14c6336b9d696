"""Stage 5: how many nodes a pool should have, so that they are there before the work that needs them.

One rule, always computed; a forecast or a learner may be put in its place within an envelope. All aim at the pool's
*total* demand: the sum of the teams' quantiles would warm nodes for peaks that never coincide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from controller.core.advice import HeadroomSource, PoolAdvice, RuleParameters
from controller.core.forecast import TOTAL, Forecasts, SeriesForecast
from controller.core.lending import STALE_AFTER_S
from controller.core.policy import Learning, LearningMode, Pool
from controller.core.quantities import MILLI, ceil_div
from controller.core.reasons import Reason, ReasonCode, reason
from controller.core.snapshot import PoolObservation

Points = Sequence[tuple[int, int]]
"""Ascending ``(at_s, value)``."""


@dataclass(frozen=True, slots=True)
class Target:
    """How many nodes to have, who says so, and what the rule said; ``unheld`` is the advised number before its hold."""

    pool: str
    nodes: int
    rule_nodes: int
    advised_nodes: int | None
    source: HeadroomSource
    quantile_permille: int | None
    reason: Reason
    notes: tuple[Reason, ...] = ()


def most_recent(points: Points, since_s: int, now_value: int) -> int:
    """The most of the values at or after ``since_s``, and of the value now."""
    return max((value for at, value in points if at >= since_s), default=now_value) if points else now_value


def nodes_for(milli_gpus: int, gpus_per_node: int) -> int:
    """Whole nodes that hold an amount."""
    return ceil_div(max(0, milli_gpus), gpus_per_node * MILLI)


def rule_nodes(recent: Points, demand: int, rule: RuleParameters, gpus_per_node: int, now_s: int) -> int:
    """The rule: demand · (1 + buffer), rounded up to nodes; the most of the last ``hold_s`` seconds."""
    peak = max(demand, most_recent(recent, now_s - rule.hold_s, demand))
    return nodes_for(ceil_div(peak * (1000 + rule.buffer_permille), 1000), gpus_per_node)


def forecast_nodes(
    series: SeriesForecast, advice: PoolAdvice, quantile_permille: int, lead_s: int, gpus_per_node: int
) -> int:
    """A quantile of the total's maximum from the lead on, plus the advised bias, in nodes."""
    window = series.covering(lead_s, lead_s + advice.window_s)
    if window is None:
        return 0
    return nodes_for(window.at(quantile_permille) + advice.bias_milli_gpus, gpus_per_node)


def allowed_quantile(advice: PoolAdvice, pool: Pool, learning: Learning) -> int:
    """The advised quantile inside the policy's envelope; what the policy's own wait weight implies is not clipped."""
    if advice.quantile_permille is None:
        return pool.quantile_permille
    return min(max(advice.quantile_permille, learning.low_permille), learning.high_permille)


def target(
    pool: Pool,
    seen: PoolObservation,
    recent: Points,
    demand: int,
    forecasts: Forecasts,
    advice: PoolAdvice,
    learning: Learning,
    now_s: int,
) -> Target:
    """The nodes to aim at, before the shield. ``demand`` is what the shares let run, in milli-GPUs."""
    by_rule = rule_nodes(recent, demand, advice.rule, seen.gpus_per_node, now_s)
    advised, source, notes = _advised(pool, seen, forecasts, advice, learning, now_s)
    now_nodes = nodes_for(demand, seen.gpus_per_node)
    if advised is None:
        why = _why(
            ReasonCode.RULE_TARGET,
            pool,
            demand,
            by_rule,
            buffer_permille=advice.rule.buffer_permille,
            hold_s=advice.rule.hold_s,
        )
        return Target(pool.name, max(by_rule, now_nodes), by_rule, None, HeadroomSource.RULE, None, why, notes)
    held = max(advised, most_recent(seen.recent_targets, now_s - advice.hold_s, advised) if advice.hold_s else advised)
    nodes = max(held, now_nodes)
    nodes, envelope = _enveloped(nodes, now_nodes, by_rule, pool, seen, advice, learning, source)
    quantile = allowed_quantile(advice, pool, learning)
    code = ReasonCode.FORECAST_TARGET if source is HeadroomSource.FORECAST else ReasonCode.LEARNER_TARGET
    why = _why(code, pool, demand, nodes, quantile_permille=quantile, rule_nodes=by_rule, lead_s=seen.lead_s)
    return Target(pool.name, nodes, by_rule, advised, source, quantile, why, (*notes, *envelope))


def with_needed(target: Target, needed: int) -> Target:
    """Raise a target to the nodes that work takes because of its shape: demand in number is only a lower bound."""
    return replace(target, nodes=needed) if needed > target.nodes else target


def _why(code: ReasonCode, pool: Pool, demand: int, nodes: int, **facts: int) -> Reason:
    return Reason(code, pool.name, facts=tuple(sorted({"demand_milli_gpus": demand, "nodes": nodes, **facts}.items())))


def _advised(
    pool: Pool, seen: PoolObservation, forecasts: Forecasts, advice: PoolAdvice, learning: Learning, now_s: int
) -> tuple[int | None, HeadroomSource, tuple[Reason, ...]]:
    if advice.source is HeadroomSource.RULE:
        return None, HeadroomSource.RULE, ()
    if advice.source is HeadroomSource.LEARNER and advice.target_milli_gpus is not None:
        return nodes_for(advice.target_milli_gpus, seen.gpus_per_node), HeadroomSource.LEARNER, ()
    series = forecasts.of(pool.name, TOTAL)
    if series is None or not series.windows:
        return None, HeadroomSource.RULE, (reason(ReasonCode.FORECAST_MISSING, pool=pool.name),)
    age = now_s - series.issued_at_s
    if not 0 <= age <= STALE_AFTER_S:
        stale = reason(ReasonCode.FORECAST_STALE, pool=pool.name, age_s=age, allowed_s=STALE_AFTER_S)
        return None, HeadroomSource.RULE, (stale,)
    quantile = allowed_quantile(advice, pool, learning)
    nodes = forecast_nodes(series, advice, quantile, seen.lead_s, seen.gpus_per_node)
    if advice.quantile_permille in (None, quantile):
        return nodes, HeadroomSource.FORECAST, ()
    assert advice.quantile_permille is not None
    asked = forecast_nodes(series, advice, advice.quantile_permille, seen.lead_s, seen.gpus_per_node)
    clip = reason(ReasonCode.CLIPPED_TO_ENVELOPE, pool=pool.name, asked_nodes=asked, allowed_nodes=nodes)
    return nodes, HeadroomSource.FORECAST, (clip,)


def _enveloped(
    nodes: int,
    now_nodes: int,
    by_rule: int,
    pool: Pool,
    seen: PoolObservation,
    advice: PoolAdvice,
    learning: Learning,
    source: HeadroomSource,
) -> tuple[int, tuple[Reason, ...]]:
    """Advice may warm at most ``maxHeadroom`` GPUs beyond demand, and in raise-only mode never less than the rule."""
    low, high = now_nodes, None
    if advice.raise_only or (source is HeadroomSource.LEARNER and learning.mode is LearningMode.RAISE_ONLY):
        low = max(low, by_rule)
    if learning.max_headroom_gpus is not None:
        high = max(low, now_nodes + ceil_div(learning.max_headroom_gpus, seen.gpus_per_node))
    clipped = max(low, nodes if high is None else min(nodes, high))
    if clipped == nodes:
        return nodes, ()
    code = ReasonCode.CLIPPED_TO_HEADROOM if clipped < nodes else ReasonCode.CLIPPED_TO_ENVELOPE
    return clipped, (reason(code, pool=pool.name, asked_nodes=nodes, allowed_nodes=clipped),)
