"""What learning wanted, what it cost, who acts, and the model files; all append-only.

Frozen: this is the schema as it was; ``controller.store.tables`` is the schema as it is.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def serial() -> sa.types.TypeEngine[int]:
    """A 64-bit key; SQLite grows only columns declared INTEGER."""
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def big(*names: str, null: bool = False) -> list[sa.schema.SchemaItem]:
    """64-bit integers."""
    return [sa.Column(name, sa.BigInteger(), nullable=null) for name in names]


def texts(*names: str) -> list[sa.schema.SchemaItem]:
    """Texts."""
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def primary(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    """A named primary key."""
    return sa.PrimaryKeyConstraint(*columns, name=op.f(f"pk_{table}"))


def index(table: str, *columns: str) -> None:
    """A plain index."""
    op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, list(columns))


def upgrade() -> None:
    """Create the tables."""
    ticks()
    op.create_table(
        "learning_outcomes",
        *texts("tick_id", "pool", "cluster"),
        *big("at_s", "rule_cost_milli", "cost_milli", "regret_milli"),
        primary("learning_outcomes", "tick_id", "pool"),
    )
    index("learning_outcomes", "cluster", "pool", "at_s")
    op.create_table(
        "learning_days",
        *texts("cluster", "pool"),
        *big("day_s"),
        *texts("name"),
        *big("cost_milli", "saving_milli", "steps"),
        primary("learning_days", "cluster", "pool", "day_s", "name"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "learning_events",
        *texts("cluster", "pool"),
        *big("at_s"),
        *texts("kind", "code", "rung", "acting", "facts", "sentence"),
        primary("learning_events", "cluster", "pool", "at_s", "kind", "code"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "models",
        *texts("fingerprint", "cluster", "pool"),
        *big("made_at_s"),
        *texts("kind", "code_fingerprint", "data_fingerprint"),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        primary("models", "fingerprint", "cluster", "pool"),
    )
    index("models", "cluster", "pool", "made_at_s")


def ticks() -> None:
    """Rows by pool and tick, and apart from them the bytes that go first."""
    op.create_table(
        "learning_ticks",
        sa.Column("seq", serial(), autoincrement=True, nullable=False),
        *texts("tick_id", "cluster", "pool"),
        *big("at_s"),
        *texts("ceiling", "rung", "acting"),
        *big("demand_milli_gpus", "lead_s", "rule_nodes", "target_nodes"),
        *big("learner_nodes", "implied_permille", null=True),
        *texts("quantiles", "candidates", "move", "clipped", "model", "inputs_hash"),
        primary("learning_ticks", "seq"),
        sa.UniqueConstraint("tick_id", "pool", name=op.f("uq_learning_ticks_tick_id_pool")),
        sqlite_autoincrement=True,
    )
    index("learning_ticks", "cluster", "pool", "at_s", "seq")
    index("learning_ticks", "at_s")
    index("learning_ticks", "model")
    op.create_table(
        "learning_inputs",
        sa.Column("learning_tick_seq", serial(), autoincrement=False, nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["learning_tick_seq"],
            ["learning_ticks.seq"],
            name=op.f("fk_learning_inputs_learning_tick_seq_learning_ticks"),
            ondelete="CASCADE",
        ),
        primary("learning_inputs", "learning_tick_seq"),
    )
