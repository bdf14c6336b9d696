"""``tidegate policy``: check a policy, see what it means at a moment, begin with a template."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from controller.cli.output import write_json
from controller.core.errors import InputError

if TYPE_CHECKING:
    from controller.core.policy import Policy

app = typer.Typer(help="Check, explain and begin policies.", no_args_is_help=True, rich_markup_mode="rich")
TEMPLATES = ("production", "development", "research-lab", "single-team")
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


@app.command()
def check(file: Annotated[Path, typer.Argument(help="A policy file.")], as_json: Json = False) -> None:
    """Check a policy. Exit code 0: it is fine. 2: one line for each problem, with field, value and what is allowed.

    Example: tidegate policy check production.yaml
    """
    from controller.resources.parse import load_policy

    try:
        policy = load_policy(file)
    except InputError as error:
        if not as_json:
            raise
        problems = [{"path": p.path, "value": p.value, "allowed": p.allowed} for p in error.problems]
        write_json({"file": str(file), "ok": False, "problems": problems})
        raise typer.Exit(2) from None
    if as_json:
        write_json({"file": str(file), "ok": True, "problems": []})
        return
    teams, pools = (", ".join(item.name for item in items) for items in (policy.teams, policy.pools))
    typer.echo(f"{file}: fine. {policy.name}: mode {policy.mode.value}; pools {pools}; teams {teams}.")


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
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from controller.core.schedule import instant

    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise InputError.one("--at", text, "an ISO time such as 2026-03-29T02:30, or with an offset") from None
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


def template_text(name: str) -> str:
    """A template's text."""
    from importlib.resources import files

    if name not in TEMPLATES:
        raise InputError.one("--template", name, f"one of {', '.join(TEMPLATES)}")
    return (files("controller.resources") / "templates" / f"{name}.yaml").read_text("utf-8")
