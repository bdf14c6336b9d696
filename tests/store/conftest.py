"""Each store test runs on SQLite and on a real PostgreSQL, each time on a store of its own."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from postgresql_server import running

from controller.store import Store, open_store

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The server's URL with ``{}`` for the database's name."""
    with running() as url:
        yield url


@pytest.fixture(scope="session")
def migrated(postgresql: str) -> str:
    """The name of a migrated database, to be copied: that is faster than migrating one for each test."""
    name = "tidegate_template"
    with psycopg.connect(postgresql.format("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    open_store(postgresql.format(name)).close()
    return name


@pytest.fixture
def postgresql_url(postgresql: str) -> str:
    """An empty database."""
    name = f"tidegate_{next(_numbers)}"
    with psycopg.connect(postgresql.format("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgresql.format(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store may be made."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'folder' / 'store.sqlite'}"
    return str(request.getfixturevalue("postgresql_url"))


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    if request.param == "sqlite":
        url = str(tmp_path / "store.sqlite")
    else:
        server, template = request.getfixturevalue("postgresql"), request.getfixturevalue("migrated")
        name = f"tidegate_{next(_numbers)}"
        with psycopg.connect(server.format("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        url = server.format(name)
    with open_store(url) as opened:
        yield opened
