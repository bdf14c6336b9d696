"""Reading forecasts: as they were issued, and beside what came."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from sqlalchemy import Connection, Select, func, select

from controller.core.quantities import DAY_S
from controller.store import tables as t
from controller.store.records import ForecastPoint, ForecastWindow, ScoredForecast
from controller.store.samples import step_for
from controller.store.writing import GRID_S


def windows(connection: Connection, series: int | None) -> list[ForecastWindow]:
    """The windows for which a series has forecasts, nearest first."""
    f = t.forecasts.c
    query = select(f.start_s, f.end_s, func.count()).where(f.series_id == series)
    rows = connection.execute(query.group_by(f.start_s, f.end_s).order_by(f.start_s, f.end_s))
    return [ForecastWindow(*row) for row in rows]


def issued(
    connection: Connection, series: int | None, window: tuple[int, int], start_s: int, stop_s: int, max_points: int
) -> list[ForecastPoint]:
    """Forecasts for one window issued in ``[start_s, stop_s)``; beyond ``max_points`` the first of each stretch."""
    f = t.forecasts.c
    where = (f.series_id == series, f.start_s == window[0], f.end_s == window[1])
    inside = (f.issued_at_s >= start_s, f.issued_at_s < stop_s)
    found = select(func.count(), func.min(f.issued_at_s), func.max(f.issued_at_s)).where(*where, *inside)
    count, first, last = connection.execute(found).one()
    query = _points().where(*where, *inside)
    if count > max_points:
        step = step_for(first, last + 1, max_points)
        chosen = select(func.min(f.issued_at_s)).where(*where, *inside).group_by(f.issued_at_s - f.issued_at_s % step)
        query = query.where(f.issued_at_s.in_(chosen))
    return [_point(row) for row in connection.execute(query.order_by(f.issued_at_s))]


def newest(connection: Connection, series: int | None, at_or_before_s: int) -> list[ForecastPoint]:
    """All windows of the newest forecast of a series issued at or before a moment: the fan into the future."""
    f = t.forecasts.c
    latest = select(func.max(f.issued_at_s)).where(f.series_id == series, f.issued_at_s <= at_or_before_s)
    query = _points().where(f.series_id == series, f.issued_at_s == latest.scalar_subquery())
    return [_point(row) for row in connection.execute(query.order_by(f.start_s, f.end_s))]


def _points() -> Select[Any]:
    f = t.forecasts.c
    return select(f.issued_at_s, f.start_s, f.end_s, f.model, f.levels_permille, f.milli_gpus)


def _point(row: Any) -> ForecastPoint:
    levels, values = (tuple(map(int, text.split(","))) for text in row[4:6])
    return ForecastPoint(row[0], row[1], row[2], row[3], levels, values)


def scored(connection: Connection, series: int | None, points: list[ForecastPoint]) -> list[ScoredForecast]:
    """Put beside each forecast what came; forecasts whose window is not over, or was not seen whole, are left out.

    Demand is that of the 5-minute grid: the maximum of the bins that overlap the window.
    """
    if not points:
        return []
    b = t.demand_bins.c
    first = points[0].issued_at_s - DAY_S - GRID_S
    last = max(point.issued_at_s + point.end_s for point in points)
    query = select(b.at_s, b.max_demand).where(b.series_id == series, b.at_s >= first, b.at_s < last)
    rows = connection.execute(query.order_by(b.at_s)).all()
    at, demand = [row[0] for row in rows], [row[1] for row in rows]
    compared = (_score(point, at, demand) for point in points)
    return [one for one in compared if one is not None]


def _score(point: ForecastPoint, at: list[int], demand: list[int]) -> ScoredForecast | None:
    begin, end = point.issued_at_s + point.start_s, point.issued_at_s + point.end_s
    actual = _highest(at, demand, begin, end)
    if actual is None:
        return None
    known = bisect_right(at, point.issued_at_s)
    last_value = demand[known - 1] if known and at[known - 1] > point.issued_at_s - 3 * GRID_S else None
    return ScoredForecast(point, actual, last_value, _highest(at, demand, begin - DAY_S, end - DAY_S))


def _highest(at: list[int], demand: list[int], begin: int, end: int) -> int | None:
    """The maximum over the bins that overlap ``[begin, end)``; None unless every one of them is there."""
    low = bisect_left(at, begin - begin % GRID_S)
    high = bisect_left(at, end)
    wanted = -(-end // GRID_S) - begin // GRID_S
    return max(demand[low:high]) if high - low == wanted else None
