"""``tidegate store`` as a script sees it: one JSON document, exit codes, one line for each mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from controller.core.actions import Decision, PoolStanding, TeamStanding
from controller.core.advice import Advice
from controller.core.forecast import Forecasts
from controller.core.policy import Mode, Policy
from controller.core.snapshot import PoolObservation, Snapshot
from controller.store import TickRecord, open_store

ROOT = Path(__file__).resolve().parents[2]
T0, DAY = 1_790_812_800, 86_400


def tidegate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "controller.cli", "store", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)


def zeros(kind: type) -> dict[str, object]:
    return dict.fromkeys(kind.__dataclass_fields__, 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a tick on day 0 and one on day 20."""
    found = tmp_path / "store.sqlite"
    with open_store(str(found)) as store:
        for at_s in (T0, T0 + 20 * DAY):
            pool = PoolStanding(**zeros(PoolStanding) | {"pool": "h100", "source": "rule"})
            team = TeamStanding(**zeros(TeamStanding) | {"pool": "h100", "team": "dev", "bounds_from": ""})
            decision = Decision(at_s, "east", "p", Mode.OBSERVE, (pool,), (team,), (), (), (), ())
            record = TickRecord.of(
                snapshot=Snapshot("east", at_s, (PoolObservation("h100", 8, 600),)),
                forecasts=Forecasts(),
                policy=Policy("p", Mode.OBSERVE, "UTC", (), ()),
                advice=Advice(),
                decision=decision,
                wall_at_s=at_s,
            )
            store.append(record, decision, Forecasts())
    return found


def test_migrate_makes_a_store_and_says_from_where_to_where(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite"
    done = tidegate("migrate", str(path), "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"before": None, "after": "0003"})
    done = tidegate("migrate", str(path))
    assert (done.returncode, done.stdout) == (0, "up to date at schema 0003\n")


def test_info_tells_what_is_there(path: Path) -> None:
    done = tidegate("info", str(path), "--json")
    found = json.loads(done.stdout)
    assert (found["clusters"], found["first_at_s"], found["last_at_s"]) == (["east"], T0, T0 + 20 * DAY)
    assert (found["rows"]["ticks"], found["backend"], found["revision"]) == (2, "sqlite", "0003")
    assert found["size_bytes"] > 0
    assert "ticks: 2026-10-01 00:00 UTC to 2026-10-21 00:00 UTC" in tidegate("info", str(path)).stdout


def test_prune_counts_back_from_the_newest_tick_or_from_a_moment(path: Path) -> None:
    done = tidegate("prune", str(path), "--json")
    assert json.loads(done.stdout)["rows"]["payloads"] == 1
    assert json.loads(done.stdout)["total"] == 1
    done = tidegate("prune", str(path), "--now", "2026-10-22", "--sample-days", "2", "--json")
    assert json.loads(done.stdout)["rows"]["team_samples"] == 1
    assert tidegate("prune", str(path)).stdout == "0 rows deleted\n"


@pytest.mark.parametrize("command", ["info", "prune"])
def test_a_mistyped_path_is_refused_and_not_created(tmp_path: Path, command: str) -> None:
    path = tmp_path / "absent.sqlite"
    done = tidegate(command, str(path))
    said = f"store: {path}: no such file (tidegate store migrate makes a new store)\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert not path.exists()


def test_a_moment_that_is_none_is_refused(path: Path) -> None:
    done = tidegate("prune", str(path), "--now", "yesterday")
    said = "--now: yesterday: a moment as 2026-03-29T02:30:00+00:00\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


@pytest.mark.parametrize("command", ["migrate", "info", "prune"])
def test_help_has_an_example(command: str) -> None:
    assert "Example: tidegate store" in tidegate(command, "--help").stdout
