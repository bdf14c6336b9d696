"""From a policy's text to the core's ``Policy``: every problem at once, with its field, value and what is allowed."""

from __future__ import annotations

from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from controller.core import policy as core
from controller.core.errors import InputError, Problem
from controller.core.policy import Policy
from controller.core.quantities import MILLI, PPM, trimmed
from controller.core.schedule import floor_conflicts, minute_text, week_bounds, week_edges
from controller.resources.schema import AlertsPart, BoundsPart, GPUPolicy, GuardsPart, PoolPart, SpecPart, TeamPart
from controller.resources.yaml_text import Lines, path_text, read_yaml

MOST_PROBLEMS = 50


def load_policy(path: Path) -> Policy:
    """Read a policy file."""
    return parse_policy(read_text(path), str(path))


def read_text(path: Path) -> str:
    """Read a UTF-8 text file, refusing what is not one with a clear line."""
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise InputError.one("(file)", "", f"cannot be read: {error.strerror}", source=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError.one("(file)", "not text", "a UTF-8 text file", source=str(path)) from error


def parse_policy(text: str, source: str = "policy") -> Policy:
    """Turn YAML into a policy that has passed every check, or raise ``InputError`` with all its problems."""
    value, lines = read_yaml(text, source)
    if not isinstance(value, dict):
        raise InputError.one(
            "(file)", type(value).__name__, "a mapping that begins with apiVersion and kind", source=source
        )
    try:
        document = GPUPolicy.model_validate(value)
    except ValidationError as error:
        problems = [_problem(detail, value, lines) for detail in error.errors()]
        raise InputError(_unique(problems)[:MOST_PROBLEMS], source=source) from None
    problems = _semantic(document.spec, lines)
    if problems:
        raise InputError(problems[:MOST_PROBLEMS], source=source)
    policy = _core(document)
    problems = _over_the_week(policy, document.spec, lines)
    if problems:
        raise InputError(problems[:MOST_PROBLEMS], source=source)
    return policy


def _unique(problems: list[Problem]) -> list[Problem]:
    """One problem a field: alternatives of a union each complain about the same value."""
    by_path: dict[str, Problem] = {}
    for problem in problems:
        by_path.setdefault(problem.path, problem)
    return list(by_path.values())


def _at(path: tuple[str | int, ...], lines: Lines) -> str:
    known = path
    while known and known not in lines:
        known = known[:-1]
    line = f" (line {lines[known]})" if known in lines else ""
    return f"{path_text(path)}{line}"


def _problem(detail: ErrorDetails, document: Any, lines: Lines) -> Problem:
    path = tuple(part for part in detail["loc"] if not (isinstance(part, str) and part.endswith("Part")))
    path = tuple(part for part in path if part not in ("list[GpuFractionPart]",))
    where = _at(path, lines)
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        known = _fields_at(path[:-1])
        near = get_close_matches(str(path[-1]), known, 1)
        hint = f"no such field; did you mean {near[0]}?" if near else f"no such field; known are {', '.join(known)}"
        return Problem(where, _shown(detail["input"]), hint)
    if kind == "missing":
        return Problem(where, "missing", "required")
    return Problem(where, _shown(detail["input"]), _allowed(kind, context, detail["msg"], path))


def _allowed(kind: str, context: dict[str, Any], message: str, path: tuple[str | int, ...]) -> str:
    if kind == "tidegate":
        return str(context["allowed"])
    if kind == "literal_error":
        return f"one of {context['expected'].replace(chr(39), '')}"
    if kind == "string_pattern_mismatch":
        if path and path[-1] == "url":
            return "a URL that begins with http:// or https://"
        return "a name of lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
    return message[0].lower() + message[1:].replace("Input should", "should")


def _shown(value: Any) -> str:
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _fields_at(path: tuple[str | int, ...]) -> list[str]:
    """The field names that the schema knows at a path."""
    model: Any = GPUPolicy
    for part in path:
        if isinstance(part, int):
            continue
        field = next((f for name, f in model.model_fields.items() if (f.alias or name) == part), None)
        nested = _model_in(field.annotation) if field else None
        if nested is None:
            return []
        model = nested
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> Any:
    if hasattr(annotation, "model_fields"):
        return annotation
    return next((m for arg in getattr(annotation, "__args__", ()) if (m := _model_in(arg)) is not None), None)


def _semantic(spec: SpecPart, lines: Lines) -> list[Problem]:
    """What needs more than one field."""
    problems = [*_zone(spec, lines), *_names(spec, lines), *_pools(spec, lines), *_teams(spec, lines)]
    low, high = spec.learning.quantile
    if low > high:
        problems.append(Problem(_at(("spec", "learning", "quantile"), lines), f"{low}, {high}", "the lower one first"))
    teams = {team.name for team in spec.teams}
    for i, rule in enumerate(_fractions(spec.guards)):
        if rule.team not in teams:
            where = _at(("spec", "guards", "gpuFraction", i, "team"), lines)
            problems.append(Problem(where, rule.team, f"a team of this policy: {', '.join(sorted(teams))}"))
    chosen = [name for name in ("kueue", "resource_quota", "none") if getattr(spec.enforcement, name) is not None]
    if len(chosen) > 1:
        problems.append(
            Problem(_at(("spec", "enforcement"), lines), ", ".join(chosen), "only one of kueue, resourceQuota, none")
        )
    return problems


def _zone(spec: SpecPart, lines: Lines) -> list[Problem]:
    try:
        ZoneInfo(spec.timezone)
    except (KeyError, ValueError, OSError):
        near = get_close_matches(spec.timezone, available_timezones(), 1, 0.6)
        hint = f"; did you mean {near[0]}?" if near else ""
        return [Problem(_at(("spec", "timezone"), lines), spec.timezone, f"an IANA zone such as Europe/Berlin{hint}")]
    return []


def _names(spec: SpecPart, lines: Lines) -> list[Problem]:
    problems = []
    for kind, names in (("pools", [p.name for p in spec.pools]), ("teams", [t.name for t in spec.teams])):
        for i, name in enumerate(names):
            if names.index(name) != i:
                where = _at(("spec", kind, i, "name"), lines)
                problems.append(Problem(where, name, f"each name once; {kind}[{names.index(name)}] has it"))
    owners: dict[str, str] = {}
    for i, team in enumerate(spec.teams):
        for k, namespace in enumerate(team.namespaces):
            if owners.setdefault(namespace, team.name) != team.name:
                where = _at(("spec", "teams", i, "namespaces", k), lines)
                problems.append(Problem(where, namespace, f"one team a namespace; {owners[namespace]} has it"))
    return problems


def _pools(spec: SpecPart, lines: Lines) -> list[Problem]:
    problems = []
    for i, pool in enumerate(spec.pools):
        base: tuple[str | int, ...] = ("spec", "pools", i)
        if pool.capacity.min > pool.capacity.max:
            where = _at((*base, "capacity", "min"), lines)
            problems.append(
                Problem(where, str(pool.capacity.min), f"at most capacity.max, which is {pool.capacity.max}")
            )
        if pool.capacity.max < pool.gpus_per_node:
            where = _at((*base, "capacity", "max"), lines)
            problems.append(Problem(where, str(pool.capacity.max), f"at least one node of {pool.gpus_per_node} GPUs"))
        if len(_provisioners(pool)) != 1:
            where = _at((*base, "provisioner"), lines)
            allowed = "exactly one of capacityBuffer, karpenterStatic, eks, gke, aks, none"
            problems.append(Problem(where, ", ".join(_provisioners(pool)) or "nothing", allowed))
    return problems


def _provisioners(pool: PoolPart) -> list[str]:
    return list(pool.provisioner.model_dump(by_alias=True, exclude_none=True))


def _teams(spec: SpecPart, lines: Lines) -> list[Problem]:
    problems = []
    pools = {pool.name: pool for pool in spec.pools}
    for i, team in enumerate(spec.teams):
        for k, name in enumerate(team.pools):
            if name not in pools:
                where = _at(("spec", "teams", i, "pools", k), lines)
                problems.append(Problem(where, name, f"a pool of this policy: {', '.join(sorted(pools))}"))
        names = [window.name for window in team.schedule]
        for k, window in enumerate(team.schedule):
            base: tuple[str | int, ...] = ("spec", "teams", i, "schedule", k)
            if names.index(window.name) != k:
                problems.append(Problem(_at((*base, "name"), lines), window.name, "each window's name once in a team"))
            if window.bounds == BoundsPart():
                problems.append(Problem(_at((*base, "bounds"), lines), "empty", "a floor, a ceiling or both"))
    return problems


def _over_the_week(policy: Policy, spec: SpecPart, lines: Lines) -> list[Problem]:
    """Floors that do not fit together, or lie above their own ceiling, at any minute of the week."""
    problems = []
    for conflict in floor_conflicts(policy):
        allowed = f"floors of a pool sum to at most 100 % at every minute; lower {' or '.join(conflict.teams)}"
        index = [pool.name for pool in spec.pools].index(conflict.pool)
        where = f"{_at(('spec', 'pools', index), lines)} on {conflict.when}"
        problems.append(Problem(where, f"floors sum to {_percent(conflict.sum_ppm)}", allowed))
    for i, part in enumerate(spec.teams):
        problems += _crossed(policy, part, i, lines)
    return problems


def _crossed(policy: Policy, part: TeamPart, index: int, lines: Lines) -> list[Problem]:
    team = next(team for team in policy.teams if team.name == part.name)
    pools = [pool for pool in policy.pools if team.in_pool(pool.name)]
    for minute in week_edges((team,)):
        bounds = week_bounds(team, minute)
        for pool in pools:
            most = pool.limits.max_gpus * MILLI
            if bounds.floor.exact(most) > bounds.ceiling.exact(most):
                where = f"{_at(('spec', 'teams', index), lines)} on {minute_text(minute)}"
                allowed = (
                    f"a floor at or below the ceiling of {bounds.ceiling} ({bounds.ceiling_from}) in pool {pool.name}"
                )
                return [Problem(where, f"floor {bounds.floor} ({bounds.floor_from})", allowed)]
    return []


def _percent(ppm: int) -> str:
    return f"{trimmed(Fraction(ppm, PPM // 100))} %"


def _core(document: GPUPolicy) -> Policy:
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
            core.LearningMode(spec.learning.mode), round(low * 1000), round(high * 1000), spec.learning.max_headroom
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
    return core.Pool(part.name, selector, limits, _provisioners(part)[0], part.wait_weight, part.gpus_per_node)


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


def _fractions(part: GuardsPart) -> list[Any]:
    found = part.gpu_fraction
    return found if isinstance(found, list) else [found] if found else []


def _core_guards(part: GuardsPart) -> core.Guards:
    cpu, idle = part.cpu_only_pods, part.idle_gpus
    return core.Guards(
        cpu_only_pods=core.CpuOnlyPods(cpu.allow, core.GuardAction(cpu.action), cpu.grace, tuple(cpu.exempt_namespaces))
        if cpu
        else None,
        idle_gpus=core.IdleGpus(idle.below, idle.for_, core.GuardAction(idle.action)) if idle else None,
        gpu_fraction=tuple(core.GpuFraction(r.team, r.max, core.GuardAction(r.action)) for r in _fractions(part)),
    )


def _core_alerts(part: AlertsPart) -> tuple[core.AlertRoute, ...]:
    routes = []
    for channel in ("alertmanager", "pagerduty", "slack", "webhook"):
        route = getattr(part, channel)
        if route is not None:
            settings = tuple((key, value) for key in ("channel", "url") if (value := getattr(route, key, None)))
            routes.append(core.AlertRoute(channel, route.secret_ref or "", route.from_, settings))
    return tuple(routes)
