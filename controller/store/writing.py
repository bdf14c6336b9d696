"""Writing one tick: a single transaction that fills every table a later question is answered from."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, func, select, update

from controller.core.actions import Action, Decision, Violation, action_id
from controller.core.canonical import canonical_bytes, plain
from controller.core.forecast import TOTAL, Forecasts
from controller.core.reasons import Reason
from controller.store import tables as t
from controller.store.engine import upsert
from controller.store.records import TickRecord

GRID_S = 300
HOUR_S = 3600
NOTES_PER_TICK = 50
"""Notes repeat from tick to tick; beyond these the payload has them all."""
ZLIB_LEVEL = 3
"""On snapshots level 3 gives nearly the ratio of 6 at a third of the time."""

Row = dict[str, Any]
Key = tuple[str, str]


def append_tick(connection: Connection, record: TickRecord, decision: Decision, forecasts: Forecasts) -> bool:
    """Write a tick; False when that id is there already.

    A tick at or before the cluster's newest moment (a restart within one tick, a clock set back) is kept as a record,
    but adds no samples and moves no incident: each moment counts once.
    """
    if connection.execute(select(t.ticks.c.seq).where(t.ticks.c.id == record.id)).first():
        return False
    newest = connection.execute(select(func.max(t.ticks.c.at_s)).where(t.ticks.c.cluster == record.cluster)).scalar()
    seq = _tick(connection, record, decision)
    _entries(connection, seq, record, decision)
    ids = _series(connection, decision, forecasts)
    _forecasts(connection, ids, forecasts)
    if newest is None or record.at_s > newest:
        _samples(connection, ids, decision)
        _violations(connection, seq, record, decision)
    return True


def pack(data: bytes) -> bytes:
    """Compress canonical bytes for a column."""
    return zlib.compress(data, ZLIB_LEVEL)


def _tick(connection: Connection, record: TickRecord, decision: Decision) -> int:
    insert = upsert(connection, t.policies).values(
        fingerprint=record.policy_fingerprint, body=pack(record.policy_bytes), first_at_s=record.at_s
    )
    connection.execute(insert.on_conflict_do_nothing())
    result = connection.execute(
        t.ticks.insert().values(
            id=record.id,
            cluster=record.cluster,
            at_s=record.at_s,
            wall_at_s=record.wall_at_s,
            mode=record.mode,
            policy=decision.policy,
            policy_fingerprint=record.policy_fingerprint,
            actions=len(decision.actions),
            notes=len(decision.notes),
            violations=len(decision.violations),
        )
    )
    seq = int(result.inserted_primary_key[0])  # type: ignore[index]  # there is one: a single row was inserted
    payload = {name: pack(getattr(record, name)) for name in ("snapshot", "forecasts", "advice", "decision")}
    connection.execute(t.payloads.insert().values(tick_seq=seq, **payload))
    return seq


def _entries(connection: Connection, seq: int, record: TickRecord, decision: Decision) -> None:
    common = {"tick_seq": seq, "cluster": record.cluster, "at_s": record.at_s}
    _insert(connection, t.actions, [{**common, **_action(action)} for action in decision.actions])
    notes = [{**common, **_reason(note)} for note in decision.notes[:NOTES_PER_TICK]]
    _insert(connection, t.notes, notes)


def _action(action: Action) -> Row:
    why = action.reason
    detail = plain(action)
    detail.pop("reason")
    return {
        "action_id": action_id(action),
        "kind": action.kind,
        "pool": action.pool,
        "team": getattr(action, "team", ""),
        "subject": getattr(action, "workload", "") or getattr(action, "node", ""),
        "code": why.code.value,
        "reason_pool": why.pool,
        "reason_team": why.team,
        "reason_subject": why.subject,
        "facts": dumps(why.facts),
        "detail": dumps(detail),
    }


def _reason(why: Reason) -> Row:
    return {
        "code": why.code.value,
        "pool": why.pool,
        "team": why.team,
        "subject": why.subject,
        "facts": dumps(why.facts),
    }


def dumps(value: Any) -> str:
    """Canonical JSON text."""
    return canonical_bytes(value).decode()


def _series(connection: Connection, decision: Decision, forecasts: Forecasts) -> dict[Key, int]:
    wanted = {(pool.pool, TOTAL) for pool in decision.pools}
    wanted |= {(team.pool, team.team) for team in decision.teams}
    wanted |= {(forecast.pool, forecast.team) for forecast in forecasts.series}
    return series_ids(connection, decision.cluster, wanted)


def series_ids(connection: Connection, cluster: str, wanted: Iterable[Key]) -> dict[Key, int]:
    """The ids of a cluster's series; those wanted and not there yet are created."""
    # Read each time and never cached: an id from a transaction that was rolled back would point nowhere.
    known = _known_series(connection, cluster)
    missing = sorted(set(wanted) - known.keys())
    if missing:
        _insert(connection, t.series, [{"cluster": cluster, "pool": pool, "team": team} for pool, team in missing])
        known = _known_series(connection, cluster)
    return known


def _known_series(connection: Connection, cluster: str) -> dict[Key, int]:
    query = select(t.series.c.pool, t.series.c.team, t.series.c.seq).where(t.series.c.cluster == cluster)
    return {(pool, team): seq for pool, team, seq in connection.execute(query)}


def _forecasts(connection: Connection, ids: Mapping[Key, int], forecasts: Forecasts) -> None:
    rows = [
        {
            "series_id": ids[series.pool, series.team],
            "start_s": window.start_s,
            "end_s": window.end_s,
            "issued_at_s": series.issued_at_s,
            "model": series.model,
            "levels_permille": join(window.levels_permille),
            "milli_gpus": join(window.milli_gpus),
        }
        for series in forecasts.series
        for window in series.windows
    ]
    if rows:
        # A forecast that several ticks use is issued, and stored, once.
        connection.execute(upsert(connection, t.forecasts).on_conflict_do_nothing(), rows)


def join(values: Sequence[int]) -> str:
    """Integers as compact text; the levels are never searched by."""
    return ",".join(map(str, values))


def _samples(connection: Connection, ids: Mapping[Key, int], decision: Decision) -> None:
    teams = [
        {
            "series_id": ids[team.pool, team.team],
            "at_s": decision.at_s,
            **{name: getattr(team, name) for name in (*t.TEAM_MEANS, "longest_wait_s", "bounds_from")},
            "starved": int(team.starved),
        }
        for team in decision.teams
    ]
    pools = [
        {
            "series_id": ids[pool.pool, TOTAL],
            "at_s": decision.at_s,
            **{name: getattr(pool, name) for name in t.POOL_MEANS},
            **{name: getattr(pool, name) for name in ("advised_nodes", "quantile_permille", "source")},
        }
        for pool in decision.pools
    ]
    _insert(connection, t.team_samples, teams)
    _insert(connection, t.pool_samples, pools)
    _roll_up(connection, t.team_hours, teams, t.TEAM_MEANS, t.TEAM_MAXIMA)
    _roll_up(connection, t.pool_hours, pools, t.POOL_MEANS, t.POOL_MAXIMA)
    add_demand(connection, [(row["series_id"], decision.at_s, row["demand"], row["demand"]) for row in teams])
    totals = [(row["series_id"], decision.at_s, *[row["demand_milli_gpus"]] * 2) for row in pools]
    add_demand(connection, totals)


def _roll_up(
    connection: Connection, table: Table, rows: list[Row], means: tuple[str, ...], maxima: tuple[str, ...]
) -> None:
    hours = [
        {
            "series_id": row["series_id"],
            "at_s": row["at_s"] - row["at_s"] % HOUR_S,
            "n": 1,
            **{f"sum_{name}": row[name] for name in means},
            **{f"max_{name}": row[name] for name in maxima},
        }
        for row in rows
    ]
    accumulate(connection, table, hours)


def add_demand(connection: Connection, points: Iterable[tuple[int, int, int, int]]) -> None:
    """Add ``(series id, moment, mean, max)`` points to the 5-minute grid."""
    rows = [
        {"series_id": series, "at_s": at_s - at_s % GRID_S, "n": 1, "sum_demand": mean, "max_demand": high}
        for series, at_s, mean, high in points
    ]
    accumulate(connection, t.demand_bins, rows)


def accumulate(connection: Connection, table: Table, rows: list[Row]) -> None:
    """Insert rows of counts, sums and maxima; where the key is there, add up and take the larger."""
    if not rows:
        return
    insert = upsert(connection, table)
    new = insert.excluded
    # SQLite's max() of two values is PostgreSQL's greatest().
    larger = func.max if connection.dialect.name == "sqlite" else func.greatest
    merged = {}
    for column in table.columns:
        if column.name == "n" or column.name.startswith("sum_"):
            merged[column.name] = column + new[column.name]
        elif column.name.startswith("max_"):
            merged[column.name] = larger(column, new[column.name])
    connection.execute(insert.on_conflict_do_update(index_elements=["series_id", "at_s"], set_=merged), rows)


def _violations(connection: Connection, seq: int, record: TickRecord, decision: Decision) -> None:
    v = t.violations
    query = select(v.c.key, v.c.seq).where(v.c.cluster == record.cluster, v.c.closed_at_s.is_(None))
    still_open: dict[str, int] = {row.key: row.seq for row in connection.execute(query)}
    seen = {}
    for violation in decision.violations:
        seen[violation.key(decision.cluster, decision.policy)] = violation
    for key, violation in sorted(seen.items()):
        values = {**_incident(violation), "last_seen_at_s": record.at_s, "last_tick_seq": seq}
        if key in still_open:
            connection.execute(update(v).where(v.c.seq == still_open[key]).values(**values))
        else:
            identity = {"key": key, "cluster": record.cluster, "policy": decision.policy, "rule": violation.rule}
            place = {"pool": violation.pool, "team": violation.team}
            opened = {"opened_at_s": record.at_s, "opened_tick_seq": seq}
            connection.execute(v.insert().values(**identity, **place, **opened, **values))
    gone = [row for key, row in still_open.items() if key not in seen]
    if gone:
        connection.execute(update(v).where(v.c.seq.in_(gone)).values(closed_at_s=record.at_s))


def _incident(violation: Violation) -> Row:
    return {
        "since_s": violation.since_s,
        "measured": violation.measured,
        "allowed": violation.allowed,
        "unit": violation.unit,
        "severity": violation.severity,
        "action": violation.action.value,
        "subjects": json.dumps(list(violation.subjects)),
        "code": violation.reason.code.value,
        "reason": dumps(violation.reason),
    }


def _insert(connection: Connection, table: Table, rows: list[Row]) -> None:
    if rows:
        connection.execute(table.insert(), rows)


def load_demand(connection: Connection, points: Iterable[tuple[int, int, int, int]]) -> None:
    """Put ``(series id, moment, mean, max)`` points on the 5-minute grid where nothing is there yet."""
    rows = [
        {"series_id": series, "at_s": at_s - at_s % GRID_S, "n": 1, "sum_demand": mean, "max_demand": high}
        for series, at_s, mean, high in points
    ]
    if rows:
        connection.execute(upsert(connection, t.demand_bins).on_conflict_do_nothing(), rows)
