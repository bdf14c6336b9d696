"""What is kept for how long: everything for two weeks, samples for five, hours for thirteen months.

Pruning only deletes: the hourly roll-ups are kept up with every tick, so that nothing has to be summed up first.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Select, Table, delete, func, select, tuple_

from controller.core.quantities import DAY_S
from controller.store import tables as t


@dataclass(frozen=True, slots=True)
class Retention:
    """Days that each kind of row is kept, counted back from the moment of pruning.

    ``payload_days``: a tick's snapshot, forecasts, advice and decision bytes, and its notes; after that a decision can
    be read but no longer derived again; the same goes for what learning's advice was computed from. ``sample_days``:
    samples and forecasts at full resolution, demand on the 5-minute grid; the forecaster learns from 28 days; what
    learning wanted in each tick and what that cost. ``history_days``: hours, actions, outcomes, closed incidents,
    learning's days and events; 13 months, so that a month can be compared with that of a year ago.
    """

    payload_days: int = 14
    sample_days: int = 35
    history_days: int = 400


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows each table lost."""

    rows: dict[str, int]

    @property
    def total(self) -> int:
        """Rows lost in all."""
        return sum(self.rows.values())


def prune(connection: Connection, now_s: int, keep: Retention) -> Pruned:
    """Delete what is older than ``keep`` allows at ``now_s``; ticks that an open violation cites stay whole."""
    lost: dict[str, int] = {}
    payloads_before = now_s - keep.payload_days * DAY_S
    samples_before = now_s - keep.sample_days * DAY_S
    history_before = now_s - keep.history_days * DAY_S
    old = _ticks_before(payloads_before)
    lost["payloads"] = _delete(connection, t.payloads, t.payloads.c.tick_seq.in_(old))
    lost["notes"] = _delete(connection, t.notes, t.notes.c.tick_seq.in_(old))
    for series in connection.execute(select(t.series.c.seq)).scalars().all():
        for table in (t.team_samples, t.pool_samples, t.demand_bins):
            where = (table.c.series_id == series) & (table.c.at_s < samples_before)
            _add(lost, table, _delete(connection, table, where))
        for table in (t.team_hours, t.pool_hours):
            where = (table.c.series_id == series) & (table.c.at_s < history_before)
            _add(lost, table, _delete(connection, table, where))
    lost["forecasts"] = _delete(connection, t.forecasts, t.forecasts.c.issued_at_s < samples_before)
    ancient = _ticks_before(history_before)
    for table in (t.outcomes, t.actions):
        _add(lost, table, _delete(connection, table, table.c.tick_seq.in_(ancient)))
    lost["violations"] = _delete(connection, t.violations, t.violations.c.closed_at_s < history_before)
    lost["ticks"] = _delete(connection, t.ticks, t.ticks.c.seq.in_(ancient))
    used = select(t.ticks.c.policy_fingerprint)
    lost["policies"] = _delete(connection, t.policies, t.policies.c.fingerprint.not_in(used))
    _prune_learning(connection, lost, payloads_before, samples_before, history_before)
    return Pruned(lost)


def _prune_learning(
    connection: Connection, lost: dict[str, int], inputs_before: int, ticks_before: int, history_before: int
) -> None:
    """Model files go once no tick cites them, but never the newest of a pool: a restart acts by it."""
    k, m = t.learning_ticks.c, t.models.c
    old = select(k.seq).where(k.at_s < inputs_before)
    for table, where in (
        (t.learning_inputs, t.learning_inputs.c.learning_tick_seq.in_(old)),
        (t.learning_ticks, k.at_s < ticks_before),
        (t.learning_outcomes, t.learning_outcomes.c.at_s < ticks_before),
        (t.learning_days, t.learning_days.c.day_s < history_before),
        (t.learning_events, t.learning_events.c.at_s < history_before),
    ):
        _add(lost, table, _delete(connection, table, where))
    newest = select(m.cluster, m.pool, func.max(m.made_at_s)).group_by(m.cluster, m.pool)
    unused = m.fingerprint.not_in(select(k.model)) & tuple_(m.cluster, m.pool, m.made_at_s).not_in(newest)
    lost["models"] = _delete(connection, t.models, unused)


def _add(lost: dict[str, int], table: Table, count: int) -> None:
    lost[str(table.name)] = lost.get(table.name, 0) + count


def _ticks_before(before_s: int) -> Select[tuple[int]]:
    """The ticks older than a moment that no open violation cites, and never the newest of its cluster."""
    v, k = t.violations.c, t.ticks.c
    cited = [
        select(column).where(v.closed_at_s.is_(None), column.is_not(None))
        for column in (v.opened_tick_seq, v.last_tick_seq)
    ]
    last = select(k.cluster, func.max(k.at_s)).group_by(k.cluster)
    newest = select(k.seq).where(tuple_(k.cluster, k.at_s).in_(last))
    return select(k.seq).where(k.at_s < before_s, k.seq.not_in(newest), *[k.seq.not_in(seqs) for seqs in cited])


def _delete(connection: Connection, table: Table, where: ColumnElement[bool]) -> int:
    return connection.execute(delete(table).where(where)).rowcount
