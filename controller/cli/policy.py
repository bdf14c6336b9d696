"""``tidegate policy``: check a policy, see what it means at a moment, begin with a template."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from controller.cli.output import write_json
from controller.cli.values import iso_time
from controller.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controller.core.errors import Problem
    from controller.core.policy import Policy, Team

app = typer.Typer(help="Check, explain and begin policies.", no_args_is_help=True, rich_markup_mode="rich")
TEMPLATES = ("production", "development", "research-lab", "single-team")
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


@app.command()
def check(file: Annotated[Path, typer.Argument(help="A policy file.")], as_json: Json = False) -> None:
    """Check a policy. Exit code 0: it is fine. 2: one line for each problem, with field, value and what is allowed.

    Warnings are of policies that are fine and perhaps not meant; they never change the exit code.

    Example: tidegate policy check production.yaml
    """
    from controller.resources.parse import read_text, review_policy

    try:
        policy, doubts = review_policy(read_text(file), str(file))
    except InputError as error:
        if not as_json:
            raise
        write_json({"file": str(file), "ok": False, "problems": _listed(error.problems), "warnings": []})
        raise typer.Exit(2) from None
    if as_json:
        write_json({"file": str(file), "ok": True, "problems": [], "warnings": _listed(doubts)})
        return
    for doubt in doubts:
        typer.echo(f"{file}: warning: {doubt}", err=True)
    teams, pools = (", ".join(item.name for item in items) for items in (policy.teams, policy.pools))
    typer.echo(f"{file}: fine. {policy.name}: mode {policy.mode.value}; pools {pools}; teams {teams}.")


def _listed(problems: Iterable[Problem]) -> list[dict[str, str]]:
    return [{"path": p.path, "value": p.value, "allowed": p.allowed} for p in problems]


@app.command()
def show(file: Annotated[Path, typer.Argument(help="A policy file.")], as_json: Json = False) -> None:
    """Write a policy out as tidegate understands it: every default spelled out, a policy file again.

    With --json it is the core's policy, the form that decisions are recorded with.

    Example: tidegate policy show production.yaml
    """
    from controller.core.canonical import canonical_bytes
    from controller.resources.parse import load_policy
    from controller.resources.policy_text import policy_text

    policy = load_policy(file)
    typer.echo(canonical_bytes(policy).decode() if as_json else policy_text(policy), nl=as_json)


@app.command()
def explain(
    file: Annotated[Path, typer.Argument(help="A policy file.")],
    at: Annotated[str, typer.Option("--at", help="Local time in the policy's zone, or with an offset (…Z, …+02:00).")],
    as_json: Json = False,
) -> None:
    """Say which bounds hold at a moment, from which window, in percent and in GPUs, and when they next change.

    Example: tidegate policy explain production.yaml --at 2026-03-29T02:30
    """
    from controller.resources.parse import load_policy

    policy = load_policy(file)
    at_s, remark = moment(at, policy.timezone)
    document = _explained(policy, at_s, remark)
    if as_json:
        write_json(document)
    else:
        _print(document)


def moment(text: str, timezone: str) -> tuple[int, str]:
    """An instant from ISO text; without an offset it is local. Says so where local time was skipped or came twice."""
    from zoneinfo import ZoneInfo

    from controller.core.schedule import instant

    given = iso_time(text, "--at", "2026-03-29T02:30, or with an offset")
    if given.tzinfo is not None:
        return int(given.timestamp()), ""
    at_s = instant(given.date(), given.hour * 60 + given.minute, timezone) + given.second
    local = datetime.fromtimestamp(at_s, ZoneInfo(timezone))
    if local.replace(tzinfo=None) != given:
        return at_s - given.second, _remark(text, timezone, at_s, "does not exist", "forward; meant is")
    if local.replace(fold=1).utcoffset() != local.utcoffset():
        return at_s, _remark(text, timezone, at_s, "comes twice", "back; meant is the first,")
    return at_s, ""


def _remark(text: str, timezone: str, at_s: int, what: str, how: str) -> str:
    from controller.core.schedule import local_text

    return f"{text} {what} in {timezone}, where clocks go {how} {local_text(at_s, timezone)}"


def _explained(policy: Policy, at_s: int, remark: str) -> dict[str, Any]:
    from controller.core.quantities import MILLI
    from controller.core.schedule import bounds_at, limits_in_force, local_text, next_change, utc_text

    pools = []
    for pool in policy.pools:
        limits = {limit.team: limit for limit in limits_in_force(policy, pool, pool.limits.max_gpus * MILLI, at_s)}
        teams = []
        for team in policy.teams:
            if team.name in limits:
                bounds = bounds_at(team, policy.timezone, at_s)
                teams.append(
                    {
                        "team": team.name,
                        "floor": str(bounds.floor),
                        "floor_gpus": limits[team.name].floor // MILLI,
                        "floor_from": bounds.floor_from,
                        "ceiling": str(bounds.ceiling),
                        "ceiling_gpus": limits[team.name].ceiling // MILLI,
                        "ceiling_from": bounds.ceiling_from,
                    }
                )
        pools.append({"pool": pool.name, "of_gpus": pool.limits.max_gpus, "teams": teams})
    change = next_change(policy, at_s)
    return {
        "policy": policy.name,
        "at": utc_text(at_s),
        "local": local_text(at_s, policy.timezone),
        "remark": remark,
        "pools": pools,
        "next_change": utc_text(change) if change else None,
        "next_change_local": local_text(change, policy.timezone) if change else None,
    }


def _print(document: dict[str, Any]) -> None:
    typer.echo(f"{document['policy']} at {document['local']} ({document['at']})")
    if document["remark"]:
        typer.echo(document["remark"])
    for pool in document["pools"]:
        typer.echo(f"pool {pool['pool']}, bounds of {pool['of_gpus']} GPUs:")
        for team in pool["teams"]:
            typer.echo(f"  {team['team']}: floor {_bound(team, 'floor')}, ceiling {_bound(team, 'ceiling')}")
    change = document["next_change_local"]
    typer.echo(f"next change: {change}" if change else "these bounds never change")


def _bound(team: dict[str, Any], kind: str) -> str:
    origin = team[f"{kind}_from"]
    why = "the team's base bounds" if origin == "base" else f"window {origin}"
    return f"{team[kind]} = {team[f'{kind}_gpus']} GPUs ({why})"


@app.command()
def init(
    template: Annotated[str, typer.Option(help=f"One of {', '.join(TEMPLATES)}.")] = "production",
    output: Annotated[Path | None, typer.Option(help="Write here instead of to standard output.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output.")] = False,
) -> None:
    """Begin with a policy that passes the check.

    Example: tidegate policy init --template research-lab --output lab.yaml
    """
    text = template_text(template)
    if output is None:
        typer.echo(text, nl=False)
        return
    if output.exists() and not force:
        raise InputError.one("--output", output, "a file that does not exist yet, or --force to overwrite it")
    try:
        output.write_text(text, "utf-8")
    except OSError as error:
        raise InputError.one("--output", output, f"a file that can be written ({error.strerror})") from error
    typer.echo(f"wrote {output}; edit it, then: tidegate policy check {output}")


@app.command()
def schema() -> None:
    """Print the JSON schema of a policy, for editors that complete and check while one types.

    Example: tidegate policy schema > gpupolicy.schema.json
    """
    from controller.resources.json_schema import json_schema

    write_json(json_schema())


@app.command()
def week(
    file: Annotated[Path, typer.Argument(help="A policy file.")],
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    as_json: Json = False,
) -> None:
    """Show the bounds of every team over the week, from change to change, and which window each comes from.

    Times are local (clock changes aside: `tidegate policy explain --at` knows them).

    Example: tidegate policy week production.yaml --team inference
    """
    from controller.resources.parse import load_policy

    policy = load_policy(file)
    names = [each.name for each in policy.teams]
    if team is not None and team not in names:
        raise InputError.one("--team", team, f"a team of this policy: {', '.join(names)}")
    rows = _week(policy, [each for each in policy.teams if team in (None, each.name)])
    if as_json:
        write_json({"policy": policy.name, "timezone": policy.timezone, "teams": rows})
        return
    _print_week(policy, rows)


def _week(policy: Policy, teams: list[Team]) -> list[dict[str, Any]]:
    from controller.core.schedule import MINUTES_A_WEEK, minute_text, week_bounds, week_edges

    rows: list[dict[str, Any]] = []
    for team in teams:
        spans: list[dict[str, Any]] = []
        for minute in week_edges((team,)):
            bounds = week_bounds(team, minute)
            held = {
                "floor": str(bounds.floor),
                "floor_from": bounds.floor_from,
                "ceiling": str(bounds.ceiling),
                "ceiling_from": bounds.ceiling_from,
            }
            if not spans or held != {key: spans[-1][key] for key in held}:
                spans.append({"from": minute_text(minute), "minute_of_week": minute, **held})
        for span, after in zip(spans, [*spans[1:], {"minute_of_week": MINUTES_A_WEEK}], strict=True):
            span["minutes"] = after["minute_of_week"] - span["minute_of_week"]
        rows.append({"team": team.name, "pools": list(team.pools) or [p.name for p in policy.pools], "spans": spans})
    return rows


def _print_week(policy: Policy, rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("team", "from", "hours", "floor", "ceiling", "window", title=f"{policy.name}, {policy.timezone}")
    for row in rows:
        for i, span in enumerate(row["spans"]):
            origins = [span["floor_from"], span["ceiling_from"]]
            window = origins[0] if origins[0] == origins[1] else f"floor {origins[0]}, ceiling {origins[1]}"
            hours = f"{span['minutes'] / 60:g}"
            table.add_row("" if i else row["team"], span["from"], hours, span["floor"], span["ceiling"], window)
        table.add_section()
    Console(width=None if sys.stdout.isatty() else 100).print(table)


def template_text(name: str) -> str:
    """A template's text."""
    from importlib.resources import files

    if name not in TEMPLATES:
        raise InputError.one("--template", name, f"one of {', '.join(TEMPLATES)}")
    return (files("controller.resources") / "templates" / f"{name}.yaml").read_text("utf-8")
