"""Demand on the forecaster's 5-minute grid, filled from the samples that are there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the grid and fill it."""
    op.create_table(
        "demand_bins",
        sa.Column(
            "series_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        *[sa.Column(name, sa.BigInteger(), nullable=False) for name in ("at_s", "n", "sum_demand", "max_demand")],
        sa.ForeignKeyConstraint(["series_id"], ["series.seq"], name=op.f("fk_demand_bins_series_id_series")),
        sa.PrimaryKeyConstraint("series_id", "at_s", name=op.f("pk_demand_bins")),
        sqlite_with_rowid=False,
    )
    fill("team_samples", "demand")
    fill("pool_samples", "demand_milli_gpus")


def fill(table: str, demand: str) -> None:
    """Sum a table's samples up to the grid."""
    samples = sa.table(table, *map(sa.column, ("series_id", "at_s", demand)))
    bins = sa.table("demand_bins", *map(sa.column, ("series_id", "at_s", "n", "sum_demand", "max_demand")))
    at, value = samples.c.at_s, samples.c[demand]
    begin = at - at % sa.literal_column("300")
    rows = sa.select(samples.c.series_id, begin, sa.func.count(), sa.func.sum(value), sa.func.max(value))
    columns = ["series_id", "at_s", "n", "sum_demand", "max_demand"]
    op.execute(bins.insert().from_select(columns, rows.group_by(samples.c.series_id, begin)))
