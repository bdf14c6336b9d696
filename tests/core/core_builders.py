"""Builders of core values with defaults, and the reader of scenario files (scenarios/README.md has the format)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

import yaml

from controller.core.advice import Advice, HeadroomSource, PoolAdvice, RuleParameters
from controller.core.forecast import TOTAL, Forecasts, SeriesForecast, WindowForecast
from controller.core.policy import Policy
from controller.core.snapshot import (
    GpuDevice,
    Node,
    PastEviction,
    PoolObservation,
    RecentDemand,
    ShareInForce,
    Snapshot,
    Workload,
    WorkloadState,
)
from controller.resources.parse import parse_policy
from controller.resources.schema import to_ppm, to_seconds

NOW_S = int(datetime.fromisoformat("2026-06-01T10:00:00+00:00").timestamp())
POOL = "gpu"
LONG_WINDOW_S = 4 * 3600


def seconds(value: Any) -> int:
    """A duration such as 10m; negative with a leading minus."""
    text = str(value)
    return -to_seconds(text[1:]) if text.startswith("-") else to_seconds(text)


def milli(gpus: Any) -> int:
    """GPUs, possibly a decimal fraction, as milli-GPUs."""
    return int(Fraction(str(gpus)) * 1000)


def instant(value: Any) -> int:
    """An ISO instant as epoch seconds; YAML may have read it already."""
    if isinstance(value, datetime):
        assert value.tzinfo is not None
        return int(value.timestamp())
    return int(datetime.fromisoformat(str(value).replace("Z", "+00:00")).timestamp())


def a_policy(
    pools: Mapping[str, Mapping[str, Any]] | None = None, teams: Mapping[str, Any] | None = None, **spec: Any
) -> Policy:
    """A policy from the shortened form, through the parser that users' files go through."""
    document = {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "GPUPolicy",
        "metadata": {"name": "test"},
        "spec": {
            "mode": "enforce",
            "pools": [_pool(name, dict(given or {})) for name, given in (pools or {POOL: {}}).items()],
            "teams": [_team(name, dict(given or {})) for name, given in (teams or {"a": {}, "b": {}}).items()],
            **spec,
        },
    }
    return parse_policy(yaml.safe_dump(document))


def _pool(name: str, given: dict[str, Any]) -> dict[str, Any]:
    capacity = {"max": given.pop("max", 16)}
    for key in ("min", "maxHourlyCost"):
        if key in given:
            capacity[key] = given.pop(key)
    return {"name": name, "nodes": {"selector": {"pool": name}}, "capacity": capacity, **given}


def _team(name: str, given: dict[str, Any]) -> dict[str, Any]:
    bounds = {key: given.pop(key) for key in ("floor", "ceiling") if key in given}
    return {"name": name, "namespaces": given.pop("namespaces", [name]), "bounds": bounds, **given}


def a_pool(name: str = POOL, now_s: int = NOW_S, **given: Any) -> PoolObservation:
    """An observed pool; see README for the words."""
    changed = given.get("target_changed")
    return PoolObservation(
        name=name,
        gpus_per_node=given.get("gpus_per_node", 8),
        lead_s=seconds(given.get("lead", "10m")),
        obtainable_gpus=given.get("obtainable_gpus"),
        target_nodes=given.get("target_nodes"),
        target_changed_at_s=None if changed is None else now_s - seconds(changed),
        recent_targets=tuple(sorted((now_s - seconds(ago), nodes) for ago, nodes in given.get("targets", ()))),
        micro_usd_per_node_hour=given.get("usd", 0) * 1_000_000,
    )


def a_node(name: str = "n1", now_s: int = NOW_S, **given: Any) -> Node:
    """A node of 8 GPUs, ready for a day."""
    state, gpus = given.get("state", "ready"), given.get("gpus", 8)
    at = now_s - seconds(given.get("age", "1d"))
    serves = state in ("ready", "cordoned", "interrupted")
    return Node(
        name=name,
        pool=given.get("pool", POOL),
        gpus=gpus,
        allocatable_milli_gpus=gpus * 1000 if serves else 0,
        requested_at_s=at,
        joined_at_s=None if state == "requested" else at,
        ready_at_s=at if serves else None,
        cordoned=state == "cordoned",
        idle_since_s=now_s - seconds(given["idle"]) if "idle" in given else None,
        interrupted_at_s=now_s if state == "interrupted" else None,
        cpu_milli=given.get("cpus", 0) * 1000,
        memory_mib=given.get("memory_gib", 0) * 1024,
        micro_usd_per_hour=given.get("usd", 0) * 1_000_000,
        model=given.get("model", ""),
        devices=tuple(_device(i, cut) for i, cut in enumerate(given.get("cut", ()))),
    )


def _device(index: int, cut: Mapping[str, Any]) -> GpuDevice:
    profiles = tuple(cut.get("profiles", ()))
    return GpuDevice(index, profiles, milli(cut.get("used", 0)), cut.get("replicas", 1))


def a_job(name: str = "a-1", now_s: int = NOW_S, **given: Any) -> Workload:
    """A gang that waits, or with ``at`` (nodes) runs."""
    running = "at" in given
    since = now_s - seconds(given.get("runs", given.get("waits", "5m")))
    ago = {key: now_s - seconds(given[key]) for key in ("saved", "refused", "idle") if key in given}
    team = given.get("team", "a")
    return Workload(
        name=name,
        namespace=given.get("namespace", team),
        pool=given.get("pool", POOL),
        pods=given.get("pods", 1),
        milli_gpus_per_pod=milli(given.get("gpus", 1)),
        state=WorkloadState.RUNNING if running else WorkloadState.PENDING,
        submitted_at_s=since,
        started_at_s=since if running else None,
        priority=given.get("priority", 0),
        preemptible=given.get("preemptible", False),
        expected_remaining_s=seconds(given["remaining"]) if "remaining" in given else None,
        saved_at_s=ago.get("saved"),
        nodes=tuple(given.get("at", ())),
        cpu_milli_per_pod=given.get("cpus", 0) * 1000,
        memory_mib_per_pod=given.get("memory_gib", 0) * 1024,
        disruptions_allowed=given.get("disruptions"),
        evict_at_s=now_s + seconds(given["notice"]) if "notice" in given else None,
        evict_for=given.get("notice_for", ""),
        evict_refused_since_s=ago.get("refused"),
        daemon=given.get("daemon", False),
        shared_gpu=given.get("shared", False),
        mig_profile=given.get("profile", ""),
        gpu_busy_ppm=to_ppm(given["busy"]) if "busy" in given else None,
        idle_since_s=ago.get("idle"),
    )


def placed(jobs: Iterable[Mapping[str, Any]], nodes: Iterable[Node]) -> list[dict[str, Any]]:
    """Give running jobs without ``at`` the first nodes with room, pod by pod, in the order of the list."""
    room = {node.name: node.gpus * 1000 for node in nodes if node.pool and node.allocatable_milli_gpus}
    done = []
    for job in jobs:
        amount, pods = milli(job.get("gpus", 1)), job.get("pods", 1)
        where = list(job.get("at", ()))
        if "runs" in job and not where:
            for _ in range(pods):
                name = next((name for name, free in room.items() if free >= amount), None)
                assert name is not None, f"no room for {job}"
                where.append(name)
                room[name] -= amount
        elif where:
            for name in where:
                room[name] = room.get(name, 0) - amount
        done.append({**job, "at": where} if where else dict(job))
    return done


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario, read: the arguments of ``decide``."""

    snapshot: Snapshot
    forecasts: Forecasts
    policy: Policy
    now_s: int
    advice: Advice


def read(given: Mapping[str, Any], now_s: int) -> Scenario:
    """Turn ``given`` into the arguments of ``decide``."""
    unknown = set(given) - {"policy", "pools", "nodes", "work", "shares", "forecasts", "evictions", "advice"}
    assert not unknown, f"unknown in given: {unknown}"
    policy = a_policy(**dict(given.get("policy") or {}))
    nodes = [_named_node(one, now_s) for one in _node_list(given.get("nodes", ()))]
    observed = {pool.name: dict((given.get("pools") or {}).get(pool.name) or {}) for pool in policy.pools}
    pools = []
    for pool in policy.pools:
        words = observed[pool.name]
        words.setdefault("gpus_per_node", pool.gpus_per_node)
        words.setdefault("target_nodes", sum(1 for node in nodes if node.pool == pool.name))
        pools.append(a_pool(pool.name, now_s, **words))
    snapshot = Snapshot(
        cluster="c1",
        taken_at_s=now_s,
        pools=tuple(pools),
        nodes=tuple(nodes),
        workloads=tuple(_jobs(given.get("work", ()), nodes, now_s)),
        shares=tuple(_share(team, amount) for team, amount in (given.get("shares") or {}).items()),
        evictions=tuple(_eviction(one, now_s) for one in given.get("evictions", ())),
        recent=tuple(_recent(name, words, now_s) for name, words in observed.items() if "demand" in words),
    )
    return Scenario(snapshot, _forecasts(given.get("forecasts") or {}, now_s), policy, now_s, _advice(given))


def _node_list(given: Any) -> list[Any]:
    return [f"n{i + 1}" for i in range(given)] if isinstance(given, int) else list(given)


def _named_node(one: Any, now_s: int) -> Node:
    words = {"name": one} if isinstance(one, str) else dict(one)
    return a_node(now_s=now_s, **words)


def _jobs(given: Iterable[Mapping[str, Any]], nodes: list[Node], now_s: int) -> Iterable[Workload]:
    seen: dict[str, int] = {}
    for words in placed(given, nodes):
        owner = words.get("team") or words.get("namespace", "a")
        seen[owner] = seen.get(owner, 0) + 1
        words.setdefault("name", f"{owner}-{seen[owner]}")
        yield a_job(now_s=now_s, **words)


def _share(team: str, amount: Any) -> ShareInForce:
    share, preemptible = amount if isinstance(amount, list) else (amount, 0)
    return ShareInForce(POOL, team, milli(share), milli(preemptible))


def _eviction(one: Mapping[str, Any], now_s: int) -> PastEviction:
    return PastEviction(one["work"], POOL, one["team"], one["for"], milli(one["gpus"]), now_s - seconds(one["ago"]))


def _recent(name: str, words: Mapping[str, Any], now_s: int) -> RecentDemand:
    return RecentDemand(name, tuple(sorted((now_s - seconds(ago), milli(gpus)) for ago, gpus in words["demand"])))


def a_window(start_s: int, end_s: int, quantiles: Any) -> WindowForecast:
    """A window from {level: GPUs}, or one number of GPUs for all levels."""
    levels = quantiles if isinstance(quantiles, Mapping) else {0.5: quantiles}
    pairs = sorted((round(float(level) * 1000), milli(gpus)) for level, gpus in levels.items())
    return WindowForecast(start_s, end_s, tuple(p[0] for p in pairs), tuple(p[1] for p in pairs))


def a_forecast(team: str, given: Any, now_s: int = NOW_S) -> SeriesForecast:
    """A team's series (``total``: the pool's) from a number, quantiles, or windows with an age."""
    age, windows = 0, {f"0s-{LONG_WINDOW_S}s": given}
    if isinstance(given, Mapping) and "windows" in given:
        age, windows = seconds(given.get("age", "0s")), given["windows"]
    elif isinstance(given, Mapping) and "age" in given:
        age, windows = seconds(given["age"]), {f"0s-{LONG_WINDOW_S}s": {k: v for k, v in given.items() if k != "age"}}
    read_windows = []
    for span, quantiles in windows.items():
        start, end = span.split("-")
        read_windows.append(a_window(seconds(start), seconds(end), quantiles))
    return SeriesForecast(POOL, TOTAL if team == "total" else team, now_s - age, tuple(read_windows), "test")


def _forecasts(given: Mapping[str, Any], now_s: int) -> Forecasts:
    return Forecasts(tuple(a_forecast(team, one, now_s) for team, one in given.items()))


def _advice(given: Mapping[str, Any]) -> Advice:
    words = given.get("advice")
    if words is None:
        return Advice()
    rule = words.get("rule", {})
    return Advice(
        (
            PoolAdvice(
                pool=POOL,
                source=HeadroomSource(words.get("source", "rule")),
                rule=RuleParameters(to_ppm(rule.get("buffer", "10%")) // 1000, seconds(rule.get("hold", "10m"))),
                quantile_permille=round(words["quantile"] * 1000) if "quantile" in words else None,
                window_s=seconds(words.get("window", "15m")),
                hold_s=seconds(words.get("hold", "0s")),
                bias_milli_gpus=milli(words.get("bias", 0)),
                target_milli_gpus=milli(words["target"]) if "target" in words else None,
                raise_only=words.get("raise_only", False),
            ),
        )
    )
