"""Bring a store to this version's schema, whoever opens it first, and refuse one that is newer.

Run from code and not from Alembic's command line: the scripts ship inside the package, and two processes that open a
new store at the same moment must not both create it.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from controller.store.engine import open_engine, parse_url, reading, writing
from controller.store.errors import NewerSchemaError, StoreError, shown
from controller.store.tables import metadata

HEAD = "0003"
"""The newest revision in ``migrations/versions``, written here so that an up-to-date store opens without Alembic."""
SCRIPTS = Path(__file__).parent / "migrations"


def revision(connection: Connection) -> str | None:
    """The schema revision of the store, or None where it has none yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def migrate(engine: Engine, *, to: str = HEAD) -> tuple[str | None, str]:
    """Upgrade to ``to``; returns the revisions before and after.

    Raises ``NewerSchemaError`` where the store is beyond what this version knows, ``StoreError`` where it cannot be
    reached or written. All steps run in one transaction: a migration that fails leaves the store as it was.
    """
    with reading(engine) as connection:
        before = revision(connection)
    if before == to:
        return before, to
    with writing(engine) as connection:
        # Looked at again under the write lock: another process may have migrated meanwhile.
        before = revision(connection)
        if before != to:
            _upgrade(connection, before, to)
    return before, to


def _upgrade(connection: Connection, before: str | None, to: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    known = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    if before is not None and before not in known:
        raise NewerSchemaError(shown(connection.engine.url), before, known[0])
    if before is None:
        # Never mix with what someone else keeps there.
        taken = sorted(set(inspect(connection).get_table_names()) & set(metadata.tables))
        if taken:
            raise StoreError(
                shown(connection.engine.url),
                f"holds a table {taken[0]!r} that is not tidegate's: name another database",
            )
    command.upgrade(config, to)


def migrate_url(url: str) -> tuple[str | None, str]:
    """Migrate the store at a URL (see ``open_store``) and close it again."""
    engine = open_engine(parse_url(url))
    try:
        return migrate(engine)
    finally:
        engine.dispose()
