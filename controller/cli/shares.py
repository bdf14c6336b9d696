"""``tidegate shares``: what dividing a fixed fleet is worth on a trace, beside partitions, quotas and a bound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from controller.cli.output import progress, write_json

if TYPE_CHECKING:
    from controller.backtest.shares import Outcome

ROWS = (
    ("wait GPU-h", "wait_gpu_h", "{:,.1f}"),
    ("avoidable wait removed", "avoidable_wait_removed", "{:.1%}"),
    ("evictions", "evictions", "{:,}"),
    ("lost GPU-h", "lost_gpu_h", "{:,.1f}"),
    ("min below floor", "below_floor_min", "{:,}"),
    ("min above ceiling", "above_ceiling_min", "{:,}"),
    ("Jain index", "jain", "{:.4f}"),
    ("worst team's wait share", "worst_team_wait_share", "{:.1%}"),
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("shares")(shares)


def shares(
    trace: Annotated[str, typer.Option(help="A trace folder with nodes.csv (or a file in it), or builtin:demo.")],
    policy: Annotated[Path | None, typer.Option(help="Default: the partitions of nodes.csv as floors.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare four ways of sharing a fixed fleet: partitions, quotas with borrowing, tidegate, one pool for all.

    Examples:

      tidegate shares --trace shared/traces/helios_earth

      tidegate shares --trace shared/traces/helios_venus_2vc --policy policy.yaml --json
    """
    from dataclasses import asdict

    from controller.backtest.scene import load_scene
    from controller.backtest.shares import compare_scene
    from controller.backtest.traces import trace_folder
    from controller.resources.parse import load_policy

    scene = load_scene(trace_folder(trace), load_policy(policy) if policy else None)
    if scene.left_out:
        names = ", ".join(scene.left_out)
        typer.echo(f"left out, having no partition or no team of the policy: {names}", err=True)
    with progress("shares") as tell:
        found = compare_scene(scene, tell)
    if as_json:
        write_json({"policies": {name: asdict(outcome) for name, outcome in found.items()}})
    else:
        _table(found)


def _table(found: dict[str, Outcome]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    table.add_column("")
    for name in found:
        table.add_column(name, justify="right")
    for title, field, form in ROWS:
        values = [getattr(outcome, field) for outcome in found.values()]
        table.add_row(title, *("–" if value is None else form.format(value) for value in values))
    Console().print(table)
