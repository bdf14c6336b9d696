"""Writing and reading what learning left behind; rows are only ever added."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, case, func, literal, select

from controller.store import tables as t
from controller.store.engine import upsert
from controller.store.learning_records import (
    LearningDay,
    LearningEvent,
    LearningOutcome,
    LearningPoint,
    LearningTick,
    ModelFile,
)
from controller.store.samples import step_for
from controller.store.writing import dumps, pack

_PAIRS = ("quantiles", "candidates")


def append_ticks(connection: Connection, ticks: Iterable[LearningTick]) -> int:
    """Write rows that are not there yet, each with its bytes; returns how many."""
    k, added = t.learning_ticks.c, 0
    for tick in ticks:
        # Row by row: the growing key of each new row is where its bytes go. A tick has as many rows as pools.
        row = {name: getattr(tick, name) for name in LearningTick.__dataclass_fields__ if name != "inputs"}
        row |= {name: dumps(row[name]) for name in (*_PAIRS, "clipped")}
        insert = upsert(connection, t.learning_ticks).values(**row).on_conflict_do_nothing().returning(k.seq)
        seq = connection.execute(insert).scalar()
        if seq is not None:
            connection.execute(t.learning_inputs.insert().values(learning_tick_seq=seq, body=pack(tick.inputs)))
            added += 1
    return added


def append_outcomes(connection: Connection, outcomes: Iterable[LearningOutcome]) -> int:
    """Write outcomes that are not there yet; returns how many."""
    return _append(connection, t.learning_outcomes, map(_row, outcomes))


def append_days(connection: Connection, days: Iterable[LearningDay]) -> int:
    """Write days that are not there yet; returns how many."""
    return _append(connection, t.learning_days, map(_row, days))


def append_events(connection: Connection, events: Iterable[LearningEvent]) -> int:
    """Write events that are not there yet; returns how many."""
    return _append(connection, t.learning_events, ({**_row(one), "facts": dumps(one.facts)} for one in events))


def append_model(connection: Connection, model: ModelFile) -> bool:
    """Write a model file; False where it is there already."""
    return _append(connection, t.models, [_row(model)]) == 1


def _row(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _append(connection: Connection, table: Table, rows: Iterable[dict[str, Any]]) -> int:
    added = 0
    for row in rows:
        # One by one, and asking for what was written: not every driver counts inserted rows.
        insert = upsert(connection, table).values(**row).on_conflict_do_nothing().returning(literal(1))
        added += connection.execute(insert).first() is not None
    return added


def ticks(connection: Connection, cluster: str, pool: str, start_s: int, stop_s: int, limit: int) -> list[LearningTick]:
    """Rows of ``[start_s, stop_s)`` without their bytes, newest first."""
    k = t.learning_ticks.c
    query = select(t.learning_ticks, literal(None).label("body")).where(*_range(t.learning_ticks, cluster, pool))
    query = query.where(k.at_s >= start_s, k.at_s < stop_s).order_by(k.at_s.desc(), k.seq.desc()).limit(limit)
    return [_tick(row) for row in connection.execute(query).mappings()]


def tick(connection: Connection, tick_id: str) -> tuple[LearningTick, ...]:
    """All pools of one tick with their bytes, sorted by pool."""
    k, i = t.learning_ticks.c, t.learning_inputs
    query = select(t.learning_ticks, i.c.body).outerjoin(i, i.c.learning_tick_seq == k.seq)
    rows = connection.execute(query.where(k.tick_id == tick_id).order_by(k.pool)).mappings()
    return tuple(_tick(row) for row in rows)


def _tick(row: Any) -> LearningTick:
    values = {name: row[name] for name in LearningTick.__dataclass_fields__ if name != "inputs"}
    for name in _PAIRS:
        values[name] = tuple((key, value) for key, value in json.loads(values[name]))
    values["clipped"] = tuple(json.loads(values["clipped"]))
    return LearningTick(inputs=zlib.decompress(row["body"]) if row["body"] else b"", **values)


_WANTED = ("demand_milli_gpus", "rule_nodes", "learner_nodes", "target_nodes")


def points(
    connection: Connection, cluster: str, pool: str, start_s: int, stop_s: int, max_points: int
) -> list[LearningPoint]:
    """What was wanted in ``[start_s, stop_s)``, oldest first, in stretches so wide that ``max_points`` are enough."""
    k = t.learning_ticks.c
    inside = (*_range(t.learning_ticks, cluster, pool), k.at_s >= start_s, k.at_s < stop_s)
    count, first, last = connection.execute(
        select(func.count(), func.min(k.at_s), func.max(k.at_s)).where(*inside)
    ).one()
    if not count:
        return []
    step = 1 if count <= max_points else step_for(first, last + 1, max_points)
    bucket = k.at_s - k.at_s % step
    # Sums and counts, divided here: databases round means each in its own way.
    parts = [part for name in _WANTED for part in (func.sum(k[name]), func.count(k[name]))]
    rows = connection.execute(select(bucket, *parts).where(*inside).group_by(bucket).order_by(bucket))
    return [_point(*row) for row in rows]


def _point(at_s: int, *parts: Any) -> LearningPoint:
    demand, rule, learner, target = zip(parts[::2], parts[1::2], strict=True)
    wanted = None if learner[1] == 0 else _mean(*learner, 1000)
    return LearningPoint(at_s, _mean(*demand, 1), _mean(*rule, 1000), wanted, _mean(*target, 1000))


def _mean(total: Any, count: int, times: int) -> int:
    """The mean of whole numbers as one, halves up."""
    return (2 * times * int(total) + count) // (2 * count)


def _range(table: Table, cluster: str, pool: str) -> Sequence[ColumnElement[bool]]:
    return table.c.cluster == cluster, table.c.pool == pool


def outcomes(
    connection: Connection, cluster: str, pool: str, start_s: int, stop_s: int, limit: int
) -> list[LearningOutcome]:
    """Outcomes of the ticks of ``[start_s, stop_s)``, newest first."""
    o = t.learning_outcomes.c
    query = select(*(o[name] for name in LearningOutcome.__dataclass_fields__))
    query = query.where(*_range(t.learning_outcomes, cluster, pool), o.at_s >= start_s, o.at_s < stop_s)
    return [LearningOutcome(*row) for row in connection.execute(query.order_by(o.at_s.desc(), o.tick_id).limit(limit))]


def days(connection: Connection, cluster: str, pool: str, start_s: int, stop_s: int) -> list[LearningDay]:
    """Days that begin in ``[start_s, stop_s)``, by day and name."""
    d = t.learning_days.c
    query = select(*(d[name] for name in LearningDay.__dataclass_fields__))
    query = query.where(*_range(t.learning_days, cluster, pool), d.day_s >= start_s, d.day_s < stop_s)
    return [LearningDay(*row) for row in connection.execute(query.order_by(d.day_s, d.name))]


_TOLD = {kind: place for place, kind in enumerate(("recovery", "demotion", "gate", "promotion", "kill"))}


def events(
    connection: Connection, cluster: str, pool: str, start_s: int, stop_s: int, kind: str | None, limit: int
) -> list[LearningEvent]:
    """Events of ``[start_s, stop_s)``, newest first; those of one tick as the ladder told them, the last one first."""
    e = t.learning_events.c
    query = select(t.learning_events).where(*_range(t.learning_events, cluster, pool))
    query = query.where(e.at_s >= start_s, e.at_s < stop_s)
    if kind is not None:
        query = query.where(e.kind == kind)
    told = case(_TOLD, value=e.kind, else_=len(_TOLD))
    query = query.order_by(e.at_s.desc(), told.desc(), e.code.desc()).limit(limit)
    return [_event(row) for row in connection.execute(query).mappings()]


def _event(row: Any) -> LearningEvent:
    values = {name: row[name] for name in LearningEvent.__dataclass_fields__}
    values["facts"] = tuple((name, value) for name, value in json.loads(row["facts"]))
    return LearningEvent(**values)


def model(connection: Connection, fingerprint: str) -> ModelFile | None:
    """A model file with its body; of pools that share it, the first by name."""
    m = t.models.c
    query = select(*(m[name] for name in ModelFile.__dataclass_fields__)).where(m.fingerprint == fingerprint)
    row = connection.execute(query.order_by(m.cluster, m.pool).limit(1)).first()
    return None if row is None else ModelFile(*row)


def models(connection: Connection, cluster: str, pool: str, limit: int) -> list[ModelFile]:
    """A pool's model files without their bodies, newest first."""
    m = t.models.c
    columns = [m[name] for name in ModelFile.__dataclass_fields__ if name != "body"]
    query = select(*columns).where(*_range(t.models, cluster, pool))
    rows = connection.execute(query.order_by(m.made_at_s.desc(), m.fingerprint).limit(limit))
    return [ModelFile(**row, body=b"") for row in rows.mappings()]
