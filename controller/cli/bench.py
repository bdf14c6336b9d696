"""``tidegate bench``: what a policy would have cost on a trace, beside its baselines and the optimum."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from controller.cli.output import progress, write_json
from controller.cli.values import seconds
from controller.core.errors import InputError


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("bench")(bench)


def bench(
    trace: Annotated[str, typer.Option(help="A trace folder, a file in one, or builtin:demo.")],
    lead: Annotated[str, typer.Option(help="Time from asking for a node to a pod on it.")] = "15m",
    wait_weight: Annotated[float, typer.Option(min=0, help="Idle GPU-hours that one waiting GPU-hour is worth.")] = 9,
    gpus_per_node: Annotated[int, typer.Option(min=1, help="GPUs of a node.")] = 8,
    team: Annotated[list[str] | None, typer.Option(help="Only teams that match this glob; may be repeated.")] = None,
    scale: Annotated[float | None, typer.Option(help="Rescale to this mean of GPUs in the training part.")] = None,
    train: Annotated[float, typer.Option(help="Share to learn from; judge_from_s of trace.json wins over it.")] = 0.62,
    view: Annotated[str | None, typer.Option(help="jobs (default where there are any) or demand.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Replay a trace under every policy and print costs, queueing and the part of the gap that was closed.

    The gap lies between the tuned rule and a clairvoyant optimum. Losses are printed like wins.

    Examples:

      tidegate bench --trace builtin:demo --lead 15m

      tidegate bench --trace traces/azure_llm_2024 --team azure-code --lead 30m --json
    """
    from controller.backtest.run import bench as run
    from controller.backtest.traces import load_trace
    from controller.learning.fleet import Terms

    lead_s = seconds(lead, "--lead", least=1)
    if scale is not None and view != "demand" and load_trace(trace, teams=team or ()).has_jobs:
        raise InputError.one("--scale", scale, "a demand view (jobs cannot be scaled): add --view demand")
    loaded = load_trace(trace, teams=team or (), train=train, scale=scale)
    if not wait_weight < float("inf"):
        raise InputError.one("--wait-weight", wait_weight, "a number, 0 or more")
    terms = Terms(gpus_per_node, lead_s, wait_weight, loaded.panel.step_s)
    with progress(f"bench {loaded.name}") as tell:
        report = run(loaded, terms, view, tell)
    if json:
        write_json(report.plain())
    else:
        _table(report)


def _table(report: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"{report.trace} · {report.view} view · lead {report.terms.lead_s / 60:g} min"
        f" · w {report.terms.wait_weight:g}",
        caption="GPU-hours of the judged part. Gap closed: 0 % is the tuned rule, 100 % the clairvoyant optimum.",
    )
    table.add_column("policy", no_wrap=True)
    for title in ("provisioned", "idle", "waiting", "boot", "churn", "cost", "queue p95", "nodes added", "gap closed"):
        table.add_column(title, justify="right")
    for name, row in report.rows.items():
        hours = (row.provisioned_gpu_h, row.idle_gpu_h, row.wait_gpu_h, row.boot_gpu_h, row.churn_gpu_h, row.cost)
        queue = "–" if row.queue_p95_s is None else f"{row.queue_p95_s:,.0f} s"
        table.add_row(name, *(f"{value:,.0f}" for value in hours), queue, f"{row.node_adds:,}", _gap(row))
    wide = Console()
    # Piped, rich would squeeze the table into 80 columns and cut the policies' names.
    (wide if wide.is_terminal else Console(width=130)).print(table)


def _gap(row: Any) -> str:
    if row.gap_closed is None:
        return "–"
    interval = f" [{row.gap_ci[0]:+.0%}, {row.gap_ci[1]:+.0%}]" if row.gap_ci else ""
    return f"{row.gap_closed:+.1%}{interval}"
