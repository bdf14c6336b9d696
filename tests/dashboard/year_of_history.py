"""A year of a large cluster, and how long each page takes on it: ``python tests/dashboard/year_of_history.py FILE``.

The newest tick is real: 1,000 nodes, 10,000 pods, 200 teams, decided by the core and written by the store. Its samples,
forecasts and actions are then repeated backwards for as long as the store keeps each kind, with the demand varied.
Not a test: it writes about a gigabyte, and seconds depend on the machine.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from pathlib import Path

from fastapi.testclient import TestClient

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "perf"))

import large_cluster as large

from controller.core.advice import Advice
from controller.core.decide import decide
from controller.store import TickRecord, open_store
from controller.store.retention import Retention
from dashboard.app import create_app

STEP_S, HOUR_S, DAY_S = 300, 3_600, 86_400
KEEP = Retention()
PAGES = (
    "/?range=1d",
    "/?range=all",
    "/forecasts?range=1d",
    "/forecasts?range=all",
    "/forecasts?range=all&series=h100/team-000",
    "/teams",
    "/teams/h100/team-000?range=all",
    "/decisions?range=all",
    "/decisions?range=all&team=team-000",
    "/decisions?range=all&kind=evict&code=STARVED",
    "/decisions/{tick}",
    "/nodes",
    "/violations?range=all",
    "/api/v1/ticks/latest",
    "/api/v1/now",
    "/api/v1/figures/pools/h100/fleet?range=all",
    "/api/v1/figures/pools/h100/fleet?range=30d",
    "/api/v1/figures/pools/h100/nodes?range=all",
    "/api/v1/figures/teams/h100/team-000/share?range=30d",
    "/api/v1/figures/teams/h100/team-000/share?range=all",
    "/api/v1/figures/teams/h100/team-000/waits?range=all",
    "/api/v1/figures/forecasts/h100/900-1800?range=all",
    "/api/v1/figures/forecasts/h100/900-1800?range=all&team=team-000",
    "/api/v1/figures/ahead/h100",
    "/api/v1/figures/ahead/h100?team=team-000",
)


def build(path: Path) -> None:
    """Write the newest tick, then what the store would still have of a year before it."""
    snapshot, policy, forecasts = large.a_snapshot(), large.a_policy(), large.forecasts()
    decision = decide(snapshot, forecasts, policy, large.NOW_S)
    record = TickRecord.of(
        snapshot=snapshot,
        forecasts=forecasts,
        policy=policy,
        advice=Advice(),
        decision=decision,
        wall_at_s=large.NOW_S,
    )
    with open_store(str(path)) as store:
        store.append(record, decision, forecasts)
    with sqlite3.connect(path) as database:
        database.execute("pragma synchronous=off")
        for table, step_s, days in (
            ("team_samples", STEP_S, KEEP.sample_days),
            ("pool_samples", STEP_S, KEEP.sample_days),
            ("demand_bins", STEP_S, KEEP.sample_days),
            ("team_hours", HOUR_S, 365),
            ("pool_hours", HOUR_S, 365),
        ):
            _repeat(database, table, "at_s", step_s, days)
        _repeat(database, "forecasts", "issued_at_s", STEP_S, KEEP.sample_days)
        _repeat_ticks(database)
        database.execute("analyze")


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in database.execute(f"pragma table_info({table})")]


def _repeat(database: sqlite3.Connection, table: str, moment: str, step_s: int, days: int) -> None:
    """Copy a table's rows back in time; demand is multiplied by a daily saw between a half and one."""
    varied = {"demand", "demand_milli_gpus", "held", "held_milli_gpus", "sum_demand", "max_demand", "pending"}
    saw = f"(50 + abs((k * {step_s} / 60) % 1440 - 720) * 50 / 720) / 100"
    chosen = [
        f"{name} - k * {step_s}" if name == moment else f"{name} * {saw}" if name in varied else name
        for name in _columns(database, table)
    ]
    database.execute(
        f"with recursive back(k) as (select 1 union all select k + 1 from back where k < {days * DAY_S // step_s}) "
        f"insert or ignore into {table} select {', '.join(chosen)} from {table}, back"
    )


def _repeat_ticks(database: sqlite3.Connection) -> None:
    """A year of ticks every five minutes, each with three actions of the newest; records for the days they are kept."""
    (newest,) = database.execute("select max(seq) from ticks").fetchone()
    first = 365 * DAY_S // STEP_S
    database.execute(f"update ticks set seq = {first + 1} where seq = {newest}")
    for table in ("payloads", "actions", "notes", "outcomes"):
        database.execute(f"update {table} set tick_seq = {first + 1} where tick_seq = {newest}")
    back = f"with recursive back(k) as (select 1 union all select k + 1 from back where k < {first})"
    chosen = {"seq": "seq - k", "id": "printf('%016x', k)", "at_s": f"at_s - k * {STEP_S}"}
    columns = [chosen.get(name, name) for name in _columns(database, "ticks")]
    database.execute(f"{back} insert into ticks select {', '.join(columns)} from ticks, back")
    chosen = {"tick_seq": "tick_seq - k", "at_s": f"at_s - k * {STEP_S}", "seq": "null"}
    columns = [chosen.get(name, name) for name in _columns(database, "actions")]
    database.execute(
        f"{back} insert into actions select {', '.join(columns)} "
        "from back, (select * from actions order by seq limit 3) order by k desc"
    )


def main(path: Path) -> None:
    """Build the store where there is none yet, then print the slowest of three answers of each page."""
    if not path.exists():
        build(path)
    with open_store(str(path)) as store, TestClient(create_app(store)) as client:
        tick = client.get("/api/v1/ticks/latest").json()["id"]
        for page in PAGES:
            spent, answer = [], None
            for _ in range(3):
                begin = time.perf_counter()
                answer = client.get(page.format(tick=tick), headers={"accept": "text/html"})
                spent.append(time.perf_counter() - begin)
            assert answer is not None
            assert answer.status_code == 200, (page, answer.text[:200])
            sys.stdout.write(f"{max(spent):6.2f} s {len(answer.content) // 1024:6,} KiB  {page}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
