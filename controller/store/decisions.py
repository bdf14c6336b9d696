"""Reading ticks, actions, outcomes and incidents: what was done, why, and what became of it."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, and_, or_, select

from controller.core.reasons import Reason, ReasonCode
from controller.store import tables as t
from controller.store.records import (
    ActionRow,
    DecisionView,
    NoteRow,
    OutcomeRow,
    TickHeader,
    TickRecord,
    ViolationRow,
)

_HEADER = [t.ticks.c[field] for field in TickHeader.__dataclass_fields__]


def latest(connection: Connection, cluster: str) -> TickHeader | None:
    """The newest tick of a cluster."""
    query = select(*_HEADER).where(t.ticks.c.cluster == cluster)
    row = connection.execute(query.order_by(t.ticks.c.at_s.desc(), t.ticks.c.seq.desc()).limit(1)).first()
    return None if row is None else TickHeader(*row)


def headers(connection: Connection, cluster: str, start_s: int, stop_s: int, limit: int) -> list[TickHeader]:
    """Ticks of ``[start_s, stop_s)``, newest first."""
    k = t.ticks.c
    query = select(*_HEADER).where(k.cluster == cluster, k.at_s >= start_s, k.at_s < stop_s)
    rows = connection.execute(query.order_by(k.at_s.desc(), k.seq.desc()).limit(limit))
    return [TickHeader(*row) for row in rows]


def record(connection: Connection, tick_id: str) -> TickRecord | None:
    """A tick with its bytes; None where it is unknown or its bytes have been pruned."""
    return _record(connection, t.ticks.c.id == tick_id)


def resume(connection: Connection, cluster: str) -> TickRecord | None:
    """The newest tick whose bytes are there."""
    return _record(connection, t.ticks.c.cluster == cluster)


def _record(connection: Connection, where: ColumnElement[bool]) -> TickRecord | None:
    k, p = t.ticks.c, t.payloads.c
    query = (
        select(k.id, k.cluster, k.at_s, k.wall_at_s, k.mode, k.policy_fingerprint)
        .add_columns(t.policies.c.body, p.snapshot, p.forecasts, p.advice, p.decision)
        .join_from(t.ticks, t.payloads, p.tick_seq == k.seq)
        .join(t.policies, t.policies.c.fingerprint == k.policy_fingerprint)
        .where(where)
        .order_by(k.at_s.desc(), k.seq.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else TickRecord(*row[:6], *map(zlib.decompress, row[6:]))


def decision(connection: Connection, tick_id: str) -> DecisionView | None:
    """One tick with its actions, notes and outcomes."""
    row = connection.execute(select(*_HEADER, t.ticks.c.seq).where(t.ticks.c.id == tick_id)).first()
    if row is None:
        return None
    seq = row[-1]
    a, n = t.actions.c, t.notes.c
    done = connection.execute(_actions().where(a.tick_seq == seq).order_by(a.seq)).mappings().all()
    noted = connection.execute(_notes().where(n.tick_seq == seq).order_by(n.seq)).mappings().all()
    return DecisionView(
        TickHeader(*row[:-1]),
        record(connection, tick_id),
        tuple(_action_rows(connection, done)),
        tuple(map(_note_row, noted)),
    )


def _actions() -> Select[Any]:
    return select(t.actions, t.ticks.c.id.label("tick_id")).join(t.ticks, t.ticks.c.seq == t.actions.c.tick_seq)


def _notes() -> Select[Any]:
    return select(t.notes, t.ticks.c.id.label("tick_id")).join(t.ticks, t.ticks.c.seq == t.notes.c.tick_seq)


def actions(
    connection: Connection, where: Sequence[ColumnElement[bool]], limit: int, before: int | None
) -> list[ActionRow]:
    """A page of actions, newest first."""
    query = _page(_actions().where(*where), connection, t.actions, limit, before)
    return _action_rows(connection, connection.execute(query).mappings().all())


def notes(
    connection: Connection, where: Sequence[ColumnElement[bool]], limit: int, before: int | None
) -> list[NoteRow]:
    """A page of notes, newest first."""
    query = _page(_notes().where(*where), connection, t.notes, limit, before)
    return [_note_row(row) for row in connection.execute(query).mappings()]


def _page(query: Select[Any], connection: Connection, table: Table, limit: int, before: int | None) -> Select[Any]:
    """Key-set paging: the cursor is the last row seen, so pages stay right while new rows arrive."""
    at, seq = table.c.at_s, table.c.seq
    if before is not None:
        cursor = connection.execute(select(at).where(seq == before)).scalar()
        if cursor is None:
            query = query.where(seq < before)
        else:
            query = query.where(at <= cursor, or_(at < cursor, and_(at == cursor, seq < before)))
    return query.order_by(at.desc(), seq.desc()).limit(limit)


def filters(
    table: Table, cluster: str, start_s: int, stop_s: int, chosen: dict[str, str | None]
) -> list[ColumnElement[bool]]:
    """The conditions of a list; a filter that is None does not apply."""
    c = table.c
    where = [c.cluster == cluster, c.at_s >= start_s, c.at_s < stop_s]
    return where + [c[name] == value for name, value in chosen.items() if value is not None]


def _action_rows(connection: Connection, rows: Sequence[Any]) -> list[ActionRow]:
    known = _outcomes(connection, sorted({row["tick_seq"] for row in rows}))
    return [
        ActionRow(
            **{name: row[name] for name in ("seq", "tick_id", "action_id", "cluster", "at_s", "kind")},
            **{name: row[name] for name in ("pool", "team", "subject")},
            reason=_reason(row, "reason_"),
            detail=json.loads(row["detail"]),
            outcomes=tuple(known[row["tick_seq"], row["action_id"]]),
        )
        for row in rows
    ]


def _outcomes(connection: Connection, ticks: list[int]) -> dict[tuple[int, str], list[OutcomeRow]]:
    o = t.outcomes.c
    found: dict[tuple[int, str], list[OutcomeRow]] = defaultdict(list)
    for begin in range(0, len(ticks), 500):
        query = (
            select(o.tick_seq, o.action_id, t.ticks.c.id, o.at_s, o.status, o.detail)
            .join(t.ticks, t.ticks.c.seq == o.tick_seq)
            .where(o.tick_seq.in_(ticks[begin : begin + 500]))
            .order_by(o.seq)
        )
        for seq, *rest in connection.execute(query):
            found[seq, rest[0]].append(OutcomeRow(*rest))
    return found


def _note_row(row: Any) -> NoteRow:
    return NoteRow(row["seq"], row["tick_id"], row["cluster"], row["at_s"], _reason(row, ""))


def _reason(row: Any, prefix: str) -> Reason:
    facts = tuple((name, value) for name, value in json.loads(row["facts"]))
    place = (row[f"{prefix}pool"], row[f"{prefix}team"], row[f"{prefix}subject"])
    return Reason(ReasonCode(row["code"]), *place, facts)


_OPENED = t.ticks.alias("opened")
_LAST = t.ticks.alias("last")


def violations(
    connection: Connection, cluster: str, *, open_only: bool, start_s: int, stop_s: int, limit: int
) -> list[ViolationRow]:
    """Incidents that overlap ``[start_s, stop_s)``: open ones first, then the latest opened."""
    v = t.violations.c
    query = (
        select(t.violations, _OPENED.c.id.label("opened_tick_id"), _LAST.c.id.label("last_tick_id"))
        .outerjoin(_OPENED, _OPENED.c.seq == v.opened_tick_seq)
        .outerjoin(_LAST, _LAST.c.seq == v.last_tick_seq)
        .where(v.cluster == cluster, v.opened_at_s < stop_s, or_(v.closed_at_s.is_(None), v.closed_at_s >= start_s))
    )
    if open_only:
        query = query.where(v.closed_at_s.is_(None))
    query = query.order_by(v.closed_at_s.is_not(None), v.opened_at_s.desc(), v.seq.desc()).limit(limit)
    return [_violation(row) for row in connection.execute(query)]


def _violation(row: Row[Any]) -> ViolationRow:
    values = dict(row._mapping)
    why = json.loads(values["reason"])
    facts = tuple((name, value) for name, value in why["facts"])
    values["reason"] = Reason(ReasonCode(why["code"]), why["pool"], why["team"], why["subject"], facts)
    values["subjects"] = tuple(json.loads(values["subjects"]))
    return ViolationRow(**{name: values[name] for name in ViolationRow.__dataclass_fields__})
