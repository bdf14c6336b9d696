"""What a policy may say and hardly anybody means: told by the check, never a reason to refuse.

Only what costs somebody GPUs or hours without being seen in the file; taste is left to its author.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from controller.core.errors import Problem
from controller.core.policy import Policy, Team
from controller.core.schedule import week_bounds, week_edges
from controller.resources.problems import at
from controller.resources.resolve import fractions
from controller.resources.schema import SpecPart, duration_text
from controller.resources.yaml_text import Lines


def doubts(policy: Policy, spec: SpecPart, lines: Lines) -> tuple[Problem, ...]:
    """Field, value and what to consider, in the order of the file; empty for most policies."""
    return (
        *_nodes_that_cannot_be(spec, lines),
        *_namespaces_of_another(policy, spec, lines),
        *_windows_without_effect(policy, spec, lines),
        *_lending(spec, lines),
        *_guards_of_nobody(spec, lines),
    )


def _nodes_that_cannot_be(spec: SpecPart, lines: Lines) -> Iterator[Problem]:
    for i, pool in enumerate(spec.pools):
        spare = pool.capacity.max % pool.gpus_per_node
        if spare:
            usable = pool.capacity.max - spare
            yield Problem(
                at(("spec", "pools", i, "capacity", "max"), lines),
                str(pool.capacity.max),
                f"whole nodes of {pool.gpus_per_node} GPUs make {usable}; percentages are of {pool.capacity.max}",
            )


def _namespaces_of_another(policy: Policy, spec: SpecPart, lines: Lines) -> Iterator[Problem]:
    """Patterns whose every namespace goes to a team that comes first by name."""
    for i, part in enumerate(spec.teams):
        before = [team for team in policy.teams if team.name < part.name]
        for k, pattern in enumerate(part.namespaces):
            if not any(sign in pattern for sign in "*?["):
                continue  # an exact name wins over a pattern
            examples = _examples(pattern)
            owner = next((team for team in before if _covers(team, examples)), None)
            if owner is not None:
                where = at(("spec", "teams", i, "namespaces", k), lines)
                said = f"{owner.name} has all of these: of overlapping patterns the first team by name wins"
                yield Problem(where, pattern, said)


def _examples(pattern: str) -> tuple[str, ...]:
    """A few namespaces that a pattern matches; brackets, which are rare, stand for themselves."""
    return tuple(pattern.replace("*", star).replace("?", one) for star in ("", "a", "zz-9") for one in ("b", "8"))


def _covers(team: Team, examples: tuple[str, ...]) -> bool:
    """Whether one pattern of the team matches all examples, and so most likely whatever they are examples of."""
    return any(all(fnmatchcase(example, wide) for example in examples) for wide in team.namespaces)


def _windows_without_effect(policy: Policy, spec: SpecPart, lines: Lines) -> Iterator[Problem]:
    teams = {team.name: team for team in policy.teams}
    for i, part in enumerate(spec.teams):
        team = teams[part.name]
        bounds = [week_bounds(team, minute) for minute in week_edges((team,))]
        seen = {name for b in bounds for name in (b.floor_from, b.ceiling_from)}
        for k, window in enumerate(part.schedule):
            if window.name not in seen:
                where = at(("spec", "teams", i, "schedule", k), lines)
                yield Problem(where, window.name, "never decides anything: later windows of the list always win")


def _lending(spec: SpecPart, lines: Lines) -> Iterator[Problem]:
    lending = spec.lending
    if not lending.enabled:
        return
    if not lending.reclaim:
        where = at(("spec", "lending", "reclaim"), lines)
        yield Problem(where, "[]", "what was lent comes back only when the borrower's work ends")
    elif lending.notice > spec.starvation.max_wait:
        wait = duration_text(spec.starvation.max_wait)
        said = f"longer than starvation.maxWait ({wait}): owners starve while a notice still runs"
        yield Problem(at(("spec", "lending", "notice"), lines), duration_text(lending.notice), said)


def _guards_of_nobody(spec: SpecPart, lines: Lines) -> Iterator[Problem]:
    """A guard of a team that is not there (yet) guards nobody: most often a misspelt name."""
    teams = {team.name for team in spec.teams}
    listed = isinstance(spec.guards.gpu_fraction, list)
    for i, guard in enumerate(fractions(spec.guards)):
        if guard.team not in teams:
            where = at(("spec", "guards", "gpuFraction", *((i,) if listed else ()), "team"), lines)
            yield Problem(
                where, guard.team, f"no team of this policy, so it guards nobody; teams are {', '.join(sorted(teams))}"
            )
