"""``Store``: the one door to the database. Each method is one transaction and returns plain values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import Engine, func, select, text

from controller.core.actions import Decision, PoolStanding, TeamStanding
from controller.core.forecast import TOTAL, Forecasts
from controller.store import decisions, learning, outlook, retention, samples, writing
from controller.store import tables as t
from controller.store.engine import open_engine, parse_url, reading, upsert
from controller.store.engine import writing as transaction
from controller.store.errors import StoreError, shown
from controller.store.learning_records import (
    LearningDay,
    LearningEvent,
    LearningOutcome,
    LearningPoint,
    LearningTick,
    ModelFile,
)
from controller.store.migrate import migrate, revision
from controller.store.records import (
    ActionRow,
    Columns,
    DecisionView,
    DemandSeries,
    ForecastPoint,
    ForecastWindow,
    NoteRow,
    Now,
    ScoredForecast,
    StoreInfo,
    TickHeader,
    TickRecord,
    ViolationRow,
)

EVER_S = 2**62
"""An end beyond every moment: ``stop_s`` of a range that is open."""
STATUSES = ("applied", "refused", "deferred")


def problems_key(cluster: str) -> str:
    """Where a loop keeps what is wrong with it now (a refused policy, say), a list of sentences, for people to see."""
    return f"problems/{cluster}"


def open_store(url: str, *, durable: bool = True) -> Store:
    """Open a store, making and migrating it where needed.

    ``url``: ``sqlite:///PATH``, a bare path, or ``postgresql://USER@HOST/DATABASE``. ``durable=False`` gives up the
    last ticks at a power cut (never at ``kill -9``) for speed: for simulated worlds. Raises ``StoreError`` (one line,
    no secrets) where it cannot be reached, read or written, ``NewerSchemaError`` where a newer tidegate wrote it.
    """
    engine = open_engine(parse_url(url), durable=durable)
    try:
        migrate(engine)
    except BaseException:
        engine.dispose()
        raise
    return Store(engine)


class Store:
    """A migrated store; safe to share between threads. Ranges are ``[start_s, stop_s)`` in the world's time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __repr__(self) -> str:
        return f"Store({shown(self._engine.url)})"

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give all connections back; the store can be used again afterwards."""
        self._engine.dispose()

    # writing

    def append(self, record: TickRecord, decision: Decision, forecasts: Forecasts) -> bool:
        """Write one tick in one transaction; False (and nothing written) when that id is there already."""
        with transaction(self._engine) as connection:
            return writing.append_tick(connection, record, decision, forecasts)

    def outcome(self, action_id: str, tick_id: str, status: str, detail: str = "", at_s: int | None = None) -> None:
        """Add what became of an action: ``applied``, ``refused`` or ``deferred``; never overwrites an earlier one.

        ``at_s`` defaults to the tick's moment. ``ValueError`` for another status, ``StoreError`` for an unknown tick.
        """
        self.outcomes(tick_id, [(action_id, status, detail)], at_s)

    def outcomes(self, tick_id: str, results: Iterable[tuple[str, str, str]], at_s: int | None = None) -> None:
        """Add ``(action id, status, detail)`` of several actions of one tick in one transaction; see ``outcome``."""
        rows = [{"action_id": one, "status": status, "detail": detail} for one, status, detail in results]
        unknown = {row["status"] for row in rows} - set(STATUSES)
        if unknown:
            raise ValueError(f"an outcome is one of {', '.join(STATUSES)}, not {min(unknown)!r}")
        if not rows:
            return
        with transaction(self._engine) as connection:
            tick = connection.execute(select(t.ticks.c.seq, t.ticks.c.at_s).where(t.ticks.c.id == tick_id)).first()
            if tick is None:
                raise StoreError(shown(self._engine.url), f"has no tick {tick_id}")
            place = {"tick_seq": tick.seq, "at_s": tick.at_s if at_s is None else at_s}
            connection.execute(t.outcomes.insert(), [{**place, **row} for row in rows])

    def load_demand(self, cluster: str, rows: Iterable[tuple[int, str, str, int, int]]) -> None:
        """Load demand of before the first tick: ``(at_s, pool, team, mean, max)`` in milli-GPUs, team "" the total.

        A 5-minute bin that is there already is left as it is, so that loading again adds nothing.
        """
        points = list(rows)
        with transaction(self._engine) as connection:
            ids = writing.series_ids(connection, cluster, {(pool, team) for _, pool, team, _, _ in points})
            writing.load_demand(connection, [(ids[p, team], at, mean, high) for at, p, team, mean, high in points])

    def prune(self, now_s: int, keep: retention.Retention | None = None) -> retention.Pruned:
        """Delete what is older than ``keep`` (default ``Retention()``) allows at ``now_s``."""
        with transaction(self._engine) as connection:
            return retention.prune(connection, now_s, keep or retention.Retention())

    def kv_set(self, key: str, value: Any) -> None:
        """Keep a small JSON value under a key."""
        body = json.dumps(value, sort_keys=True)
        with transaction(self._engine) as connection:
            insert = upsert(connection, t.kv).values(key=key, value=body)
            connection.execute(insert.on_conflict_do_update(index_elements=["key"], set_={"value": body}))

    def kv_get(self, key: str, default: Any = None) -> Any:
        """The value kept under a key."""
        with reading(self._engine) as connection:
            body = connection.execute(select(t.kv.c.value).where(t.kv.c.key == key)).scalar()
        return default if body is None else json.loads(body)

    # ticks and decisions

    def clusters(self) -> tuple[str, ...]:
        """The clusters of which something is stored, sorted."""
        with reading(self._engine) as connection:
            return tuple(
                connection.execute(select(t.series.c.cluster).distinct().order_by(t.series.c.cluster)).scalars()
            )

    def series(self, cluster: str) -> tuple[tuple[str, str], ...]:
        """``(pool, team)`` of all that was ever stored, sorted; team "" is the pool itself."""
        s = t.series.c
        with reading(self._engine) as connection:
            rows = connection.execute(select(s.pool, s.team).where(s.cluster == cluster).order_by(s.pool, s.team))
            return tuple((pool, team) for pool, team in rows)

    def span(self, cluster: str) -> tuple[int, int] | None:
        """The first and last moment of a cluster's ticks, or None."""
        k = t.ticks.c
        with reading(self._engine) as connection:
            first, last = connection.execute(
                select(func.min(k.at_s), func.max(k.at_s)).where(k.cluster == cluster)
            ).one()
        return None if first is None else (first, last)

    def latest_tick(self, cluster: str) -> TickHeader | None:
        """The newest tick."""
        with reading(self._engine) as connection:
            return decisions.latest(connection, cluster)

    def ticks(self, cluster: str, start_s: int = 0, stop_s: int = EVER_S, limit: int = 100) -> list[TickHeader]:
        """Ticks, newest first."""
        with reading(self._engine) as connection:
            return decisions.headers(connection, cluster, start_s, stop_s, limit)

    def resume(self, cluster: str) -> TickRecord | None:
        """The newest tick with its bytes: where a loop goes on after a restart."""
        with reading(self._engine) as connection:
            return decisions.resume(connection, cluster)

    def record(self, tick_id: str) -> TickRecord | None:
        """One tick's bytes, decompressed; None where unknown or pruned."""
        with reading(self._engine) as connection:
            return decisions.record(connection, tick_id)

    def decision(self, tick_id: str) -> DecisionView | None:
        """One tick with bytes, actions, notes and outcomes; None where unknown."""
        with reading(self._engine) as connection:
            return decisions.decision(connection, tick_id)

    def decisions(
        self,
        cluster: str,
        start_s: int = 0,
        stop_s: int = EVER_S,
        *,
        team: str | None = None,
        pool: str | None = None,
        code: str | None = None,
        kind: str | None = None,
        limit: int = 50,
        before_id: int | None = None,
    ) -> list[ActionRow]:
        """Actions, newest first; for the next page hand in the last row's ``seq`` as ``before_id``."""
        chosen = {"team": team, "pool": pool, "code": code, "kind": kind}
        where = decisions.filters(t.actions, cluster, start_s, stop_s, chosen)
        with reading(self._engine) as connection:
            return decisions.actions(connection, where, limit, before_id)

    def notes(
        self,
        cluster: str,
        start_s: int = 0,
        stop_s: int = EVER_S,
        *,
        team: str | None = None,
        pool: str | None = None,
        code: str | None = None,
        limit: int = 50,
        before_id: int | None = None,
    ) -> list[NoteRow]:
        """Reasons that led to no action (the first 50 of each tick), newest first; paged like ``decisions``."""
        where = decisions.filters(t.notes, cluster, start_s, stop_s, {"team": team, "pool": pool, "code": code})
        with reading(self._engine) as connection:
            return decisions.notes(connection, where, limit, before_id)

    def violations(
        self, cluster: str, start_s: int = 0, stop_s: int = EVER_S, *, open_only: bool = False, limit: int = 200
    ) -> list[ViolationRow]:
        """Incidents that overlap the range: open ones first, then the latest opened."""
        span = {"start_s": start_s, "stop_s": stop_s}
        with reading(self._engine) as connection:
            return decisions.violations(connection, cluster, open_only=open_only, limit=limit, **span)

    # standings and series

    def now(self, cluster: str) -> Now | None:
        """The newest tick: pools, teams and open violations in one consistent view."""
        with reading(self._engine) as connection:
            tick = decisions.latest(connection, cluster)
            if tick is None:
                return None
            pools = samples.pool_standings(connection, cluster, tick.at_s)
            teams = samples.team_standings(connection, cluster, tick.at_s)
            broken = decisions.violations(connection, cluster, open_only=True, start_s=0, stop_s=EVER_S, limit=200)
            return Now(tick, pools, teams, tuple(broken))

    def teams_now(self, cluster: str) -> tuple[TeamStanding, ...]:
        """All teams at the newest tick, sorted by pool and team."""
        found = self.now(cluster)
        return found.teams if found else ()

    def pools_now(self, cluster: str) -> tuple[PoolStanding, ...]:
        """All pools at the newest tick, sorted by name."""
        found = self.now(cluster)
        return found.pools if found else ()

    def team_series(
        self, cluster: str, pool: str, team: str, start_s: int = 0, stop_s: int = EVER_S, max_points: int = 500
    ) -> Columns:
        """A team's standing over time: ``tables.TEAM_MEANS``, and ``FIELD_max`` of ``tables.TEAM_MAXIMA``."""
        with reading(self._engine) as connection:
            series = samples.series_id(connection, cluster, pool, team)
            return samples.team_columns(connection, series, start_s, stop_s, max_points)

    def pool_series(
        self, cluster: str, pool: str, start_s: int = 0, stop_s: int = EVER_S, max_points: int = 500
    ) -> Columns:
        """A pool's standing over time: ``tables.POOL_MEANS``, and ``FIELD_max`` of ``tables.POOL_MAXIMA``."""
        with reading(self._engine) as connection:
            series = samples.series_id(connection, cluster, pool, TOTAL)
            return samples.pool_columns(connection, series, start_s, stop_s, max_points)

    def demand_series(
        self, cluster: str, pool: str, team: str, start_s: int = 0, stop_s: int = EVER_S, max_points: int = 500
    ) -> Columns:
        """Demand alone, loaded history included: columns ``demand`` (mean) and ``demand_max``; team "" the total."""
        with reading(self._engine) as connection:
            series = samples.series_id(connection, cluster, pool, team)
            return samples.demand_columns(connection, series, start_s, stop_s, max_points)

    def demand_history(self, cluster: str, start_s: int = 0, stop_s: int = EVER_S) -> list[DemandSeries]:
        """Demand of every team and pool total on the 5-minute grid: what the forecaster learns from."""
        with reading(self._engine) as connection:
            return samples.demand_history(connection, cluster, start_s, stop_s)

    # forecasts

    def forecast_windows(self, cluster: str, pool: str, team: str = TOTAL) -> list[ForecastWindow]:
        """The windows for which forecasts are stored, nearest first."""
        with reading(self._engine) as connection:
            return outlook.windows(connection, samples.series_id(connection, cluster, pool, team))

    def forecast_series(
        self,
        cluster: str,
        pool: str,
        team: str,
        window: tuple[int, int],
        start_s: int = 0,
        stop_s: int = EVER_S,
        max_points: int = 500,
    ) -> list[ForecastPoint]:
        """Forecasts for a window ``(start_s, end_s)``, by issue; thinned by stride beyond ``max_points``."""
        with reading(self._engine) as connection:
            series = samples.series_id(connection, cluster, pool, team)
            return outlook.issued(connection, series, window, start_s, stop_s, max_points)

    def latest_forecast(self, cluster: str, pool: str, team: str = TOTAL, at_s: int = EVER_S) -> list[ForecastPoint]:
        """All windows of the newest forecast issued at or before ``at_s``: the fan into the future."""
        with reading(self._engine) as connection:
            return outlook.newest(connection, samples.series_id(connection, cluster, pool, team), at_s)

    def forecast_vs_actual(
        self,
        cluster: str,
        pool: str,
        team: str,
        window: tuple[int, int],
        start_s: int = 0,
        stop_s: int = EVER_S,
        max_points: int = 500,
    ) -> list[ScoredForecast]:
        """Forecasts issued in the range whose window is over, beside what came and both naive answers."""
        with reading(self._engine) as connection:
            series = samples.series_id(connection, cluster, pool, team)
            points = outlook.issued(connection, series, window, start_s, stop_s, max_points)
            return outlook.scored(connection, series, points)

    # learning

    def append_learning(
        self,
        ticks: Iterable[LearningTick] = (),
        outcomes: Iterable[LearningOutcome] = (),
        days: Iterable[LearningDay] = (),
        events: Iterable[LearningEvent] = (),
    ) -> int:
        """Write what learning left behind in one transaction; keys that are there already stay as they are.

        Returns how many rows are new.
        """
        with transaction(self._engine) as connection:
            return (
                learning.append_ticks(connection, ticks)
                + learning.append_outcomes(connection, outcomes)
                + learning.append_days(connection, days)
                + learning.append_events(connection, events)
            )

    def learning_tick(self, tick_id: str) -> tuple[LearningTick, ...]:
        """What learning wanted in one tick, with ``inputs``: one row a pool, sorted by pool."""
        with reading(self._engine) as connection:
            return learning.tick(connection, tick_id)

    def learning_ticks(
        self, cluster: str, pool: str, start_s: int = 0, stop_s: int = EVER_S, limit: int = 500
    ) -> list[LearningTick]:
        """What learning wanted in a pool, newest first, without ``inputs`` (see ``learning_tick``)."""
        with reading(self._engine) as connection:
            return learning.ticks(connection, cluster, pool, start_s, stop_s, limit)

    def learning_points(
        self, cluster: str, pool: str, start_s: int = 0, stop_s: int = EVER_S, max_points: int = 500
    ) -> list[LearningPoint]:
        """What learner and rule wanted in a pool over time, oldest first, thinned to at most so many points."""
        with reading(self._engine) as connection:
            return learning.points(connection, cluster, pool, start_s, stop_s, max_points)

    def learning_outcomes(
        self, cluster: str, pool: str, start_s: int = 0, stop_s: int = EVER_S, limit: int = 500
    ) -> list[LearningOutcome]:
        """What the targets of a pool cost, by the tick that set them, newest first."""
        with reading(self._engine) as connection:
            return learning.outcomes(connection, cluster, pool, start_s, stop_s, limit)

    def learning_days(self, cluster: str, pool: str, start_s: int = 0, stop_s: int = EVER_S) -> list[LearningDay]:
        """The shadow fleets' days that begin in the range, by day and name."""
        with reading(self._engine) as connection:
            return learning.days(connection, cluster, pool, start_s, stop_s)

    def learning_events(
        self,
        cluster: str,
        pool: str,
        start_s: int = 0,
        stop_s: int = EVER_S,
        *,
        kind: str | None = None,
        limit: int = 200,
    ) -> list[LearningEvent]:
        """Gate verdicts, promotions, demotions, kills, fits and recoveries of a pool, newest first."""
        with reading(self._engine) as connection:
            return learning.events(connection, cluster, pool, start_s, stop_s, kind, limit)

    def add_model(self, model: ModelFile) -> bool:
        """Keep a model file; False where that pool has it already."""
        with transaction(self._engine) as connection:
            return learning.append_model(connection, model)

    def model(self, fingerprint: str) -> ModelFile | None:
        """A model file with its body; None where unknown or pruned."""
        with reading(self._engine) as connection:
            return learning.model(connection, fingerprint)

    def models(self, cluster: str, pool: str, limit: int = 100) -> list[ModelFile]:
        """A pool's model files without their bodies, newest first."""
        with reading(self._engine) as connection:
            return learning.models(connection, cluster, pool, limit)

    # care

    def info(self) -> StoreInfo:
        """What the store holds: revision, size and rows of each table."""
        with reading(self._engine) as connection:
            names = sorted(t.metadata.tables)
            rows = {
                n: int(connection.execute(select(func.count()).select_from(t.metadata.tables[n])).scalar_one())
                for n in names
            }
            first, last = connection.execute(select(func.min(t.ticks.c.at_s), func.max(t.ticks.c.at_s))).one()
            known = connection.execute(select(t.series.c.cluster).distinct().order_by(t.series.c.cluster)).scalars()
            size = "SELECT pg_database_size(current_database())"
            if connection.dialect.name == "sqlite":
                size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
            return StoreInfo(
                backend=connection.dialect.name,
                url=shown(self._engine.url),
                revision=revision(connection) or "",
                size_bytes=int(connection.execute(text(size)).scalar_one()),
                clusters=tuple(known),
                first_at_s=first,
                last_at_s=last,
                rows=rows,
            )

    @property
    def path(self) -> Path | None:
        """The SQLite file, or None for PostgreSQL."""
        return Path(self._engine.url.database or "") if self._engine.dialect.name == "sqlite" else None
