"""Killed, crowded or starved of disk: what was committed is there, and what was not left no trace."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import event
from store_builders import T0, a_decision, a_record, put
from store_writer import TEAMS, a_full_decision

from controller.core.forecast import Forecasts
from controller.store import Store, StoreError, open_store
from controller.store.engine import sqlite_path

WRITER = str(Path(__file__).with_name("store_writer.py"))


def start_writer(url: str, first: int = 0, count: int = 1_000_000) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, WRITER, url, str(first), str(count)], stdout=subprocess.PIPE, text=True)


def read_ids(writer: subprocess.Popen[str], count: int) -> list[str]:
    assert writer.stdout is not None
    assert writer.stdout.readline() == "open\n"
    return [writer.stdout.readline().strip() for _ in range(count)]


def kill(writer: subprocess.Popen[str]) -> list[str]:
    """SIGKILL, then whatever it had still said."""
    writer.kill()
    rest, _ = writer.communicate(timeout=30)
    lines = rest.splitlines(keepends=True)
    return [line.strip() for line in lines if line.endswith("\n")]


def test_kill_9_in_the_middle_of_a_write_loses_no_committed_tick(url: str) -> None:
    random, committed = Random(11), []
    for round_number in range(3):
        writer = start_writer(url, first=1000 * round_number)
        committed += read_ids(writer, random.randint(3, 25))
        committed += kill(writer)
    path = sqlite_path(url)
    if path is not None:
        with sqlite3.connect(path) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    with open_store(url) as store:
        ticks = store.ticks("east", limit=10_000)
        assert set(committed) <= {tick.id for tick in ticks}
        assert len(committed) >= 9
        # A tick may be committed whose id was not printed any more; each of them is whole.
        rows = store.info().rows
        assert rows["ticks"] == rows["payloads"] == rows["pool_samples"] == rows["forecasts"] == len(ticks)
        assert rows["team_samples"] == TEAMS * len(ticks)
        hours = store.team_series("east", "h100", "team-00", max_points=2)
        demand = store.team_series("east", "h100", "team-00", max_points=10_000)["demand"]
        assert demand == [(tick.at_s - T0) // 60 for tick in reversed(ticks)]
        assert max(hours["demand_max"]) == max(demand)
        put(store, a_full_decision(5000))


def test_a_reader_sees_whole_ticks_while_another_process_writes(url: str) -> None:
    with open_store(url) as store:
        writer = start_writer(url)
        try:
            read_ids(writer, 1)
            seen = set()
            while len(seen) < 25:
                now = store.now("east")
                step = (now.tick.at_s - T0) // 60
                assert [team.demand for team in now.teams] == [step] * TEAMS
                assert [pool.demand_milli_gpus for pool in now.pools] == [step]
                assert [one.measured for one in now.violations] == ([step] if step % 2 else [])
                seen.add(step)
        finally:
            kill(writer)


def test_two_processes_may_open_a_new_store_at_the_same_moment(url: str) -> None:
    writers = [start_writer(url, first=step, count=1) for step in range(3)]
    for writer in writers:
        said, _ = writer.communicate(timeout=120)
        assert writer.returncode == 0
        assert len(said.splitlines()) == 2
    with open_store(url) as store:
        assert store.info().rows["ticks"] == 3


def test_one_tick_written_from_many_threads_is_one_row(store: Store) -> None:
    decision = a_decision()
    record = a_record(decision)
    barrier, answers = threading.Barrier(6), []

    def write() -> None:
        barrier.wait()
        answers.append(store.append(record, decision, Forecasts()))

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [False] * 5 + [True]
    assert store.info().rows["ticks"] == store.info().rows["team_samples"] == 1


def fill(store: Store) -> None:
    for step in range(1, 500):
        put(store, a_full_decision(step))


def test_a_full_disk_is_said_in_one_line_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    url = str(tmp_path / "store.sqlite")
    with open_store(url) as store:
        record = put(store, a_full_decision(0))

        def no_more_pages(connection: sqlite3.Connection, _: object) -> None:
            connection.execute("PRAGMA max_page_count=1")  # SQLite takes it as: not one page more than there are

        store.close()
        event.listen(store._engine, "connect", no_more_pages)
        with pytest.raises(StoreError) as refused:
            fill(store)
        assert len(refused.value.lines()) == 1
        assert refused.value.lines()[0].endswith("the disk is full: free some space, nothing of this write was kept")
        rows = store.info().rows
        assert rows["ticks"] * TEAMS == rows["team_samples"]
    with open_store(url) as store:
        assert store.record(record.id) == record
        put(store, a_full_decision(1000))


LIMITED = """
import sys
sys.path[:0] = {paths!r}
from store_builders import a_decision, put
from store_writer import a_full_decision
from controller.store import StoreError, open_store
store = open_store({url!r})
{then}
try:
    for step in range(1, 2000):
        put(store, a_full_decision(step))
except StoreError as error:
    print("|".join(error.lines()))
"""


def limited(url: str, then: str) -> str:
    here = Path(__file__).resolve().parent
    code = LIMITED.format(paths=[str(here), str(here.parent.parent)], url=url, then=then)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_disk_that_refuses_to_grow_is_said_in_one_line(tmp_path: Path) -> None:
    url = str(tmp_path / "store.sqlite")
    limit = 2 * 2**20
    then = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    said = limited(url, then)
    assert "the disk" in said
    assert said.count("\n") == 1
    with open_store(url) as store:
        rows = store.info().rows
        assert rows["ticks"] * TEAMS == rows["team_samples"] > 0


def test_a_read_only_file_is_said_in_one_line() -> None:
    # Not tmp_path: only root may enter that, and the child gives its rights up where it is root.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite"
        open_store(str(path)).close()
        then = "store.close(); import os; os.setuid(65534) if os.geteuid() == 0 else None"
        Path(folder).chmod(0o555)
        path.chmod(0o444)
        try:
            said = limited(str(path), then)
        finally:
            Path(folder).chmod(0o755)
        assert said == (
            f"store: sqlite:///{path}: the file is read-only for this user: make it and its folder writable\n"
        )


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as refused:
        open_store(f"sqlite:///{tmp_path}/file/store.sqlite")
    assert refused.value.lines() == [
        f"store: sqlite:///{tmp_path}/file/store.sqlite: its folder cannot be made: File exists"
    ]


def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"these are my notes\n" * 500)
    with pytest.raises(StoreError, match="not a tidegate store"):
        open_store(str(path))
    assert path.read_bytes() == b"these are my notes\n" * 500
    assert list(tmp_path.iterdir()) == [path]
