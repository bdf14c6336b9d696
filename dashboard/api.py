"""``/api/v1``: the same data for programs, and the charts' figures. Amounts in milli-GPUs, times in epoch seconds."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response
from pydantic import BaseModel

from controller.core.canonical import plain
from controller.core.quantities import DAY_S, MILLI
from dashboard import figures, view
from dashboard.context import Look, Looking

# Imported with the module and not when first asked for: Plotly looks for pandas among loaded modules, and finds half
# of it while another thread is still importing it.
from forecaster.history import panel_from_rows
from forecaster.models.day_ahead import HOURS, day_ahead

router = APIRouter(prefix="/api/v1")
POINTS = 600
LARGEST = 2**63 - 1
"""The largest number that a database keeps."""


class Tick(BaseModel):
    """The newest tick; ``id`` None while the store is empty."""

    id: str | None
    at_s: int | None
    mode: str | None
    cluster: str
    wall_at_s: int | None


class Standing(BaseModel):
    """The newest tick with its pools, teams and open violations."""

    tick: Tick
    pools: list[dict[str, Any]]
    teams: list[dict[str, Any]]
    violations: list[dict[str, Any]]


class Action(BaseModel):
    """One action and why."""

    seq: int
    tick_id: str
    action_id: str
    at_s: int
    kind: str
    pool: str
    team: str
    subject: str
    code: str
    sentence: str
    status: str | None


class Series(BaseModel):
    """A series as columns; ``step_s`` 0: each point is one tick, else its mean."""

    step_s: int
    at_s: list[int]
    values: dict[str, list[int]]


@router.get("/clusters", tags=["data"])
def clusters(look: Looking) -> list[str]:
    """The clusters of which something is stored."""
    return list(look.clusters)


@router.get("/ticks/latest", tags=["data"])
def latest(look: Looking) -> Tick:
    """The newest tick: poll this, and read on when its id changes."""
    tick = look.now.tick if look.now else None
    return Tick(
        id=tick.id if tick else None,
        at_s=tick.at_s if tick else None,
        mode=tick.mode if tick else None,
        cluster=look.cluster,
        wall_at_s=tick.wall_at_s if tick else None,
    )


@router.get("/now", tags=["data"])
def now(look: Looking) -> Standing:
    """How pools and teams stand."""
    found = look.now
    return Standing(
        tick=latest(look),
        pools=[plain(pool) for pool in found.pools] if found else [],
        teams=[plain(team) for team in found.teams] if found else [],
        violations=[plain(v) | {"sentence": view.sentence(v.reason)} for v in found.violations] if found else [],
    )


@router.get("/decisions", tags=["data"])
def decisions(
    look: Looking,
    team: Annotated[str | None, Query(max_length=100)] = None,
    pool: Annotated[str | None, Query(max_length=100)] = None,
    kind: Annotated[str | None, Query(max_length=40)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    before: Annotated[int | None, Query(ge=1, le=LARGEST)] = None,
) -> list[Action]:
    """Actions in the range, newest first; hand the last ``seq`` in as ``before`` for the next page."""
    rows = look.store.decisions(
        look.cluster,
        look.span.start_s,
        look.span.stop_s,
        team=team,
        pool=pool,
        kind=kind,
        limit=limit,
        before_id=before,
    )
    return [
        Action(
            seq=row.seq,
            tick_id=row.tick_id,
            action_id=row.action_id,
            at_s=row.at_s,
            kind=row.kind,
            pool=row.pool,
            team=row.team,
            subject=row.subject,
            code=row.reason.code.value,
            sentence=view.sentence(row.reason),
            status=row.outcomes[-1].status if row.outcomes else None,
        )
        for row in rows
    ]


@router.get("/decisions/{tick_id}", tags=["data"])
def decision(look: Looking, tick_id: str) -> dict[str, Any]:
    """One recorded decision in its canonical form."""
    record = look.store.record(tick_id)
    if record is None:
        raise HTTPException(404, f"no record of decision {tick_id!r}")
    return dict(json.loads(record.decision))


@router.get("/teams/{pool}/{team}/series", tags=["data"])
def team_series(look: Looking, pool: str, team: str, points: Annotated[int, Query(ge=2, le=5000)] = POINTS) -> Series:
    """A team's standing over time."""
    known(look, pool, team)
    columns = look.store.team_series(look.cluster, pool, team, look.span.start_s, look.span.stop_s, points)
    return Series(step_s=columns.step_s, at_s=columns.at_s, values=columns.values)


@router.get("/pools/{pool}/series", tags=["data"])
def pool_series(look: Looking, pool: str, points: Annotated[int, Query(ge=2, le=5000)] = POINTS) -> Series:
    """A pool's standing over time."""
    known(look, pool, "")
    columns = look.store.pool_series(look.cluster, pool, look.span.start_s, look.span.stop_s, points)
    return Series(step_s=columns.step_s, at_s=columns.at_s, values=columns.values)


def known(look: Looking, pool: str, team: str) -> None:
    """Refuse series of which nothing is stored."""
    if (pool, team) not in look.store.series(look.cluster):
        raise HTTPException(404, f"no series of team {team!r} in pool {pool!r}" if team else f"no pool {pool!r}")


def chart(figure: Any) -> Response:
    """A figure as an answer."""
    return Response(figures.document(figure), media_type="application/json")


@router.get("/figures/pools/{pool}/{name}", tags=["figures"])
def pool_figure(look: Looking, pool: str, name: str) -> Response:
    """A pool's chart: ``fleet`` or ``nodes``."""
    known(look, pool, "")
    if name not in ("fleet", "nodes"):
        raise HTTPException(404, f"no chart {name!r}; there are fleet and nodes")
    columns = look.store.pool_series(look.cluster, pool, look.span.start_s, look.span.stop_s, POINTS)
    if name == "nodes":
        return chart(figures.nodes(columns.at_s, columns.values, look.zone))
    per_node = look.gpus_per_node.get(pool, 0)
    return chart(figures.fleet(columns.at_s, columns.values, look.zone, per_node, _expected(look, pool)))


def _expected(look: Look, pool: str) -> figures.Expected | None:
    """The newest forecast of the time after a node's start, median to 90 % quantile; None for a past range."""
    if look.now is None or look.span.stop_s <= look.now.tick.at_s:
        return None
    point = view.shortest(look.store.latest_forecast(look.cluster, pool))
    if point is None or point.issued_at_s + point.end_s <= look.now.tick.at_s:
        return None
    at = dict(zip(point.levels_permille, point.milli_gpus, strict=True))
    if not {500, 900} <= at.keys():
        return None
    span = point.issued_at_s + point.start_s, point.issued_at_s + point.end_s
    return figures.Expected(*span, 500, 900, at[500], at[900])


@router.get("/figures/teams/{pool}/{team}/{name}", tags=["figures"])
def team_figure(look: Looking, pool: str, team: str, name: str) -> Response:
    """A team's chart: ``share`` or ``waits``."""
    known(look, pool, team)
    columns = look.store.team_series(look.cluster, pool, team, look.span.start_s, look.span.stop_s, POINTS)
    if name == "share":
        return chart(figures.team(columns.at_s, columns.values, look.zone))
    if name == "waits":
        longest = columns.values["longest_wait_s_max"]
        return chart(figures.waits(columns.at_s, columns.values["pending"], longest, look.zone))
    raise HTTPException(404, f"no chart {name!r}; there are share and waits")


@router.get("/figures/forecasts/{pool}/{window}", tags=["figures"])
def forecast_figure(
    look: Looking, pool: str, window: str, team: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Forecast quantiles against actual demand; ``window`` as ``600-1500`` (seconds ahead), no team for the total."""
    known(look, pool, team)
    start, _, end = window.partition("-")
    if not (start.isdigit() and end.isdigit()):
        raise HTTPException(422, "window: two numbers of seconds, such as 600-1500")
    span = (int(start), int(end))
    made = look.store.forecast_series(look.cluster, pool, team, span, look.span.start_s, look.span.stop_s, POINTS)
    actual = look.store.demand_series(look.cluster, pool, team, look.span.start_s, look.span.stop_s, POINTS)
    levels = made[-1].levels_permille if made else ()
    rows = [point for point in made if point.levels_permille == levels]
    quantiles = {level: [point.milli_gpus[i] for point in rows] for i, level in enumerate(levels)}
    middle = (span[0] + span[1]) // 2
    moments = [point.issued_at_s + middle for point in rows]
    return chart(figures.forecast(moments, quantiles, actual.at_s, actual["demand"], look.zone))


@router.get("/figures/ahead/{pool}", tags=["figures"])
def ahead_figure(look: Looking, pool: str, team: Annotated[str, Query(max_length=100)] = "") -> Response:
    """The next day and a half by the hour, after the last three days; no team for the total."""
    known(look, pool, team)
    now_s = look.now.tick.at_s if look.now else 0
    past = look.store.demand_series(look.cluster, pool, team, now_s - 28 * DAY_S, now_s + 1, 28 * 288)
    rows = [(at, team, milli / MILLI) for at, milli in zip(past.at_s, past["demand"], strict=True)]
    panel = panel_from_rows(rows, look.zone)
    if panel is None:
        return chart(figures.ahead([], {}, [], [], look.zone))
    made = day_ahead(panel, team, panel.time(panel.rows))
    hours = [made.start_s + hour * 3600 for hour in range(HOURS)]
    quantiles = {
        round(level * 1000): (made.values[:, i] * MILLI).round().astype(int).tolist()
        for i, level in enumerate(made.levels)
    }
    recent = [k for k, at in enumerate(past.at_s) if at >= now_s - 3 * DAY_S]
    return chart(
        figures.ahead(hours, quantiles, [past.at_s[k] for k in recent], [past["demand"][k] for k in recent], look.zone)
    )
