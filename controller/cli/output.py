"""How commands speak: one JSON document on standard output, progress on standard error and only to people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer


def write_json(document: Any) -> None:
    """Print one JSON document; NaN becomes null."""
    import orjson

    typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


@contextmanager
def progress(title: str) -> Iterator[Callable[[str], None]]:
    """Tell what a long command is doing, on a terminal; silent when piped."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status(title) as status:
        yield lambda said: status.update(f"{title}: {said}")
