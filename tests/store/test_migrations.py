"""The shipped migrations make the schema that the code expects, from nothing and from every earlier revision."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import DBAPIError
from store_builders import DAY, T0, a_decision, a_record, a_team, put

from controller.store import StoreError, open_store
from controller.store.engine import open_engine, parse_url, reading, writing
from controller.store.migrate import HEAD, SCRIPTS, migrate, migrate_url, revision
from controller.store.tables import metadata


@pytest.fixture
def engine(url: str):
    opened = open_engine(parse_url(url))
    yield opened
    opened.dispose()


def differences(engine: Engine) -> list[object]:
    with reading(engine) as connection:
        return list(compare_metadata(MigrationContext.configure(connection), metadata))


def test_the_head_named_in_the_code_is_the_newest_script() -> None:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [HEAD]
    assert [script.revision for script in scripts.walk_revisions()] == ["0003", "0002", "0001"]


def test_from_nothing_to_the_newest_schema(url: str, engine: Engine) -> None:
    assert migrate_url(url) == (None, HEAD)
    assert migrate_url(url) == (HEAD, HEAD)
    assert differences(engine) == []


def test_a_difference_between_code_and_schema_would_show(engine: Engine) -> None:
    migrate(engine)
    with writing(engine) as connection:
        connection.execute(text("DROP INDEX ix_actions_cluster_team_at_s_seq"))
        connection.execute(text("ALTER TABLE kv ADD COLUMN more TEXT"))
    assert len(differences(engine)) == 2


def test_from_revision_1_with_data(url: str, engine: Engine) -> None:
    assert migrate(engine, to="0001") == (None, "0001")
    record = fill_revision_1(engine)
    assert migrate(engine) == ("0001", HEAD)
    assert differences(engine) == []
    with open_store(url) as store:
        assert store.resume("east") == record
        assert store.team_series("east", "h100", "dev")["demand"] == [1000, 3000, 7000]
        total, dev = store.demand_history("east")
        assert (dev.at_s, dev.mean, dev.max) == ([T0, T0 + 300], [2000, 7000], [3000, 7000])
        assert (total.mean, total.max) == ([4], [5])
        put(store, a_decision(T0 + 420, teams=(a_team(demand=8000),)))
        assert store.demand_history("east")[1].mean == [2000, 7500]


def fill_revision_1(engine: Engine):
    """Rows as revision 1 had them, written without today's code."""
    record = a_record(a_decision(T0 + 360))
    zeros, nothing = "0, 0, 0, 0, 0", "NULL, NULL, ''"
    with writing(engine) as connection:

        def put_row(sql: str, **values: object) -> None:
            connection.execute(text(sql), values)

        put_row(
            "INSERT INTO series (seq, cluster, pool, team) VALUES (1, 'east', 'h100', ''), (2, 'east', 'h100', 'dev')"
        )
        for at_s, demand in ((0, 1000), (60, 3000), (360, 7000)):
            put_row(
                f"INSERT INTO team_samples VALUES (2, :at, {zeros}, :demand, {zeros}, 0, 0, 0, '')",
                at=T0 + at_s,
                demand=demand,
            )
        for at_s, demand in ((0, 3), (60, 5)):
            put_row(
                f"INSERT INTO pool_samples VALUES (1, :at, 0, 0, 0, 0, :demand, {zeros}, {zeros}, 0, 0, {nothing})",
                at=T0 + at_s,
                demand=demand,
            )
        put_row(
            "INSERT INTO policies VALUES (:id, :body, 0)",
            id=record.policy_fingerprint,
            body=zlib.compress(record.policy_bytes),
        )
        put_row(
            "INSERT INTO ticks VALUES (1, :id, 'east', :at, :wall, 'enforce', 'production', :policy, 0, 0, 0)",
            id=record.id,
            at=record.at_s,
            wall=record.wall_at_s,
            policy=record.policy_fingerprint,
        )
        put_row(
            "INSERT INTO payloads VALUES (1, :snapshot, :forecasts, :advice, :decision)",
            **{name: zlib.compress(getattr(record, name)) for name in ("snapshot", "forecasts", "advice", "decision")},
        )
        if engine.dialect.name == "postgresql":
            put_row("SELECT setval('series_seq_seq', 2), setval('ticks_seq_seq', 1)")
    return record


def test_a_migration_that_fails_leaves_the_store_as_it_was(engine: Engine) -> None:
    migrate(engine, to="0001")
    with writing(engine) as connection:
        connection.execute(text("CREATE TABLE demand_bins (in_the_way INTEGER)"))
        connection.execute(text("INSERT INTO kv VALUES ('a', '1')"))
    with pytest.raises(DBAPIError):
        migrate(engine)
    with reading(engine) as connection:
        assert revision(connection) == "0001"
        assert [column["name"] for column in inspect(connection).get_columns("demand_bins")] == ["in_the_way"]
        assert connection.execute(text("SELECT value FROM kv")).scalars().all() == ["1"]


def test_a_database_with_tables_of_others_is_refused_and_left_alone(url: str, engine: Engine) -> None:
    with writing(engine) as connection:
        connection.execute(text("CREATE TABLE violations (of_the_speed_limit INTEGER)"))
    with pytest.raises(StoreError, match="holds a table 'violations' that is not tidegate's: name another database"):
        open_store(url)
    with reading(engine) as connection:
        assert inspect(connection).get_table_names() == ["violations"]


def test_an_up_to_date_store_opens_without_alembic(url: str) -> None:
    open_store(url).close()
    code = (
        "import sys; from controller.store import open_store; open_store(sys.argv[1]).close(); "
        "assert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, url], check=True, cwd=SCRIPTS.parent.parent.parent)


def plans(engine: Engine, statements: list[tuple[str, object]]) -> list[str]:
    found = []
    with engine.connect() as connection:
        for sql, given in statements:
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", given).all()
            found += [f"{row[-1]}  <- {sql}" for row in rows]
    return found


def test_every_query_of_the_dashboard_goes_through_an_index(tmp_path) -> None:
    from sqlalchemy import event

    with open_store(str(tmp_path / "store.sqlite")) as store:
        asked: list[tuple[str, object]] = []
        record = put(store, a_decision())
        engine = store._engine

        def listen(_c: object, _cursor: object, sql: str, given: object, _x: object, _many: object) -> None:
            if sql.startswith("SELECT"):
                asked.append((sql, given))

        event.listen(engine, "before_cursor_execute", listen)
        span = (T0 - DAY, T0 + DAY)
        store.now("east")
        store.latest_tick("east")
        store.decision(record.id)
        store.team_series("east", "h100", "dev", *span)
        store.pool_series("east", "h100", *span, 2)
        store.demand_series("east", "h100", "dev", *span)
        store.demand_history("east", *span)
        for filters in ({}, {"team": "dev"}, {"code": "STARVED"}, {"kind": "evict"}, {"pool": "h100", "before_id": 7}):
            store.decisions("east", *span, **filters)
        store.notes("east", *span, team="dev")
        store.forecast_series("east", "h100", "dev", (900, 1800), *span)
        store.forecast_vs_actual("east", "h100", "dev", (900, 1800), *span)
        store.latest_forecast("east", "h100")
        store.learning_tick(record.id)
        store.learning_ticks("east", "h100", *span)
        store.learning_outcomes("east", "h100", *span)
        store.learning_days("east", "h100", *span)
        store.learning_events("east", "h100", *span, kind="demotion")
        store.models("east", "h100")
        store.model("0123456789abcdef")
        event.remove(engine, "before_cursor_execute", listen)
        assert len(asked) > 20
        lines = plans(engine, asked)
    small = ("SCAN series", "SCAN CONSTANT ROW", "SCAN opened", "SCAN last")
    assert [line for line in lines if "SCAN" in line and not line.startswith(small)] == []
    assert not [
        line
        for line in lines
        if "FOR ORDER BY" in line and "FROM violations" not in line and "ORDER BY bucket" not in line
    ]
    assert json.dumps(lines).count("SEARCH") > 20
