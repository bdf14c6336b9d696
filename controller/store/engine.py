"""One place for what SQLite and PostgreSQL want done differently: URLs, connections, transactions, upserts, locks.

SQLite runs in WAL mode, so that the dashboard reads while the loop writes. ``synchronous=FULL`` is the default: a
commit returns once the disk has it, so neither ``kill -9`` nor a power cut loses a committed row. That matters because
the loop carries an action out only after its record is committed. One fsync a tick costs milliseconds. With
``durable=False`` (``synchronous=NORMAL``) ``kill -9`` still loses nothing, a power cut may lose the last ticks: right
for a simulated world, which can be run again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from controller.store.errors import StoreError, clear_errors, shown

BUSY_TIMEOUT_S = 30
"""How long a writer waits for another one. A tick's write takes milliseconds; pruning a year takes seconds."""
CONNECT_TIMEOUT_S = 5


def parse_url(url: str) -> URL:
    """Read ``sqlite:///PATH``, ``postgresql://…`` or a bare path; anything else is a ``StoreError``."""
    text_url = url if "://" in url else f"sqlite:///{url}"
    if text_url.startswith("postgres://"):
        text_url = "postgresql://" + text_url.removeprefix("postgres://")
    try:
        parsed = make_url(text_url)
    except (ArgumentError, ValueError) as error:
        # The text is not echoed: a URL that cannot be parsed may still hold a password.
        raise StoreError("", "a file path, sqlite:///PATH or postgresql://USER@HOST/DATABASE") from error
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise StoreError(parsed.drivername, "SQLite (a path) or PostgreSQL (postgresql://…)")
    if not parsed.database or parsed.database == ":memory:":
        raise StoreError(shown(parsed), "needs the path of a file: sqlite:///PATH")
    return parsed


def sqlite_path(url: str) -> Path | None:
    """The file that a URL names, or None for a server."""
    parsed = parse_url(url)
    return Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None


def open_engine(url: URL, *, durable: bool = True) -> Engine:
    """Create the engine; makes a SQLite file's parent folder. Connects only when first used."""
    if url.get_backend_name() == "sqlite":
        return _open_sqlite(url, durable=durable)
    engine = create_engine(
        url,
        pool_pre_ping=True,
        pool_size=5,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "application_name": "tidegate"},
    )
    event.listen(engine, "begin", _begin_postgresql)
    return engine


def _open_sqlite(url: URL, *, durable: bool) -> Engine:
    try:
        Path(url.database or "").resolve().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(shown(url), f"its folder cannot be made: {error.strerror}") from error
    engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT_S})

    def prepare(connection: sqlite3.Connection, _: Any) -> None:
        # The driver would otherwise begin transactions by itself, late and never IMMEDIATE.
        connection.isolation_level = None
        for pragma in (
            f"busy_timeout={BUSY_TIMEOUT_S * 1000}",
            "journal_mode=WAL",
            f"synchronous={'FULL' if durable else 'NORMAL'}",
            "foreign_keys=ON",
            "temp_store=MEMORY",
            "cache_size=-32768",
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _begin_sqlite(connection: Connection) -> None:
    # IMMEDIATE takes the write lock at once: a transaction that reads first and writes later could otherwise fail
    # half way because another writer came in between.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")


def _begin_postgresql(connection: Connection) -> None:
    if not connection.get_execution_options().get("writes"):
        # All queries of one page see the same tick.
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """One consistent view; writes by others go on meanwhile."""
    with clear_errors(engine.url), engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One transaction: all or nothing. Writers queue up behind each other."""
    with clear_errors(engine.url), engine.connect().execution_options(writes=True) as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            # One writer at a time, as in SQLite: idempotence and roll-ups rely on it.
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITE_LOCK})
        yield connection


_WRITE_LOCK = 0x7469646567617465
"""Any constant of our own: the bytes of ``tidegate``."""


def upsert(connection: Connection, table: Table) -> Any:
    """The dialect's INSERT, which knows ``ON CONFLICT``."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)
