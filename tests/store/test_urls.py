"""Which stores there are, and what is said, without secrets, when one cannot be had."""

from __future__ import annotations

import socket

import psycopg
import pytest
from store_builders import a_decision, put

from controller.core.errors import InputError
from controller.store import NewerSchemaError, StoreError, open_store
from controller.store.engine import parse_url, sqlite_path


def refusal(url: str) -> str:
    with pytest.raises(StoreError) as refused:
        open_store(url)
    assert isinstance(refused.value, InputError)
    [line] = refused.value.lines()
    assert "***" not in line
    assert "hunter2" not in line + repr(refused.value) + str(refused.value.problems)
    return line


def test_a_bare_path_is_sqlite(tmp_path) -> None:
    path = tmp_path / "a" / "b" / "store.sqlite"
    with open_store(str(path)) as store:
        assert store.path == path
        assert store.info().backend == "sqlite"
    assert sqlite_path(f"sqlite:///{path}") == path
    assert sqlite_path("postgresql://db/x") is None


@pytest.mark.parametrize(("durable", "synchronous"), [(True, 2), (False, 1)])
def test_sqlite_syncs_each_commit_unless_told_otherwise(tmp_path, durable: bool, synchronous: int) -> None:
    with open_store(str(tmp_path / "store.sqlite"), durable=durable) as store, store._engine.connect() as connection:

        def pragma(name: str) -> object:
            return connection.exec_driver_sql(f"PRAGMA {name}").scalar()

        assert (pragma("synchronous"), pragma("journal_mode"), pragma("foreign_keys")) == (synchronous, "wal", 1)
        assert pragma("busy_timeout") == 30_000


def test_postgres_is_postgresql() -> None:
    for given in ("postgres://u@h/d", "postgresql://u@h/d", "postgresql+psycopg://u@h/d"):
        assert parse_url(given).drivername == "postgresql+psycopg"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite://", "store: sqlite:///: needs the path of a file: sqlite:///PATH"),
        ("sqlite:///:memory:", "store: sqlite:///:memory:: needs the path of a file: sqlite:///PATH"),
        ("mysql://root:hunter2@db/x", "store: mysql: SQLite (a path) or PostgreSQL (postgresql://…)"),
        (
            "postgresql://u:hunter2@h:port/d",
            "store: a file path, sqlite:///PATH or postgresql://USER@HOST/DATABASE",
        ),
    ],
)
def test_a_url_of_no_store_is_refused(url: str, said: str) -> None:
    assert refusal(url) == said


def test_a_server_that_is_not_there_is_said_without_the_password() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        line = refusal(f"postgresql://me:hunter2@127.0.0.1:{port}/x?application_name=hunter2")
    assert line == (
        f"store: postgresql://me@127.0.0.1:{port}/x: "
        "cannot be reached: check that the server runs and that host, port and network let you in"
    )


def test_a_wrong_password_and_a_missing_database_are_told_apart(postgresql: str) -> None:
    wrong = postgresql.format("postgres").replace("not-to-be-printed", "hunter2")
    assert refusal(wrong).endswith(": the password was refused")
    assert refusal(postgresql.format("nowhere")).endswith(": no such database: create it first")


def test_a_user_without_rights_is_told_so(postgresql: str, postgresql_url: str) -> None:
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'hunter2'")
    guest = postgresql_url.replace("tidegate:not-to-be-printed", "guest:hunter2")
    assert refusal(guest).endswith(": this user lacks the rights: make it the owner of the schema")
    with open_store(postgresql_url) as store:
        put(store, a_decision())
    assert refusal(guest).endswith(": this user lacks the rights: make it the owner of the schema")


def test_a_newer_schema_is_refused_with_what_to_do(url: str) -> None:
    with open_store(url) as store:
        engine = store._engine
        with engine.connect().execution_options(writes=True) as connection, connection.begin():
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0999'")
    with pytest.raises(NewerSchemaError) as refused:
        open_store(url)
    [line] = refused.value.lines()
    assert line.endswith(
        "was written by a newer tidegate (schema 0999, this one knows up to 0003): "
        "upgrade tidegate, or name another store"
    )
    assert "not-to-be-printed" not in line
