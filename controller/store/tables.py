"""The tables, typed once; the migrations create them and a test holds the two equal.

Times are epoch seconds of the world (simulated or real), amounts milli-GPUs, all 64-bit integers. Samples are keyed
``(series, moment)`` and stored in that order, so that a chart of one team reads one contiguous stretch.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

SERIAL = BigInteger().with_variant(Integer(), "sqlite")
"""A growing 64-bit key; SQLite grows only columns declared INTEGER."""


def _key() -> Column[int]:
    return Column("seq", SERIAL, primary_key=True, autoincrement=True)


def _big(*names: str, null: bool = False) -> list[Column[int]]:
    return [Column(name, BigInteger, nullable=null) for name in names]


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


def _series_and(moment: str) -> list[Column[int]]:
    return [
        Column("series_id", SERIAL, ForeignKey("series.seq"), primary_key=True, autoincrement=False),
        Column(moment, BigInteger, primary_key=True, autoincrement=False),
    ]


series = Table(
    "series",
    metadata,
    _key(),
    *_texts("cluster", "pool", "team"),
    UniqueConstraint("cluster", "pool", "team"),
)
"""A team in a pool of a cluster; team "" is the pool itself."""

policies = Table(
    "policies",
    metadata,
    Column("fingerprint", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    *_big("first_at_s"),
)

ticks = Table(
    "ticks",
    metadata,
    _key(),
    Column("id", Text, nullable=False, unique=True),
    *_texts("cluster"),
    *_big("at_s", "wall_at_s"),
    *_texts("mode", "policy"),
    Column("policy_fingerprint", Text, ForeignKey("policies.fingerprint"), nullable=False),
    *_big("actions", "notes", "violations"),
    Index(None, "cluster", "at_s", "seq"),
    sqlite_autoincrement=True,
)

payloads = Table(
    "payloads",
    metadata,
    Column(
        "tick_seq",
        SERIAL,
        ForeignKey("ticks.seq", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    *[Column(name, LargeBinary, nullable=False) for name in ("snapshot", "forecasts", "advice", "decision")],
)
"""What a tick saw and decided, canonical bytes compressed with zlib; the first to go when a store is pruned."""

TEAM_MEANS = (
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
TEAM_MAXIMA = ("demand", "held", "pending", "longest_wait_s", "starved")
POOL_MEANS = (
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
POOL_MAXIMA = ("demand_milli_gpus", "held_milli_gpus", "supply_milli_gpus", "nodes_gpu_missing", "over_limit_gpus")

team_samples = Table(
    "team_samples",
    metadata,
    *_series_and("at_s"),
    *_big(*TEAM_MEANS, "longest_wait_s"),
    Column("starved", SmallInteger, nullable=False),
    *_texts("bounds_from"),
    sqlite_with_rowid=False,
)

pool_samples = Table(
    "pool_samples",
    metadata,
    *_series_and("at_s"),
    *_big(*POOL_MEANS),
    *_big("advised_nodes", "quantile_permille", null=True),
    *_texts("source"),
    sqlite_with_rowid=False,
)


def _hours(name: str, means: tuple[str, ...], maxima: tuple[str, ...]) -> Table:
    return Table(
        name,
        metadata,
        *_series_and("at_s"),
        *_big("n", *(f"sum_{field}" for field in means), *(f"max_{field}" for field in maxima)),
        sqlite_with_rowid=False,
    )


team_hours = _hours("team_hours", TEAM_MEANS, TEAM_MAXIMA)
"""Sums and maxima of an hour's samples, kept up with every tick, so that they are complete at any moment."""
pool_hours = _hours("pool_hours", POOL_MEANS, POOL_MAXIMA)

demand_bins = Table(
    "demand_bins",
    metadata,
    *_series_and("at_s"),
    *_big("n", "sum_demand", "max_demand"),
    sqlite_with_rowid=False,
)
"""Demand on the forecaster's 5-minute grid: from ticks, or loaded as history."""

forecasts = Table(
    "forecasts",
    metadata,
    Column("series_id", SERIAL, ForeignKey("series.seq"), primary_key=True, autoincrement=False),
    *[Column(name, BigInteger, primary_key=True, autoincrement=False) for name in ("start_s", "end_s", "issued_at_s")],
    *_texts("model", "levels_permille", "milli_gpus"),
    sqlite_with_rowid=False,
)

_REASON = ("code", "pool", "team", "subject", "facts")


def _entries(name: str, *extra: Column[str]) -> Table:
    return Table(
        name,
        metadata,
        _key(),
        Column("tick_seq", SERIAL, ForeignKey("ticks.seq", ondelete="CASCADE"), nullable=False, index=True),
        *_texts("cluster"),
        *_big("at_s"),
        *_texts(*_REASON),
        *extra,
        Index(None, "cluster", "at_s", "seq"),
        Index(None, "cluster", "team", "at_s", "seq"),
        Index(None, "cluster", "code", "at_s", "seq"),
        sqlite_autoincrement=True,
    )


actions = _entries("actions", *_texts("action_id", "kind", "reason_pool", "reason_team", "reason_subject", "detail"))
"""Each action of each tick; ``detail`` is the action's canonical JSON."""
Index(None, actions.c.cluster, actions.c.kind, actions.c.at_s, actions.c.seq)
notes = _entries("notes")
"""Reasons that led to no action, the first of each tick (the payload has them all)."""

outcomes = Table(
    "outcomes",
    metadata,
    _key(),
    Column("tick_seq", SERIAL, ForeignKey("ticks.seq", ondelete="CASCADE"), nullable=False, index=True),
    Column("action_id", Text, nullable=False, index=True),
    *_big("at_s"),
    *_texts("status", "detail"),
    sqlite_autoincrement=True,
)

violations = Table(
    "violations",
    metadata,
    _key(),
    *_texts("key", "cluster", "policy", "rule", "pool", "team"),
    *_big("opened_at_s", "last_seen_at_s"),
    *_big("closed_at_s", null=True),
    *_big("since_s", "measured", "allowed"),
    *_texts("unit", "severity", "action", "subjects", "code", "reason"),
    *[
        Column(name, SERIAL, ForeignKey("ticks.seq", ondelete="SET NULL"), nullable=True, index=True)
        for name in ("opened_tick_seq", "last_tick_seq")
    ],
    Index(None, "cluster", "opened_at_s"),
    Index(
        "uq_violations_open_key",
        "key",
        unique=True,
        sqlite_where=text("closed_at_s IS NULL"),
        postgresql_where=text("closed_at_s IS NULL"),
    ),
    sqlite_autoincrement=True,
)
"""One row an incident: opened when first seen, closed by the first tick that no longer sees it."""

kv = Table("kv", metadata, Column("key", Text, primary_key=True), *_texts("value"))


def _named(*names: str) -> list[Column[str]]:
    return [Column(name, Text, primary_key=True) for name in names]


learning_ticks = Table(
    "learning_ticks",
    metadata,
    _key(),
    *_texts("tick_id", "cluster", "pool"),
    *_big("at_s"),
    *_texts("ceiling", "rung", "acting"),
    *_big("demand_milli_gpus", "lead_s", "rule_nodes", "target_nodes"),
    *_big("learner_nodes", "implied_permille", null=True),
    *_texts("quantiles", "candidates", "move", "clipped", "model", "inputs_hash"),
    UniqueConstraint("tick_id", "pool"),
    Index(None, "cluster", "pool", "at_s", "seq"),
    Index(None, "at_s"),
    Index(None, "model"),
    sqlite_autoincrement=True,
)
"""What learning wanted, by pool and tick. No reference to ``ticks``: a backtest or a notebook may keep these alone."""

learning_inputs = Table(
    "learning_inputs",
    metadata,
    Column(
        "learning_tick_seq",
        SERIAL,
        ForeignKey("learning_ticks.seq", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("body", LargeBinary, nullable=False),
)
"""What the advice was computed from, compressed with zlib; kept apart because it is the first to go."""

learning_outcomes = Table(
    "learning_outcomes",
    metadata,
    *_named("tick_id", "pool"),
    *_texts("cluster"),
    *_big("at_s", "rule_cost_milli", "cost_milli", "regret_milli"),
    Index(None, "cluster", "pool", "at_s"),
)

learning_days = Table(
    "learning_days",
    metadata,
    *_named("cluster", "pool"),
    Column("day_s", BigInteger, primary_key=True, autoincrement=False),
    *_named("name"),
    *_big("cost_milli", "saving_milli", "steps"),
    sqlite_with_rowid=False,
)

learning_events = Table(
    "learning_events",
    metadata,
    *_named("cluster", "pool"),
    Column("at_s", BigInteger, primary_key=True, autoincrement=False),
    *_named("kind", "code"),
    *_texts("rung", "acting", "facts", "sentence"),
    sqlite_with_rowid=False,
)

models = Table(
    "models",
    metadata,
    *_named("fingerprint", "cluster", "pool"),
    *_big("made_at_s"),
    *_texts("kind", "code_fingerprint", "data_fingerprint"),
    Column("body", LargeBinary, nullable=False),
    Index(None, "cluster", "pool", "made_at_s"),
)
"""Fitted models, kept as long as a row of ``learning_ticks`` cites them; ``body`` as it was given, never compressed."""
