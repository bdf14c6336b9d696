"""From the checked words of a policy file to the core's exact values: nothing is judged here, only translated."""

from __future__ import annotations

from controller.core import policy as core
from controller.core.policy import Policy
from controller.resources.schema import AlertsPart, GpuFractionPart, GPUPolicy, GuardsPart, PoolPart, TeamPart


def resolve(document: GPUPolicy) -> Policy:
    """The core's value of a document that has passed the checks of single fields."""
    spec = document.spec
    kueue = spec.enforcement.kueue
    mechanism = "kueue" if kueue else "resourceQuota" if spec.enforcement.resource_quota else "none"
    low, high = spec.learning.quantile
    return Policy(
        name=document.metadata.name,
        mode=core.Mode(spec.mode),
        timezone=spec.timezone,
        pools=tuple(_core_pool(pool) for pool in spec.pools),
        teams=tuple(_core_team(team) for team in spec.teams),
        lending=core.Lending(
            enabled=spec.lending.enabled,
            notice_s=spec.lending.notice,
            reclaim=tuple(core.Reclaimable(kind) for kind in spec.lending.reclaim),
            forecast_aware=spec.lending.forecast_aware,
        ),
        starvation=core.Starvation(spec.starvation.max_wait),
        guards=_core_guards(spec.guards),
        sharing=core.Sharing(
            spec.sharing.mig == "auto", spec.sharing.time_slicing.max_replicas if spec.sharing.time_slicing else 1
        ),
        learning=core.Learning(
            core.LearningMode(spec.learning.mode),
            round(low * 1000),
            round(high * 1000),
            spec.learning.max_headroom,
            spec.learning.patience_days,
        ),
        enforcement=core.Enforcement(mechanism, kueue.cohort if kueue else ""),
        alerts=_core_alerts(spec.alerts),
    )


def _core_pool(part: PoolPart) -> core.Pool:
    cost = part.capacity.max_hourly_cost
    limits = core.PoolLimits(
        min_gpus=part.capacity.min,
        max_gpus=part.capacity.max,
        max_micro_usd_per_hour=None if cost is None else round(cost * 1_000_000),
        min_node_life_s=part.min_node_life,
        max_step_nodes=part.max_step_nodes,
    )
    selector = tuple(sorted(part.nodes.selector.items()))
    return core.Pool(part.name, selector, limits, provisioners(part)[0], part.wait_weight, part.gpus_per_node)


def _core_team(part: TeamPart) -> core.Team:
    bounds = core.Bounds(part.bounds.floor or core.ZERO, part.bounds.ceiling or core.ALL)
    windows = tuple(
        core.Window(w.name, w.days, w.from_ % 1440, w.to, w.bounds.floor, w.bounds.ceiling) for w in part.schedule
    )
    return core.Team(
        name=part.name,
        namespaces=tuple(part.namespaces),
        priority=part.priority,
        weight=part.weight,
        bounds=bounds,
        schedule=windows,
        pools=tuple(sorted(part.pools)),
        preemptible=part.preemptible,
    )


def provisioners(pool: PoolPart) -> list[str]:
    """The keys given under ``provisioner``; exactly one is right."""
    return list(pool.provisioner.model_dump(by_alias=True, exclude_none=True))


def fractions(part: GuardsPart) -> list[GpuFractionPart]:
    """The rules of gpuFraction, which may be one or a list."""
    found = part.gpu_fraction
    return found if isinstance(found, list) else [found] if found else []


def _core_guards(part: GuardsPart) -> core.Guards:
    cpu, idle = part.cpu_only_pods, part.idle_gpus
    return core.Guards(
        cpu_only_pods=core.CpuOnlyPods(cpu.allow, core.GuardAction(cpu.action), cpu.grace, tuple(cpu.exempt_namespaces))
        if cpu
        else None,
        idle_gpus=core.IdleGpus(idle.below, idle.for_, core.GuardAction(idle.action)) if idle else None,
        gpu_fraction=tuple(core.GpuFraction(r.team, r.max, core.GuardAction(r.action)) for r in fractions(part)),
    )


def _core_alerts(part: AlertsPart) -> tuple[core.AlertRoute, ...]:
    routes = []
    for channel in ("alertmanager", "pagerduty", "slack", "webhook"):
        route = getattr(part, channel)
        if route is not None:
            settings = tuple((key, value) for key in ("channel", "url") if (value := getattr(route, key, None)))
            routes.append(core.AlertRoute(channel, route.secret_ref or "", route.from_, settings))
    return tuple(routes)
