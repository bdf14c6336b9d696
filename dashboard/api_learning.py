"""``/api/v1/learning``: how learning stands in each pool, what it saved by day, what happened, what was wanted."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response
from pydantic import BaseModel

from controller.core.quantities import DAY_S, MILLI
from controller.learning.gate import Standing
from controller.store import LearningDay, LearningEvent
from dashboard.api import POINTS, chart, known
from dashboard.context import Look, Looking
from dashboard.figures import learning as charts
from dashboard.learning import SHOWN_DAYS, PoolLearning, pool_learning, pools, savings

router = APIRouter(prefix="/api/v1")


class Saving(BaseModel):
    """Mean saving over the rule a day and its standard error; None where it is not a number."""

    name: str
    mean_milli: int | None
    standard_error_milli: int | None
    days: int


class Reading(BaseModel):
    """One monitor against its limit; ``state``: ``fine``, ``over``, ``held`` or ``unknown``."""

    code: str
    what: str
    value: str
    limit: str
    state: str


class Weight(BaseModel):
    """A candidate's part of the hedge, in percent; ``nodes`` its target now."""

    name: str
    percent: float
    nodes: int | None


class Event(BaseModel):
    """Something that happened to the learner of a pool."""

    at_s: int
    kind: str
    rung: str
    acting: str
    code: str
    facts: dict[str, int | str]
    sentence: str


class Pool(BaseModel):
    """How learning stands in a pool; ``phase``: ``off``, ``killed``, ``new``, ``young`` or ``judged``."""

    pool: str
    phase: str
    ceiling: str
    rung: str
    acting: str
    learner: str
    saving: Saving | None
    climb: str
    last: Event | None
    verdict: Event | None
    weights: list[Weight]
    readings: list[Reading]
    gpu_hour_micro_usd: int


class ShadowDay(BaseModel):
    """One day of one shadow fleet; costs in milli-GPU-hours."""

    day_s: int
    name: str
    cost_milli: int
    saving_milli: int
    steps: int


class Wanted(BaseModel):
    """What was wanted over time, as columns; ``learner_milli_nodes`` None where it wanted nothing."""

    at_s: list[int]
    demand_milli_gpus: list[int]
    rule_milli_nodes: list[int]
    learner_milli_nodes: list[int | None]
    target_milli_nodes: list[int]


@router.get("/learning", tags=["learning"])
def learning(look: Looking) -> list[Pool]:
    """Who acts in each pool, why, and what the learner would save."""
    return [_pool(pool_learning(look, pool)) for pool in pools(look)]


def _pool(one: PoolLearning) -> Pool:
    return Pool(
        pool=one.pool,
        phase=one.phase,
        ceiling=one.ceiling.value,
        rung=one.rung.value,
        acting=one.acting,
        learner=one.learner,
        saving=_saving(one.standing) if one.standing else None,
        climb=one.climb,
        last=_event(one.last) if one.last else None,
        verdict=_event(one.verdict) if one.verdict else None,
        weights=[Weight(name=w.name, percent=round(w.percent, 4), nodes=w.nodes) for w in one.weights],
        readings=[Reading(code=r.code, what=r.what, value=r.value, limit=r.limit, state=r.state) for r in one.readings],
        gpu_hour_micro_usd=one.gpu_hour_micro_usd,
    )


def _saving(standing: Standing) -> Saving:
    return Saving(
        name=standing.name,
        mean_milli=_milli(standing.mean),
        standard_error_milli=_milli(standing.standard_error),
        days=standing.days,
    )


def _milli(value: float) -> int | None:
    return round(value * MILLI) if isfinite(value) else None


def _event(event: LearningEvent) -> Event:
    values: dict[str, Any] = {name: getattr(event, name) for name in Event.model_fields}
    return Event(**(values | {"facts": dict(event.facts)}))


@router.get("/learning/{pool}/days", tags=["learning"])
def days(look: Looking, pool: str) -> list[ShadowDay]:
    """The shadow fleets' days that begin in the range, by day and name."""
    known(look, pool, "")
    rows = look.store.learning_days(look.cluster, pool, look.span.start_s, look.span.stop_s)
    return [ShadowDay(**{name: getattr(row, name) for name in ShadowDay.model_fields}) for row in rows]


@router.get("/learning/{pool}/events", tags=["learning"])
def events(
    look: Looking,
    pool: str,
    kind: Annotated[str | None, Query(max_length=40)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> list[Event]:
    """Gate verdicts, promotions, demotions, kills, fits and recoveries in the range, newest first."""
    known(look, pool, "")
    span = (look.span.start_s, look.span.stop_s)
    return [_event(row) for row in look.store.learning_events(look.cluster, pool, *span, kind=kind, limit=limit)]


@router.get("/learning/{pool}/targets", tags=["learning"])
def targets(look: Looking, pool: str, points: Annotated[int, Query(ge=2, le=5000)] = POINTS) -> Wanted:
    """What learner and rule wanted over time against demand."""
    known(look, pool, "")
    rows = look.store.learning_points(look.cluster, pool, look.span.start_s, look.span.stop_s, points)
    return Wanted(**{name: [getattr(row, name) for row in rows] for name in Wanted.model_fields})


@router.get("/figures/learning/{pool}/{name}", tags=["figures"])
def figure(look: Looking, pool: str, name: str) -> Response:
    """A pool's charts of learning: ``saving`` by day (thirty days at least) and ``targets``."""
    known(look, pool, "")
    if name == "saving":
        shown = savings(shown_days(look, pool), look.store.learning_events(look.cluster, pool, kind="gate", limit=500))
        price = look.recorded.gpu_hour_micro_usd.get(pool, 0)
        return chart(charts.saving([(one.name, one.days) for one in shown], look.zone, price))
    if name == "targets":
        rows = look.store.learning_points(look.cluster, pool, look.span.start_s, look.span.stop_s, POINTS)
        return chart(charts.targets(rows, look.zone, look.gpus_per_node.get(pool, 0)))
    raise HTTPException(404, f"no chart {name!r}; there are saving and targets")


def shown_days(look: Look, pool: str) -> list[LearningDay]:
    """The days of the range, and of at least ``SHOWN_DAYS``: one bar says nothing."""
    stop_s = look.span.stop_s
    start_s = min(look.span.start_s, stop_s - SHOWN_DAYS * DAY_S)
    return look.store.learning_days(look.cluster, pool, start_s, stop_s)
