"""From the core's ``Policy`` back to the file: what tidegate understood, with every default written out.

Whoever asks "which notice do I get when I say none?" reads it here, and a policy that was recorded with a decision can
be tried again as a file. Reading what is written gives the same policy.
"""

from __future__ import annotations

from typing import Any

import yaml

from controller.core import policy as core
from controller.core.policy import Policy
from controller.core.quantities import MILLI, Amount
from controller.resources.schema import DAY_SETS, DAYS, duration_text, time_text

API_VERSION, KIND = "tidegate.dev/v1alpha1", "GPUPolicy"


def policy_text(policy: Policy) -> str:
    """The YAML of a policy.

    Raises ``ValueError`` for a value that the language has no words for, such as a bound of half a GPU; no policy that
    was read from a file has one.
    """
    # Beyond ASCII in escapes: written plainly, U+0085 would read back as a line break.
    return yaml.safe_dump(policy_document(policy), sort_keys=False, allow_unicode=False, width=120)


def policy_document(policy: Policy) -> dict[str, Any]:
    """The same as plain values, in the order of the reference."""
    spec: dict[str, Any] = {
        "mode": policy.mode.value,
        "timezone": policy.timezone,
        "pools": [_pool(pool) for pool in policy.pools],
        "teams": [_team(team) for team in policy.teams],
        "lending": _lending(policy.lending),
        "starvation": {"maxWait": duration_text(policy.starvation.max_wait_s)},
        "enforcement": _enforcement(policy.enforcement),
        "guards": _guards(policy.guards),
        "sharing": _sharing(policy.sharing),
        "learning": _learning(policy.learning),
        "alerts": {route.channel: _route(route) for route in policy.alerts},
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": policy.name}, "spec": spec}


def _given(**fields: Any) -> dict[str, Any]:
    """The fields that have a value: in a policy a key without one is refused."""
    return {name: value for name, value in fields.items() if value is not None}


def _pool(pool: core.Pool) -> dict[str, Any]:
    limits = pool.limits
    micro_usd = limits.max_micro_usd_per_hour
    return {
        "name": pool.name,
        "nodes": {"selector": dict(pool.selector)},
        "capacity": _given(
            min=limits.min_gpus,
            max=limits.max_gpus,
            maxHourlyCost=None if micro_usd is None else micro_usd / 1_000_000,
        ),
        "provisioner": {pool.provisioner: {}},
        "waitWeight": pool.wait_weight,
        "gpusPerNode": pool.gpus_per_node,
        "minNodeLife": duration_text(limits.min_node_life_s),
        **_given(maxStepNodes=limits.max_step_nodes),
    }


def _team(team: core.Team) -> dict[str, Any]:
    return {
        "name": team.name,
        "namespaces": list(team.namespaces),
        "priority": team.priority,
        "weight": team.weight,
        "preemptible": team.preemptible,
        "pools": list(team.pools),
        "bounds": _bounds(team.bounds.floor, team.bounds.ceiling),
        "schedule": [_window(window) for window in team.schedule],
    }


def _window(window: core.Window) -> dict[str, Any]:
    names = tuple(DAYS[day] for day in window.days)
    return {
        "name": window.name,
        "days": next((word for word, days in DAY_SETS.items() if days == names), list(names)),
        "from": time_text(window.from_minute),
        "to": time_text(window.to_minute),
        "bounds": _bounds(window.floor, window.ceiling),
    }


def _bounds(floor: Amount | None, ceiling: Amount | None) -> dict[str, Any]:
    return {name: _amount(amount) for name, amount in _given(floor=floor, ceiling=ceiling).items()}


def _amount(amount: Amount) -> int | str:
    if amount.ppm is not None:
        return _percent(amount.ppm)
    gpus, rest = divmod(amount.milli_gpus or 0, MILLI)
    if rest:
        raise ValueError(f"bounds are whole GPUs, not {amount.milli_gpus} milli-GPUs")
    return gpus


def _percent(ppm: int) -> str:
    if ppm % 10:
        raise ValueError(f"percentages have three decimals at most, which {ppm} millionths do not fit")
    return f"{Amount(ppm=ppm)}"


def _lending(lending: core.Lending) -> dict[str, Any]:
    fixed = ("hold_freed_s", "min_between_evictions_s", "blast_radius_permille")
    if any(getattr(lending, name) != getattr(core.Lending(), name) for name in fixed):
        raise ValueError(f"a policy file cannot set {', '.join(fixed)}")
    return {
        "enabled": lending.enabled,
        "notice": duration_text(lending.notice_s),
        "reclaim": [kind.value for kind in lending.reclaim],
        "forecastAware": lending.forecast_aware,
    }


def _enforcement(enforcement: core.Enforcement) -> dict[str, Any]:
    return {enforcement.mechanism: _given(cohort=enforcement.cohort or None)}


def _guards(guards: core.Guards) -> dict[str, Any]:
    cpu, idle = guards.cpu_only_pods, guards.idle_gpus
    fractions = [
        {"team": rule.team, "max": _percent(rule.max_ppm), "action": rule.action.value} for rule in guards.gpu_fraction
    ]
    return _given(cpuOnlyPods=cpu and _cpu_only(cpu), idleGpus=idle and _idle(idle), gpuFraction=fractions or None)


def _cpu_only(rule: core.CpuOnlyPods) -> dict[str, Any]:
    return {
        "on": "gpu-nodes",
        "allow": _percent(rule.allow_ppm),
        "action": rule.action.value,
        "grace": duration_text(rule.grace_s),
        "exemptNamespaces": list(rule.exempt_namespaces),
    }


def _idle(rule: core.IdleGpus) -> dict[str, Any]:
    return {"below": _percent(rule.below_ppm), "for": duration_text(rule.for_s), "action": rule.action.value}


def _sharing(sharing: core.Sharing) -> dict[str, Any]:
    return {"mig": "auto" if sharing.mig else "off", "timeSlicing": {"maxReplicas": sharing.max_replicas}}


def _learning(learning: core.Learning) -> dict[str, Any]:
    quantile = [learning.low_permille / 1000, learning.high_permille / 1000]
    return {
        "mode": learning.mode.value,
        "quantile": quantile,
        **_given(maxHeadroom=learning.max_headroom_gpus, patienceDays=learning.patience_days),
    }


def _route(route: core.AlertRoute) -> dict[str, Any]:
    return {**dict(route.settings), **_given(secretRef=route.secret_ref or None), "from": route.from_severity}
