"""``tidegate bench``: what a policy would have cost on a trace, beside its baselines and the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from controller.cli.bench_suite import Means, Named, run_suite
from controller.cli.output import progress, write_json
from controller.cli.values import seconds
from controller.core.errors import InputError

TRAIN = 0.62
"""That of ``controller.backtest.traces``, which ``--help`` must not wait for; a test compares them."""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("bench")(bench)


def bench(
    trace: Annotated[
        list[str] | None,
        typer.Option(help="A trace folder, a file in one, or builtin:demo; with --suite it may be repeated."),
    ] = None,
    lead: Annotated[
        list[str] | None, typer.Option(help="Time from asking for a node to a pod on it; default 15m.")
    ] = None,
    wait_weight: Annotated[
        list[float] | None, typer.Option(min=0, help="Idle GPU-hours that one waiting GPU-hour is worth; default 9.")
    ] = None,
    gpus_per_node: Annotated[int, typer.Option(min=1, help="GPUs of a node.")] = 8,
    team: Annotated[list[str] | None, typer.Option(help="Only teams that match this glob; may be repeated.")] = None,
    scale: Annotated[float | None, typer.Option(help="Rescale to this mean of GPUs in the training part.")] = None,
    train: Annotated[float, typer.Option(help="Share to learn from; judge_from_s of trace.json wins over it.")] = TRAIN,
    view: Annotated[str | None, typer.Option(help="jobs (default where there are any) or demand.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
    suite: Annotated[
        bool, typer.Option("--suite", help="The whole table: traces, leads, wait weights, made demand, robustness.")
    ] = False,
    traces: Annotated[str | None, typer.Option(help="Suite: a folder of trace folders, all of them.")] = None,
    seeds: Annotated[int | None, typer.Option(min=0, help="Suite: how many seeds of made demand; default 10.")] = None,
    robustness: Annotated[bool, typer.Option(help="Suite: also what may happen after tuning.")] = True,
    quick: Annotated[bool, typer.Option("--quick", help="Suite: a small part of it, for CI.")] = False,
    out: Annotated[
        str | None, typer.Option(help="Suite: keep results and report.html here; a run cut short goes on from them.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Suite: processes; default one a core.")] = None,
    ray: Annotated[str | None, typer.Option(help="Suite: run on the Ray cluster at this address.")] = None,
    gpu_hour_price: Annotated[
        float, typer.Option(min=0, help="Suite: US dollars that one GPU-hour is taken to cost.")
    ] = 2.5,
) -> None:
    """Replay a trace under every policy and print costs, queueing and the part of the gap that was closed.

    The gap lies between the tuned rule and a clairvoyant optimum. Losses are printed like wins.

    Examples:

      tidegate bench --trace builtin:demo --lead 15m

      tidegate bench --trace traces/azure_llm_2024 --team azure-code --lead 30m --json

      tidegate bench --suite --traces traces --out results
    """
    leads_s = tuple(seconds(text, "--lead", least=1) for text in lead or ())
    weights = tuple(wait_weight or ())
    for weight in weights:
        if not weight < float("inf"):
            raise InputError.one("--wait-weight", weight, "a number, 0 or more")
    if suite:
        if scale is not None or train != TRAIN:
            raise InputError.one("--suite", "", "no --scale and no --train: traces as they are")
        sources = Named(tuple(trace or ()), traces, tuple(team or ()), seeds, quick)
        extent = (leads_s, weights, gpus_per_node, view, robustness)
        run_suite(sources, extent, Means(out, jobs, ray, gpu_hour_price), json=json)
        return
    _only_with_suite(traces, seeds, None if robustness else False, quick or None, out, jobs, ray)
    _one(trace, leads_s, weights, Chosen(gpus_per_node, tuple(team or ()), scale, train, view), json=json)


SUITE_ONLY = ("--traces", "--seeds", "--no-robustness", "--quick", "--out", "--jobs", "--ray")


def _only_with_suite(*given: object) -> None:
    for flag, value in zip(SUITE_ONLY, given, strict=True):
        if value is not None:
            raise InputError.one(flag, "", "an option of --suite: add --suite")


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is judged of a trace, and how."""

    gpus_per_node: int
    teams: tuple[str, ...]
    scale: float | None
    train: float
    view: str | None


def _single(flag: str, values: Sequence[Any], default: Any = None) -> Any:
    if len(values) > 1:
        raise InputError.one(flag, " ".join(map(str, values)), "one (more than one only with --suite)")
    if not values and default is None:
        raise InputError.one(flag, "", "needed: a trace folder, a file in one, or builtin:demo")
    return values[0] if values else default


def _one(
    traces: Sequence[str] | None, leads_s: Sequence[int], weights: Sequence[float], chosen: Chosen, *, json: bool
) -> None:
    """One trace, one lead, one wait weight."""
    from controller.backtest.run import bench as run
    from controller.backtest.traces import load_trace
    from controller.learning.fleet import Terms

    trace = _single("--trace", traces or ())
    lead_s, weight = _single("--lead", leads_s, 900), _single("--wait-weight", weights, 9.0)
    teams, scale = chosen.teams, chosen.scale
    if scale is not None and chosen.view != "demand" and load_trace(trace, teams=teams).has_jobs:
        raise InputError.one("--scale", scale, "a demand view (jobs cannot be scaled): add --view demand")
    loaded = load_trace(trace, teams=teams, train=chosen.train, scale=scale)
    terms = Terms(chosen.gpus_per_node, lead_s, weight, loaded.panel.step_s)
    with progress(f"bench {loaded.name}") as tell:
        report = run(loaded, terms, chosen.view, tell)
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
