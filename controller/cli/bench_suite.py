"""``tidegate bench --suite``: hand the cases out, keep what comes back, and say how it went."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from controller.cli.output import progress, write_json
from controller.core.errors import InputError

if TYPE_CHECKING:
    from controller.backtest.report import Document
    from controller.backtest.results import Results
    from controller.backtest.suite import Case, Extent, Source
    from controller.backtest.workers import Workers

REPORT = "report.html"


@dataclass(frozen=True, slots=True)
class Named:
    """The demand that a call names; ``seeds`` None: the default."""

    traces: tuple[str, ...]
    folder: str | None
    teams: tuple[str, ...]
    seeds: int | None
    quick: bool


@dataclass(frozen=True, slots=True)
class Means:
    """Where it runs and where it goes; ``price``: US dollars a GPU-hour."""

    out: str | None
    jobs: int | None
    ray: str | None
    price: float


def run_suite(named: Named, extent: tuple[Any, ...], means: Means, *, json: bool) -> None:
    """Run what is not finished yet and print all of it. Exit code 1 where a case failed, by a fault of ours."""
    from controller.backtest import report
    from controller.backtest.results import Results
    from controller.backtest.suite import code_fingerprint, plan

    if not means.price < float("inf"):
        raise InputError.one("--gpu-hour-price", means.price, "a number of US dollars, 0 or more")
    workers = _workers(means)
    code = code_fingerprint()
    with progress("bench suite") as tell:
        tell("reading the traces")
        traces, made, left_out = _sources(named)
        cases = plan(traces, made, _extent(named, extent))
        with Results(Path(means.out) if means.out else None) as kept:
            results = _all(cases, code, workers, kept, tell)
    document = report.document(results, _made_by(code), left_out, means.price)
    if means.out:
        (Path(means.out) / REPORT).write_text(report.html(document), encoding="utf-8")
    if json:
        write_json(document.plain())
    else:
        _print(document, means.out)
    if document.failed:
        for result in document.failed:
            typer.echo(f"failed: {report.title(result)}: {result['failed']}", err=True)
        raise typer.Exit(1)


def _workers(means: Means) -> Workers:
    from controller.backtest.workers import Processes, Ray, cores

    if means.ray is not None:
        if means.jobs is not None:
            raise InputError.one("--jobs", means.jobs, "not with --ray: the cluster says how many run at once")
        return Ray(means.ray)
    return Processes(means.jobs or cores())


def _sources(named: Named) -> tuple[list[Source], list[Source], list[str]]:
    """Traces (the bundled one where none is named, and beside a folder), made demand, and what was left out."""
    from controller.backtest import suite, synthetic

    found: list[Source] = []
    left_out: list[str] = []
    for path in named.traces:
        found += suite.trace_sources(path, named.teams)
    if named.folder is not None:
        if named.teams:
            raise InputError.one("--team", " ".join(named.teams), "with --trace, not with --traces")
        more, left_out = suite.folder_sources(named.folder)
        found += more
    if not named.traces:
        found += suite.trace_sources(suite.DEMO)
    seeds = (suite.QUICK_SEEDS if named.quick else suite.SEEDS) if named.seeds is None else named.seeds
    days = suite.QUICK_DAYS if named.quick else synthetic.DAYS
    return found, suite.made_sources(seeds, days), left_out


def _extent(named: Named, given: tuple[Any, ...]) -> Extent:
    from controller.backtest.suite import QUICK_LEADS_S, QUICK_WEIGHTS, Extent

    leads_s, weights, gpus_per_node, view, robustness = given
    usual = Extent()
    if named.quick:
        usual = Extent(QUICK_LEADS_S, QUICK_WEIGHTS, QUICK_LEADS_S, QUICK_WEIGHTS)
    return Extent(
        leads_s or usual.leads_s,
        weights or usual.weights,
        leads_s or usual.robust_leads_s,
        weights or usual.robust_weights,
        gpus_per_node,
        view,
        robustness,
    )


def _all(
    cases: Sequence[Case], code: str, workers: Workers, kept: Results, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """The results of all cases, in the order of the cases; each is kept as soon as it is there."""
    from concurrent.futures import BrokenExecutor
    from contextlib import closing

    results = {case: found for case in cases if (found := kept.finished(case.id(code))) is not None}
    todo = [case for case in cases if case not in results]
    whole, done, begun = sum(case.weight for case in todo), 0.0, time.monotonic()
    tell(f"{len(results)} of {len(cases)} are there already" if results else f"{len(cases)} cases")
    if not todo:
        return [results[case] for case in cases]
    try:
        with closing(workers.run(todo, code)) as running:
            for case, result in running:
                kept.add(result)
                results[case] = result
                done += case.weight
                tell(f"{len(results)} of {len(cases)} cases, {_left(time.monotonic() - begun, done, whole)}")
    except BrokenExecutor:
        kept_there = "those finished are kept: run it again" if kept.folder else "with --out they would have been kept"
        typer.echo(
            f"a process was killed after {len(results)} of {len(cases)} cases (out of memory?); {kept_there},"
            " perhaps with fewer --jobs",
            err=True,
        )
        raise typer.Exit(1) from None
    return [results[case] for case in cases]


def _left(elapsed_s: float, done: float, whole: float) -> str:
    from controller.backtest.suite import left_s

    left = left_s(elapsed_s, done, whole)
    if left is None:
        return "no estimate yet"
    return f"about {left / 60:.0f} min left" if left >= 90 else f"about {left:.0f} s left"


def _made_by(code: str) -> dict[str, str]:
    """What made the numbers: command, moment, versions."""
    import platform
    from datetime import UTC, datetime
    from importlib.metadata import version

    libraries = ("tidegate", "numpy", "scipy", "scikit-learn")
    return {
        "command": shlex.join(["tidegate", *sys.argv[1:]]),
        "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "code": code,
        "python": platform.python_version(),
    } | {name: version(name) for name in libraries}


def _print(document: Document, out: str | None) -> None:
    """A summary for people: how every policy stands, and the worst rows."""
    from rich.console import Console
    from rich.table import Table

    from controller.backtest.report import percent

    wide = Console()
    console = wide if wide.is_terminal else Console(width=130)
    table = Table(
        title=f"{len(document.results)} cases", caption="Gap closed: 0 % is the tuned rule, 100 % the optimum."
    )
    table.add_column("policy", no_wrap=True)
    for title in ("rows", "better", "even", "worse", "below −2 %", "median", "worst", "where"):
        table.add_column(title, justify="left" if title == "where" else "right")
    for one in document.standings:
        counts = (one.rows, one.better, one.even, one.worse, one.below)
        table.add_row(one.policy, *map(str, counts), percent(one.median), percent(one.worst), one.where)
    console.print(table)
    worst = Table(title="Worst rows first", caption="Of the policies that tidegate brings.")
    for title in ("case", "policy", "gap closed", "interval"):
        worst.add_column(title)
    for line in document.lines[:12]:
        worst.add_row(line.title, line.policy, percent(line.gap), line.interval)
    console.print(worst)
    for reason in document.left_out:
        console.print(f"left out: {reason}", highlight=False)
    if out:
        console.print(f"Report: {Path(out) / REPORT}", highlight=False)
