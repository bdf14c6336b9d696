"""Reading samples: standings at a moment, and series thinned in SQL to as many points as a chart can show.

Up to the resolution of an hour a series is read from the ticks' own samples, beyond that (or where those have been
pruned) from the hourly roll-ups: a year of one team is at most 8,784 rows, whatever the tick.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, Table, and_, cast, func, select

from controller.core.actions import PoolStanding, TeamStanding
from controller.core.forecast import TOTAL
from controller.store import tables as t
from controller.store.records import Columns, DemandSeries
from controller.store.writing import GRID_S, HOUR_S

STEPS_S = (60, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
"""Widths a chart's points may have; beyond a day whole multiples of a day."""


def series_id(connection: Connection, cluster: str, pool: str, team: str) -> int | None:
    """The id of a series, or None where nothing was ever stored of it."""
    s = t.series.c
    query = select(s.seq).where(s.cluster == cluster, s.pool == pool, s.team == team)
    return connection.execute(query).scalar()


def team_standings(connection: Connection, cluster: str, at_s: int) -> tuple[TeamStanding, ...]:
    """All teams at one tick, sorted by pool and team."""
    rows = _at(connection, t.team_samples, cluster, at_s, with_team=True)
    names = [field.name for field in fields(TeamStanding)]
    return tuple(
        TeamStanding(**{name: row[name] for name in names if name != "starved"}, starved=bool(row["starved"]))
        for row in rows
    )


def pool_standings(connection: Connection, cluster: str, at_s: int) -> tuple[PoolStanding, ...]:
    """All pools at one tick, sorted by name."""
    rows = _at(connection, t.pool_samples, cluster, at_s, with_team=False)
    names = [field.name for field in fields(PoolStanding)]
    return tuple(PoolStanding(**{name: row[name] for name in names}) for row in rows)


def _at(connection: Connection, table: Table, cluster: str, at_s: int, *, with_team: bool) -> list[Any]:
    s = t.series.c
    query = (
        select(s.pool, s.team, table)
        .join(table, and_(table.c.series_id == s.seq, table.c.at_s == at_s))
        .where(s.cluster == cluster, (s.team != TOTAL) if with_team else (s.team == TOTAL))
        .order_by(s.pool, s.team)
    )
    return list(connection.execute(query).mappings())


def team_columns(connection: Connection, series: int | None, start_s: int, stop_s: int, max_points: int) -> Columns:
    """One team's standing over ``[start_s, stop_s)`` in at most ``max_points`` points."""
    source = (t.team_samples, t.team_hours, t.TEAM_MEANS, t.TEAM_MAXIMA)
    return _columns(connection, source, series, start_s, stop_s, max_points)


def pool_columns(connection: Connection, series: int | None, start_s: int, stop_s: int, max_points: int) -> Columns:
    """One pool's standing over ``[start_s, stop_s)`` in at most ``max_points`` points."""
    source = (t.pool_samples, t.pool_hours, t.POOL_MEANS, t.POOL_MAXIMA)
    return _columns(connection, source, series, start_s, stop_s, max_points)


Source = tuple[Table, Table, tuple[str, ...], tuple[str, ...]]


def _columns(
    connection: Connection, source: Source, series: int | None, start_s: int, stop_s: int, max_points: int
) -> Columns:
    raw, hours, means, maxima = source
    if series is None:
        return _empty(means, maxima)
    kept_from = connection.execute(select(func.min(raw.c.at_s)).where(raw.c.series_id == series)).scalar()
    hour = start_s - start_s % HOUR_S
    pruned_until = stop_s if kept_from is None else min(stop_s, kept_from - HOUR_S + 1)
    if _extent(connection, hours, series, hour, pruned_until)[0]:
        _, first, last = _extent(connection, hours, series, hour, stop_s)
        assert first is not None
        assert last is not None
        step = max(HOUR_S, step_for(first, last + 1, max_points))
        return _bucketed(connection, hours, source, series, hour, stop_s, step)
    count, first, last = _extent(connection, raw, series, start_s, stop_s)
    if first is None or last is None:
        return _empty(means, maxima)
    if count <= max_points:
        return _raw(connection, source, series, start_s, stop_s)
    step = step_for(first, last + 1, max_points)
    if step >= HOUR_S:
        return _bucketed(connection, hours, source, series, hour, stop_s, step)
    return _bucketed(connection, raw, source, series, start_s, stop_s, step)


def _extent(
    connection: Connection, table: Table, series: int, start_s: int, stop_s: int
) -> tuple[int, int | None, int | None]:
    at = table.c.at_s
    query = select(func.count(), func.min(at), func.max(at))
    row = connection.execute(query.where(table.c.series_id == series, at >= start_s, at < stop_s)).one()
    return row[0], row[1], row[2]


def step_for(first_s: int, stop_s: int, max_points: int) -> int:
    """The smallest agreed width with which ``[first_s, stop_s)`` needs at most ``max_points`` points, but never < 2.

    Stretches begin at multiples of their width, so that charts of two ranges, or of two teams, line up.
    """
    max_points = max(max_points, 2)
    for step in STEPS_S:
        if _buckets(first_s, stop_s, step) <= max_points:
            return step
    # n + 1 stretches of a width of span / n cover the span wherever it begins.
    days = -(-(stop_s - first_s) // ((max_points - 1) * STEPS_S[-1]))
    return max(days, 1) * STEPS_S[-1]


def _buckets(first_s: int, stop_s: int, step: int) -> int:
    return (max(stop_s - 1, first_s) // step) - first_s // step + 1


def _empty(means: tuple[str, ...], maxima: tuple[str, ...]) -> Columns:
    return Columns(0, [], {name: [] for name in _names(means, maxima)})


def _names(means: tuple[str, ...], maxima: tuple[str, ...]) -> list[str]:
    return [*means, *(f"{name}_max" for name in maxima)]


def _raw(connection: Connection, source: Source, series: int, start_s: int, stop_s: int) -> Columns:
    table, _, means, maxima = source
    c = table.c
    query = select(c.at_s, *[c[name] for name in means], *[c[name] for name in maxima])
    query = query.where(c.series_id == series, c.at_s >= start_s, c.at_s < stop_s).order_by(c.at_s)
    return _pivot(0, connection.execute(query).all(), _names(means, maxima))


def _bucketed(
    connection: Connection, table: Table, source: Source, series: int, start_s: int, stop_s: int, step: int
) -> Columns:
    """Group into buckets; the weight of an hour is the number of its samples."""
    _, hours, means, maxima = source
    c = table.c
    rolled = table is hours
    bucket = (c.at_s - c.at_s % step).label("bucket")
    weight = _total(c.n) if rolled else func.count()
    totals: list[ColumnElement[Any]] = [_total(c[f"sum_{name}"] if rolled else c[name]) for name in means]
    highest: list[ColumnElement[Any]] = [func.max(c[f"max_{name}"] if rolled else c[name]) for name in maxima]
    query = select(bucket, weight, *totals, *highest)
    query = query.where(c.series_id == series, c.at_s >= start_s, c.at_s < stop_s)
    rows = connection.execute(query.group_by(bucket).order_by(bucket)).all()
    averaged = [
        (row[0], *(divide(total, row[1]) for total in row[2 : 2 + len(means)]), *row[2 + len(means) :]) for row in rows
    ]
    return _pivot(step, averaged, _names(means, maxima))


def _total(column: ColumnElement[Any]) -> ColumnElement[int]:
    # PostgreSQL's sum of bigints is numeric; the sums here stay far below 2**63.
    return cast(func.sum(column), BigInteger)


def divide(total: int, by: int) -> int:
    """Exact integer mean, halves rounded up."""
    return (2 * total + by) // (2 * by)


def _pivot(step: int, rows: Any, names: list[str]) -> Columns:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(len(names) + 1)]
    return Columns(step, columns[0], dict(zip(names, columns[1:], strict=True)))


def demand_history(connection: Connection, cluster: str, start_s: int, stop_s: int) -> list[DemandSeries]:
    """Demand of every team and pool over ``[start_s, stop_s)`` on the 5-minute grid."""
    s, b = t.series.c, t.demand_bins.c
    series = select(s.seq, s.pool, s.team).where(s.cluster == cluster).order_by(s.pool, s.team)
    # The mean is taken in SQL (halves up, as ``divide``): a month of 200 teams is more than a million rows.
    mean = (2 * b.sum_demand + b.n) // (2 * b.n)
    found = []
    for seq, pool, team in connection.execute(series).all():
        query = select(b.at_s, mean, b.max_demand).where(
            b.series_id == seq, b.at_s >= start_s - start_s % GRID_S, b.at_s < stop_s
        )
        rows = connection.execute(query.order_by(b.at_s)).all()
        if rows:
            at, means, highest = (list(column) for column in zip(*rows, strict=True))
            found.append(DemandSeries(pool, team, at, means, highest))
    return found


def demand_columns(connection: Connection, series: int | None, start_s: int, stop_s: int, max_points: int) -> Columns:
    """Demand alone, loaded history included, as columns ``demand`` (mean) and ``demand_max``."""
    names = ["demand", "demand_max"]
    b = t.demand_bins.c
    if series is None:
        return Columns(0, [], {name: [] for name in names})
    count, first, last = _extent(connection, t.demand_bins, series, start_s, stop_s)
    if first is None or last is None:
        return Columns(0, [], {name: [] for name in names})
    step = GRID_S if count <= max_points else max(GRID_S, step_for(first, last + 1, max_points))
    bucket = (b.at_s - b.at_s % step).label("bucket")
    query = select(bucket, _total(b.sum_demand), _total(b.n), func.max(b.max_demand))
    query = query.where(b.series_id == series, b.at_s >= start_s, b.at_s < stop_s)
    rows = connection.execute(query.group_by(bucket).order_by(bucket)).all()
    return _pivot(step, [(at, divide(total, n), high) for at, total, n, high in rows], names)
