"""What goes wrong outside our code (a full disk, a wrong password, a newer schema), as one line that says what to do.

The driver's own text is long, names SQL and may hold the URL; none of that helps the reader and some of it is secret.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from controller.core.errors import InputError, Problem

_SQLITE = (
    ("disk is full", "the disk is full: free some space, nothing of this write was kept"),
    ("readonly", "the file is read-only for this user: make it and its folder writable"),
    ("unable to open", "cannot be opened: the folder must exist and be writable for this user"),
    ("not a database", "this file is not a tidegate store (not SQLite): name another file"),
    ("malformed", "the file is damaged: restore a backup or move it away to start anew"),
    ("locked", "another process has been writing for too long: stop it or try again"),
    ("disk i/o error", "the disk refused to read or write: check its space and health"),
)
_POSTGRESQL = {
    "28P01": "the password was refused",
    "28000": "this user may not connect",
    "3D000": "no such database: create it first",
    "42501": "this user lacks the rights: make it the owner of the schema",
    "53100": "the server's disk is full: nothing of this write was kept",
    "53300": "the server has no connection left",
    "25006": "the server is read-only (a standby?): name the primary",
    "57P01": "the server is shutting down: try again",
    "57P03": "the server is starting up: try again",
}


class StoreError(InputError):
    """The store cannot be used, or refused a write; nothing is half written.

    ``problems`` has exactly one entry; its path is ``store`` and its value the URL without any secret.
    """

    def __init__(self, shown: str, what: str) -> None:
        super().__init__([Problem("store", shown, what)])


class NewerSchemaError(StoreError):
    """The store was written by a newer tidegate than this one."""

    def __init__(self, shown: str, found: str, known: str) -> None:
        super().__init__(
            shown,
            f"was written by a newer tidegate (schema {found}, this one knows up to {known}): "
            "upgrade tidegate, or name another store",
        )


def shown(url: URL) -> str:
    """The URL as it may be printed: no password, no query (libpq takes passwords there too)."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{url.database or ''}"
    return URL.create("postgresql", url.username, None, url.host, url.port, url.database).render_as_string()


@contextmanager
def clear_errors(url: URL) -> Iterator[None]:
    """Turn what the database or its driver refused into a ``StoreError``; faults in our SQL pass through."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreError(shown(url), "all connections are busy: try again") from error
    except DBAPIError as error:
        what = _explain(error)
        if what is None:
            raise
        raise StoreError(shown(url), what) from error


def _explain(error: DBAPIError) -> str | None:
    state = getattr(error.orig, "sqlstate", None)
    if state in _POSTGRESQL:
        return _POSTGRESQL[state]
    text = str(error.orig).lower()
    if isinstance(error.orig, sqlite3.Error):
        return next((what for part, what in _SQLITE if part in text), None)
    # psycopg gives what the server said about SQL a state; without one the connection itself failed.
    return _unreachable(text) if state is None and isinstance(error, OperationalError) else None


def _unreachable(text: str) -> str:
    for part, what in (
        ("password authentication failed", _POSTGRESQL["28P01"]),
        ("no password supplied", "a password is needed: put it into the URL, PGPASSWORD or ~/.pgpass"),
        ("does not exist", _POSTGRESQL["3D000"] if "database" in text else _POSTGRESQL["28000"]),
        ("starting up", _POSTGRESQL["57P03"]),
        ("no space left", _POSTGRESQL["53100"]),
    ):
        if part in text:
            return what
    return "cannot be reached: check that the server runs and that host, port and network let you in"
