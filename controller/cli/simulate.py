"""``tidegate simulate``: the production loop on a simulated cluster that runs a trace; what ``tidegate demo`` starts.

The state of the simulated cluster is kept in the store after every tick, so that a simulation that was stopped, or
killed, goes on where it was.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from controller.cli.output import write_json
from controller.cli.values import seconds

if TYPE_CHECKING:
    from controller.cli.simulation import Options


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("simulate")(simulate)


def simulate(
    trace: Annotated[str, typer.Option(help="A trace folder, or builtin:demo.")],
    policy: Annotated[str, typer.Option(help="A policy file (edits are picked up while it runs), or builtin:demo.")],
    store: Annotated[str, typer.Option(help="A path, sqlite:///PATH or postgresql://USER@HOST/DATABASE.")],
    speed: Annotated[float, typer.Option(min=0, help="Simulated seconds a second; 0 is as fast as possible.")] = 600,
    lead: Annotated[str, typer.Option(help="From asking for a node to a pod on it.")] = "10m",
    lead_p90: Annotated[str, typer.Option(help="The p90 of leads; default: every node takes the same time.")] = "",
    tick: Annotated[str, typer.Option(help="Time between two decisions.")] = "300s",
    begin: Annotated[str, typer.Option(help="Where in the trace to begin; demand before it is loaded history.")] = "",
    until: Annotated[str, typer.Option(help="Where in the trace to stop; default: its end.")] = "",
    seed: Annotated[int, typer.Option(help="Same seed, same simulation.")] = 0,
    cluster: Annotated[str, typer.Option(help="The cluster's name in the store; default: the trace's.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document at the end.")] = False,
    until_stdin_closes: Annotated[bool, typer.Option("--until-stdin-closes", hidden=True)] = False,
) -> None:
    """Run the production loop on a simulated cluster under a trace. Ctrl-C stops cleanly; the same command goes on.

    Examples:

      tidegate simulate --trace builtin:demo --policy builtin:demo --store demo.sqlite --speed 600

      tidegate simulate --trace shared/traces/philly --policy p.yaml --store s.sqlite --speed 0 --until 2d --json
    """
    from controller.cli import simulation
    from controller.settings import Settings
    from controller.telemetry import set_up_logging

    set_up_logging(Settings.of())
    options = simulation.Options(
        trace=trace,
        policy=policy,
        store=store,
        speed=speed,
        lead_s=seconds(lead, "--lead", least=1),
        lead_p90_s=seconds(lead_p90, "--lead-p90", least=1) if lead_p90 else None,
        tick_s=seconds(tick, "--tick", least=1),
        begin_s=seconds(begin, "--begin") if begin else None,
        until_s=seconds(until, "--until") if until else None,
        seed=seed,
        cluster=cluster,
    )
    with _stopped_by(until_stdin_closes) as stop:
        summary = _run(options, stop, quiet=as_json)
    _print(summary, as_json)


def _run(options: Options, stop: threading.Event, *, quiet: bool) -> dict[str, Any]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from controller.cli.simulation import run

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        return run(options, stop, lambda *_: None)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("simulating", total=1.0)
        return run(options, stop, lambda part, text: progress.update(task, completed=part, description=text))


@contextlib.contextmanager
def _stopped_by(stdin_too: bool) -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; a second signal ends the process at once, as before."""
    stop = threading.Event()

    def on_signal(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    if stdin_too:
        threading.Thread(target=_wait_for_end_of_stdin, args=(stop,), daemon=True).start()
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait_for_end_of_stdin(stop: threading.Event) -> None:
    # os.read and not sys.stdin: a thread that holds the buffered reader's lock would hinder the exit of the process.
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    stop.set()


def _print(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        write_json(summary)
        return
    typer.echo(
        f"{summary['cluster']}: {summary['from']} → {summary['to']}, {summary['ticks']} ticks"
        f"{' (continued)' if summary['continued'] else ''}"
    )
    typer.echo(
        f"GPU-hours: {summary['busy_gpu_h']:.0f} busy, {summary['idle_gpu_h']:.0f} idle, "
        f"{summary['boot_gpu_h']:.0f} booting, {summary['wait_gpu_h']:.1f} waiting, {summary['lost_gpu_h']:.1f} lost"
    )
    typer.echo(
        f"{summary['jobs_done']} jobs done, {summary['evictions']} evictions, {summary['node_adds']} nodes added"
    )
    if summary["problems"]:
        typer.echo(f"problems: {summary['problems']} (the last: {summary['last_problem']})", err=True)
