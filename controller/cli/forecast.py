"""``tidegate forecast``: how good the forecasts are on a trace, beside the naive ones that are hard to beat."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from controller.cli.output import progress, write_json
from controller.cli.values import seconds
from controller.core.errors import InputError

app = typer.Typer(help="Score forecasts, or look a day ahead.", no_args_is_help=True)

Trace = Annotated[str, typer.Option(help="A trace folder, a file in one, or builtin:demo.")]
Team = Annotated[list[str] | None, typer.Option(help="Only teams that match this glob; may be repeated.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
COLUMNS = (
    ("wql", "WQL"),
    ("wql_high", "WQL ≥ .9"),
    ("teams_wql", "WQL of teams"),
    ("mase_last_value", "MASE last value"),
    ("mase_seasonal_naive", "MASE seasonal"),
    ("coverage", "coverage .9"),
    ("worst_day", "worst day"),
    ("teams_beating", "teams beating last value"),
)
COSTS = (("fit_s", "fit, s"), ("forecast_s", "forecast, s"))


@app.command()
def score(
    trace: Trace,
    team: Team = None,
    train: Annotated[float, typer.Option(help="Share to learn from; judge_from_s of trace.json wins over it.")] = 0.62,
    lead: Annotated[list[str] | None, typer.Option(help="Lead times; may be repeated. Default 15m, 30m, 60m.")] = None,
    length: Annotated[list[str] | None, typer.Option(help="Window lengths; may be repeated. Default 15m.")] = None,
    against: Annotated[
        str | None, typer.Option(help="Also score a package's models: statsforecast (tidegate[compare]).")
    ] = None,
    every: Annotated[str, typer.Option(help="With --against: a decision so often, for all models alike.")] = "1h",
    json: AsJson = False,
) -> None:
    """Score forecasts of the maximum demand over [lead, lead + length]: rolling origin, refitted nightly.

    Examples:

      tidegate forecast score --trace builtin:demo

      tidegate forecast score --trace traces/azure_llm_2024 --team azure-code --lead 30m --json

      tidegate forecast score --trace traces/azure_llm_2024 --team azure-code --against statsforecast
    """
    from controller.backtest.traces import load_trace
    from forecaster.evaluate import score as run
    from forecaster.evaluate import score_beside_peers
    from forecaster.windows import Window

    leads = [seconds(text, "--lead") for text in lead or ("15m", "30m", "60m")]
    lengths = [seconds(text, "--length", least=1) for text in length or ("15m",)]
    loaded = load_trace(trace, teams=team or (), train=train)
    windows = sorted({Window(a, b) for a in leads for b in lengths})
    stride = _stride(against, every, loaded.panel.step_s)
    with progress(f"scoring forecasts on {loaded.name}"):
        if against is None:
            rows = run(loaded.panel, loaded.judge_from, windows)
        else:
            rows = score_beside_peers(loaded.panel, loaded.judge_from, windows, stride)
    document = {
        "trace": loaded.name,
        "teams": len(loaded.panel.names),
        "judge_from_s": loaded.judge_from * loaded.panel.step_s,
        "horizons": [_horizon(window, [row for row in rows if row.window == window]) for window in windows],
    }
    if json:
        write_json(document)
    else:
        _table(document)


def _stride(against: str | None, every: str, step_s: int) -> int:
    """Rows between two decisions; refuses other packages, and what does not meet each day at the same times."""
    if against not in (None, "statsforecast"):
        raise InputError.one("--against", against, "statsforecast")
    every_s = seconds(every, "--every", least=step_s)
    if 86_400 % every_s or every_s % step_s:
        raise InputError.one("--every", every, f"a multiple of {step_s} s that divides a day")
    return every_s // step_s


@app.command()
def ahead(trace: Trace, team: Team = None, json: AsJson = False) -> None:
    """Look a day and a half ahead, by the hour: each team and the total, from a trace's end on.

    Examples:

      tidegate forecast ahead --trace builtin:demo --team inference

      tidegate forecast ahead --trace traces/azure_llm_2024 --json
    """
    from controller.backtest.traces import load_trace
    from forecaster.models.day_ahead import day_ahead

    loaded = load_trace(trace, teams=team or ())
    panel = loaded.panel.with_total()
    document: dict[str, Any] = {"trace": loaded.name, "series": []}
    with progress(f"looking ahead on {loaded.name}") as tell:
        for name in panel.names:
            tell(name or "total")
            made = day_ahead(panel, name, panel.time(panel.rows))
            quantiles = {f"{level:g}": made.values[:, i].tolist() for i, level in enumerate(made.levels)}
            document["series"].append({"team": name, "model": made.model, "start_s": made.start_s, "gpus": quantiles})
    if json:
        write_json(document)
    else:
        _ahead_table(document)


def _ahead_table(document: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{document['trace']}: mean GPUs by the hour, median [10 % – 90 %]")
    table.add_column("hours ahead", justify="right")
    for series in document["series"]:
        table.add_column(series["team"] or "total", justify="right")
    for hour in range(0, len(document["series"][0]["gpus"]["0.5"]), 3):
        cells = [[series["gpus"][level][hour] for level in ("0.5", "0.1", "0.9")] for series in document["series"]]
        table.add_row(f"+{hour}", *(f"{middle:,.0f} [{low:,.0f} – {high:,.0f}]" for middle, low, high in cells))
    wide = Console()
    (wide if wide.is_terminal else Console(width=24 + 22 * len(document["series"]))).print(table)


def _horizon(window: Any, rows: list[Any]) -> dict[str, Any]:
    return {"lead_s": window.lead_s, "length_s": window.length_s, "models": {row.model: _model(row) for row in rows}}


def _model(row: Any) -> dict[str, Any]:
    scores = {key: _number(getattr(row, key)) for key, _ in COLUMNS} | {"rows": row.rows}
    if row.cost is not None:
        scores |= {"fit_s": _number(row.cost.fit_s), "forecast_s": _number(row.cost.forecast_s)}
    return scores


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _table(document: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"{document['trace']} · {document['teams']} teams",
        caption=f"Judged from day {document['judge_from_s'] / 86_400:.1f} on. Lower WQL is better; MASE below 1 beats"
        " the naive forecast named; coverage should be .90.",
    )
    table.add_column("window")
    table.add_column("model")
    timed = any("fit_s" in row for horizon in document["horizons"] for row in horizon["models"].values())
    columns = (*COLUMNS, *COSTS) if timed else COLUMNS
    for _, title in columns:
        table.add_column(title, justify="right")
    for horizon in document["horizons"]:
        start, stop = horizon["lead_s"] / 60, (horizon["lead_s"] + horizon["length_s"]) / 60
        for name, row in horizon["models"].items():
            cells = ("–" if row.get(key) is None else f"{row[key]:.3f}" for key, _ in columns)
            table.add_row(f"{start:g}–{stop:g} min", name, *cells)
    wide = Console()
    (wide if wide.is_terminal else Console(width=180)).print(table)
