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
    for table, demand in (("team_samples", "demand"), ("pool_samples", "demand_milli_gpus")):
        op.execute(
            "INSERT INTO demand_bins (series_id, at_s, n, sum_demand, max_demand) "
            f"SELECT series_id, at_s - at_s % 300, count(*), sum({demand}), max({demand}) "
            f"FROM {table} GROUP BY series_id, at_s - at_s % 300"
        )
