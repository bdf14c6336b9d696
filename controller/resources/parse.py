"""From a policy's text to the core's ``Policy``: every problem at once, with its field, value and what is allowed."""

from __future__ import annotations

from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from pydantic import ValidationError

from controller.core.errors import InputError, Problem
from controller.core.policy import Policy
from controller.core.quantities import MILLI, PPM, trimmed
from controller.core.schedule import floor_conflicts, minute_text, week_bounds, week_edges
from controller.resources.doubts import doubts
from controller.resources.problems import at, problem_of, shown, unique
from controller.resources.resolve import provisioners, resolve
from controller.resources.schema import BoundsPart, GPUPolicy, SpecPart, TeamPart
from controller.resources.yaml_text import MOST_BYTES, Lines, read_yaml

MOST_PROBLEMS = 50


def load_policy(path: Path) -> Policy:
    """Read a policy file."""
    return parse_policy(read_text(path), str(path))


def read_text(path: Path) -> str:
    """Read a UTF-8 text file, refusing what is not one with a clear line."""
    try:
        with path.open("rb") as file:
            # One byte more than is allowed, so that a huge file is refused without being held.
            return file.read(4 * MOST_BYTES + 1).decode("utf-8-sig")
    except OSError as error:
        raise InputError.one("(file)", "", f"cannot be read: {error.strerror}", source=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError.one("(file)", "not text", "a UTF-8 text file", source=str(path)) from error


def parse_policy(text: str, source: str = "policy") -> Policy:
    """Turn YAML into a policy that has passed every check, or raise ``InputError`` with all its problems."""
    return _checked(text, source)[0]


def review_policy(text: str, source: str = "policy") -> tuple[Policy, tuple[Problem, ...]]:
    """Like ``parse_policy``, with what the policy may say and its author has perhaps not meant."""
    policy, spec, lines = _checked(text, source)
    return policy, doubts(policy, spec, lines)


def _checked(text: str, source: str) -> tuple[Policy, SpecPart, Lines]:
    value, lines = read_yaml(text, source)
    if not isinstance(value, dict):
        raise InputError.one("(file)", shown(value), "a mapping that begins with apiVersion and kind", source=source)
    problems = _blanks(value.get("spec"), ("spec",), lines)
    try:
        document = GPUPolicy.model_validate(value)
    except ValidationError as error:
        problems += [problem_of(detail, lines) for detail in error.errors()]
        raise InputError(unique(problems)[:MOST_PROBLEMS], source=source) from None
    problems = problems or _semantic(document.spec, lines)
    if problems:
        raise InputError(problems[:MOST_PROBLEMS], source=source)
    policy = resolve(document)
    problems = _over_the_week(policy, document.spec, lines)
    if problems:
        raise InputError(problems[:MOST_PROBLEMS], source=source)
    return policy, document.spec, lines


def _blanks(value: Any, path: tuple[str | int, ...], lines: Lines) -> list[Problem]:
    """Keys without a value: more likely forgotten than meant, and never the same as what was meant."""
    if value is None:
        return [Problem(at(path, lines), "no value", "a value, or leave the field out")]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [problem for key, item in items for problem in _blanks(item, (*path, key), lines)]


def _semantic(spec: SpecPart, lines: Lines) -> list[Problem]:
    """What needs more than one field."""
    problems = [*_zone(spec, lines), *_names(spec, lines), *_pools(spec, lines), *_teams(spec, lines)]
    low, high = spec.learning.quantile
    if low > high:
        problems.append(Problem(at(("spec", "learning", "quantile"), lines), f"{low}, {high}", "the lower one first"))
    chosen = [name for name in ("kueue", "resource_quota", "none") if getattr(spec.enforcement, name) is not None]
    if len(chosen) > 1:
        problems.append(
            Problem(at(("spec", "enforcement"), lines), ", ".join(chosen), "only one of kueue, resourceQuota, none")
        )
    return problems


def _zone(spec: SpecPart, lines: Lines) -> list[Problem]:
    try:
        ZoneInfo(spec.timezone)
    except (KeyError, ValueError, OSError):
        near = get_close_matches(spec.timezone, available_timezones(), 1, 0.6)
        hint = f"; did you mean {near[0]}?" if near else ""
        return [Problem(at(("spec", "timezone"), lines), spec.timezone, f"an IANA zone such as Europe/Berlin{hint}")]
    return []


def _names(spec: SpecPart, lines: Lines) -> list[Problem]:
    problems = []
    for kind, names in (("pools", [p.name for p in spec.pools]), ("teams", [t.name for t in spec.teams])):
        for i, name in enumerate(names):
            if names.index(name) != i:
                where = at(("spec", kind, i, "name"), lines)
                problems.append(Problem(where, name, f"each name once; {kind}[{names.index(name)}] has it"))
    owners: dict[str, str] = {}
    for i, team in enumerate(spec.teams):
        for k, namespace in enumerate(team.namespaces):
            if owners.setdefault(namespace, team.name) != team.name:
                where = at(("spec", "teams", i, "namespaces", k), lines)
                problems.append(Problem(where, namespace, f"one team a namespace; {owners[namespace]} has it"))
    return problems


def _pools(spec: SpecPart, lines: Lines) -> list[Problem]:
    problems = []
    for i, pool in enumerate(spec.pools):
        base: tuple[str | int, ...] = ("spec", "pools", i)
        if pool.capacity.min > pool.capacity.max:
            where = at((*base, "capacity", "min"), lines)
            problems.append(
                Problem(where, str(pool.capacity.min), f"at most capacity.max, which is {pool.capacity.max}")
            )
        if pool.capacity.max < pool.gpus_per_node:
            where = at((*base, "capacity", "max"), lines)
            problems.append(Problem(where, str(pool.capacity.max), f"at least one node of {pool.gpus_per_node} GPUs"))
        if len(provisioners(pool)) != 1:
            where = at((*base, "provisioner"), lines)
            allowed = "exactly one of capacityBuffer, karpenterStatic, eks, gke, aks, none"
            problems.append(Problem(where, ", ".join(provisioners(pool)) or "nothing", allowed))
    return problems + _overlaps(spec, lines)


def _overlaps(spec: SpecPart, lines: Lines) -> list[Problem]:
    """Pools that would claim each other's nodes: all labels of one are among those of the other."""
    problems = []
    for i, pool in enumerate(spec.pools):
        for other in spec.pools[:i]:
            mine, theirs = pool.nodes.selector.items(), other.nodes.selector.items()
            if mine <= theirs or theirs <= mine:
                where = at(("spec", "pools", i, "nodes", "selector"), lines)
                said = ", ".join(f"{key}: {value}" for key, value in sorted(mine))
                problems.append(Problem(where, shown(said), f"labels that leave out the nodes of pool {other.name}"))
    return problems


def _teams(spec: SpecPart, lines: Lines) -> list[Problem]:
    problems = []
    pools = {pool.name: pool for pool in spec.pools}
    for i, team in enumerate(spec.teams):
        for k, name in enumerate(team.pools):
            if name not in pools:
                where = at(("spec", "teams", i, "pools", k), lines)
                problems.append(Problem(where, name, f"a pool of this policy: {', '.join(sorted(pools))}"))
        names = [window.name for window in team.schedule]
        for k, window in enumerate(team.schedule):
            base: tuple[str | int, ...] = ("spec", "teams", i, "schedule", k)
            if names.index(window.name) != k:
                problems.append(Problem(at((*base, "name"), lines), window.name, "each window's name once in a team"))
            if window.bounds == BoundsPart():
                problems.append(Problem(at((*base, "bounds"), lines), "empty", "a floor, a ceiling or both"))
    return problems


def _over_the_week(policy: Policy, spec: SpecPart, lines: Lines) -> list[Problem]:
    """Floors that do not fit together, or lie above their own ceiling, at any minute of the week."""
    problems = []
    alike: dict[tuple[str, tuple[str, ...], int], list[str]] = {}
    for conflict in floor_conflicts(policy):
        alike.setdefault((conflict.pool, conflict.teams, conflict.sum_ppm), []).append(conflict.when)
    for (pool, teams, sum_ppm), times in alike.items():
        allowed = f"floors of a pool sum to at most 100 % at every minute; lower {' or '.join(teams)}"
        index = [part.name for part in spec.pools].index(pool)
        more = f" and {len(times) - 3} more" if len(times) > 3 else ""
        where = f"{at(('spec', 'pools', index), lines)} on {', '.join(times[:3])}{more}"
        problems.append(Problem(where, f"floors sum to {_percent(sum_ppm)}", allowed))
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
                where = f"{at(('spec', 'teams', index), lines)} on {minute_text(minute)}"
                allowed = (
                    f"a floor at or below the ceiling of {bounds.ceiling} ({bounds.ceiling_from}) in pool {pool.name}"
                )
                return [Problem(where, f"floor {bounds.floor} ({bounds.floor_from})", allowed)]
    return []


def _percent(ppm: int) -> str:
    return f"{trimmed(Fraction(ppm, PPM // 100))} %"
