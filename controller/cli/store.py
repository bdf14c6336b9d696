"""``tidegate store``: look after the database: bring it up to date, see what it holds, make it smaller."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from controller.core.errors import InputError

app = typer.Typer(
    help="Look after the store: migrate, info, prune. URL is a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE.",
    no_args_is_help=True,
)

Url = Annotated[str, typer.Argument(metavar="URL", help="The store: a path, sqlite:///PATH or postgresql://…")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command()
def migrate(url: Url, as_json: AsJson = False) -> None:
    """Create a store or bring it to this version's schema; opening a store does the same.

    Example: tidegate store migrate postgresql://tidegate@db/tidegate
    """
    from controller.store.migrate import migrate_url

    before, after = migrate_url(url)
    if as_json:
        _document({"before": before, "after": after})
    elif before == after:
        typer.echo(f"up to date at schema {after}")
    else:
        typer.echo(f"schema {before or 'none'} → {after}")


@app.command()
def info(url: Url, as_json: AsJson = False) -> None:
    """Show what a store holds: schema, size, time span and rows of each table.

    Example: tidegate store info .tidegate/demo.sqlite --json
    """
    from controller.store import open_store

    _existing(url)
    with open_store(url) as store:
        found = store.info()
    if as_json:
        _document(asdict(found))
        return
    typer.echo(f"{found.url}: schema {found.revision}, {found.size_bytes / 2**20:.1f} MiB")
    typer.echo(f"clusters: {', '.join(found.clusters) or 'none yet'}")
    if found.first_at_s is not None and found.last_at_s is not None:
        typer.echo(f"ticks: {_moment(found.first_at_s)} to {_moment(found.last_at_s)}")
    for name, count in found.rows.items():
        typer.echo(f"{name:<13}{count:>12,}")


@app.command()
def prune(
    url: Url,
    now: Annotated[
        str | None, typer.Option(help="Count back from this moment (ISO 8601); default: the newest tick.")
    ] = None,
    payload_days: Annotated[int, typer.Option(min=1, help="Days to keep what each tick saw, byte by byte.")] = 14,
    sample_days: Annotated[int, typer.Option(min=1, help="Days to keep samples and forecasts of each tick.")] = 35,
    history_days: Annotated[int, typer.Option(min=1, help="Days to keep hours, actions and incidents.")] = 400,
    as_json: AsJson = False,
) -> None:
    """Delete what is old; hourly roll-ups stay, and so does what an open violation refers to.

    Example: tidegate store prune .tidegate/demo.sqlite --sample-days 60
    """
    from controller.store import Retention, open_store

    _existing(url)
    keep = Retention(payload_days, sample_days, history_days)
    with open_store(url) as store:
        lost = store.prune(_now(now, store.info().last_at_s), keep)
    if as_json:
        _document({"rows": lost.rows, "total": lost.total})
        return
    for name, count in sorted(lost.rows.items()):
        if count:
            typer.echo(f"{name:<13}{count:>12,}")
    typer.echo(f"{lost.total:,} rows deleted")


def _existing(url: str) -> None:
    """A mistyped path is refused, not turned into a new, empty store."""
    from controller.store.engine import sqlite_path

    path = sqlite_path(url)
    if path is not None and not path.is_file():
        raise InputError.one("store", path, "no such file (tidegate store migrate makes a new store)")


def _now(given: str | None, newest_s: int | None) -> int:
    """Simulated worlds live in another year than the clock, so the newest tick is the better default."""
    from datetime import UTC, datetime

    if given is None:
        return int(time.time()) if newest_s is None else newest_s
    try:
        moment = datetime.fromisoformat(given)
    except ValueError as error:
        raise InputError.one("--now", given, "a moment as 2026-03-29T02:30:00+00:00") from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _moment(at_s: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _document(value: dict[str, Any]) -> None:
    import orjson

    typer.echo(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
