"""One writer per store: a second loop on the same history would interleave two worlds in it."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from zlib import crc32

from sqlalchemy import text

from controller.store.engine import open_engine, parse_url, sqlite_path
from controller.store.errors import StoreError, clear_errors, shown

BUSY = "another tidegate writes to it: stop that one, or name another store"


@contextmanager
def exclusive(url: str, cluster: str) -> Iterator[None]:
    """Hold the right to write a cluster's ticks; ``StoreError`` when another process has it.

    SQLite: a lock on the file ``PATH.lock``, given back by the system however the process ends. PostgreSQL: an
    advisory lock of a session, which ends with it.
    """
    path = sqlite_path(url)
    if path is None:
        with _advisory(url, cluster):
            yield
        return
    with _lock_file(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreError(str(path), BUSY) from error
        yield


def _lock_file(path: Path) -> IO[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return Path(f"{path}.lock").open("w")
    except OSError as error:
        raise StoreError(str(path), f"cannot be written here ({error.strerror}): name a path that can") from error


@contextmanager
def _advisory(url: str, cluster: str) -> Iterator[None]:
    parsed = parse_url(url)
    engine = open_engine(parsed)
    try:
        with clear_errors(parsed):
            connection = engine.connect()
        with connection:
            key = {"key": crc32(f"tidegate/{cluster}".encode())}
            if not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), key).scalar_one():
                raise StoreError(shown(parsed), BUSY)
            yield
    finally:
        engine.dispose()
