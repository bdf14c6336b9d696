"""Alembic's entry: runs the migrations on the connection that ``controller.store.migrate`` hands over."""

from __future__ import annotations

from alembic import context

from controller.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
