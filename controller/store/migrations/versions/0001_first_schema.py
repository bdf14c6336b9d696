"""Ticks with their bytes, samples and hours, forecasts, actions, notes, outcomes, violations, small state.

Frozen: this is the schema as it was; ``controller.store.tables`` is the schema as it is.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TEAM = (
    "floor",
    "ceiling",
    "entitlement",
    "share",
    "preemptible_share",
    "demand",
    "held",
    "pending",
    "lent",
    "borrowed",
    "overhang",
    "reserved",
)
TEAM_MAX = ("demand", "held", "pending", "longest_wait_s", "starved")
POOL = (
    "max_milli_gpus",
    "obtainable_milli_gpus",
    "supply_milli_gpus",
    "free_milli_gpus",
    "demand_milli_gpus",
    "held_milli_gpus",
    "unowned_milli_gpus",
    "nodes_ready",
    "nodes_booting",
    "nodes_gpu_missing",
    "nodes_cordoned",
    "target_nodes",
    "rule_nodes",
    "largest_gang_that_fits_milli_gpus",
    "stranded_milli_gpus",
    "micro_usd_per_hour",
    "over_limit_gpus",
)
POOL_MAX = (
    "demand_milli_gpus",
    "held_milli_gpus",
    "supply_milli_gpus",
    "nodes_gpu_missing",
    "over_limit_gpus",
)


def serial() -> sa.types.TypeEngine[int]:
    """A 64-bit key; SQLite grows only columns declared INTEGER."""
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def key() -> list[sa.schema.SchemaItem]:
    """A growing key."""
    return [sa.Column("seq", serial(), autoincrement=True, nullable=False)]


def big(*names: str, null: bool = False) -> list[sa.schema.SchemaItem]:
    """64-bit integers."""
    return [sa.Column(name, sa.BigInteger(), nullable=null) for name in names]


def texts(*names: str) -> list[sa.schema.SchemaItem]:
    """Texts."""
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def primary(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    """A named primary key."""
    return sa.PrimaryKeyConstraint(*columns, name=op.f(f"pk_{table}"))


def to_tick(table: str, column: str, on_delete: str, *, null: bool = False) -> list[sa.schema.SchemaItem]:
    """A reference to a tick."""
    name = op.f(f"fk_{table}_{column}_ticks")
    return [
        sa.Column(column, serial(), nullable=null, autoincrement=False),
        sa.ForeignKeyConstraint([column], ["ticks.seq"], name=name, ondelete=on_delete),
    ]


def by_series(table: str, moments: list[str], *columns: sa.schema.SchemaItem) -> None:
    """A table stored in the order of series and moment."""
    op.create_table(
        table,
        sa.Column("series_id", serial(), autoincrement=False, nullable=False),
        *big(*moments),
        *columns,
        sa.ForeignKeyConstraint(["series_id"], ["series.seq"], name=op.f(f"fk_{table}_series_id_series")),
        primary(table, "series_id", *moments),
        sqlite_with_rowid=False,
    )


def index(table: str, *columns: str) -> None:
    """A plain index."""
    op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, list(columns))


def upgrade() -> None:
    """Create everything."""
    op.create_table("kv", *texts("key", "value"), primary("kv", "key"))
    op.create_table(
        "policies",
        *texts("fingerprint"),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        *big("first_at_s"),
        primary("policies", "fingerprint"),
    )
    names = ("cluster", "pool", "team")
    unique = sa.UniqueConstraint(*names, name=op.f("uq_series_cluster_pool_team"))
    op.create_table("series", *key(), *texts(*names), primary("series", "seq"), unique)
    samples()
    ticks()
    entries()
    violations()


def samples() -> None:
    """Samples, hours and forecasts."""
    starved = sa.Column("starved", sa.SmallInteger(), nullable=False)
    by_series("team_samples", ["at_s"], *big(*TEAM, "longest_wait_s"), starved, *texts("bounds_from"))
    nullable = big("advised_nodes", "quantile_permille", null=True)
    by_series("pool_samples", ["at_s"], *big(*POOL), *nullable, *texts("source"))
    for table, means, maxima in (("team_hours", TEAM, TEAM_MAX), ("pool_hours", POOL, POOL_MAX)):
        rolled = [*(f"sum_{name}" for name in means), *(f"max_{name}" for name in maxima)]
        by_series(table, ["at_s"], *big("n", *rolled))
    by_series("forecasts", ["start_s", "end_s", "issued_at_s"], *texts("model", "levels_permille", "milli_gpus"))


def ticks() -> None:
    """Ticks and their bytes."""
    op.create_table(
        "ticks",
        *key(),
        *texts("id", "cluster"),
        *big("at_s", "wall_at_s"),
        *texts("mode", "policy", "policy_fingerprint"),
        *big("actions", "notes", "violations"),
        sa.ForeignKeyConstraint(
            ["policy_fingerprint"], ["policies.fingerprint"], name=op.f("fk_ticks_policy_fingerprint_policies")
        ),
        primary("ticks", "seq"),
        sa.UniqueConstraint("id", name=op.f("uq_ticks_id")),
        sqlite_autoincrement=True,
    )
    index("ticks", "cluster", "at_s", "seq")
    names = ("snapshot", "forecasts", "advice", "decision")
    blobs = [sa.Column(name, sa.LargeBinary(), nullable=False) for name in names]
    op.create_table("payloads", *to_tick("payloads", "tick_seq", "CASCADE"), *blobs, primary("payloads", "tick_seq"))


def entries() -> None:
    """Actions, notes and outcomes."""
    why = texts("code", "pool", "team", "subject", "facts")
    more = texts("action_id", "kind", "reason_pool", "reason_team", "reason_subject", "detail")
    for table, columns in (("actions", [*why, *more]), ("notes", texts("code", "pool", "team", "subject", "facts"))):
        op.create_table(
            table,
            *key(),
            *to_tick(table, "tick_seq", "CASCADE"),
            *texts("cluster"),
            *big("at_s"),
            *columns,
            primary(table, "seq"),
            sqlite_autoincrement=True,
        )
        index(table, "tick_seq")
        index(table, "cluster", "at_s", "seq")
        index(table, "cluster", "team", "at_s", "seq")
        index(table, "cluster", "code", "at_s", "seq")
    index("actions", "cluster", "kind", "at_s", "seq")
    op.create_table(
        "outcomes",
        *key(),
        *to_tick("outcomes", "tick_seq", "CASCADE"),
        *texts("action_id"),
        *big("at_s"),
        *texts("status", "detail"),
        primary("outcomes", "seq"),
        sqlite_autoincrement=True,
    )
    index("outcomes", "tick_seq")
    index("outcomes", "action_id")


def violations() -> None:
    """Incidents; a key is open at most once."""
    op.create_table(
        "violations",
        *key(),
        *texts("key", "cluster", "policy", "rule", "pool", "team"),
        *big("opened_at_s", "last_seen_at_s"),
        *big("closed_at_s", null=True),
        *big("since_s", "measured", "allowed"),
        *texts("unit", "severity", "action", "subjects", "code", "reason"),
        *to_tick("violations", "opened_tick_seq", "SET NULL", null=True),
        *to_tick("violations", "last_tick_seq", "SET NULL", null=True),
        primary("violations", "seq"),
        sqlite_autoincrement=True,
    )
    index("violations", "cluster", "opened_at_s")
    index("violations", "opened_tick_seq")
    index("violations", "last_tick_seq")
    still_open = sa.text("closed_at_s IS NULL")
    op.create_index(
        "uq_violations_open_key",
        "violations",
        ["key"],
        unique=True,
        sqlite_where=still_open,
        postgresql_where=still_open,
    )
