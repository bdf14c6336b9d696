"""``tidegate learning`` and the learner's part of ``tidegate explain``, on a store that a learner has written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_in_process import tidegate
from learned_stand import Stand

from controller.store import open_store


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    """A loop in which the learner has acted for one tick."""
    with open_store(str(tmp_path / "s.sqlite")) as store:
        made = Stand(store)
        made.ticks(1)
        yield made


@pytest.fixture
def path(stand: Stand) -> str:
    return str(stand.store._engine.url.database)


def status(path: str) -> Any:
    done = tidegate("learning", "status", "--store", path, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_status_says_who_acts_and_kill_and_revive_count_at_the_next_tick(stand: Stand, path: str) -> None:
    before = status(path)
    assert (before["cluster"], before["killed"]) == ("c", False)
    [pool] = before["pools"]
    assert (pool["pool"], pool["rung"], pool["acting"], pool["holds"]) == ("h", "full", "hedge", [])
    said = tidegate("learning", "status", "--store", path).stdout
    assert "h: rung full, hedge acts. Last: Up to full" in said

    done = tidegate("learning", "kill", "--store", path)
    assert done.returncode == 0
    assert "c: learning is off; the rule acts from the next tick on (`tidegate learning revive`" in done.stdout
    assert status(path)["killed"] is True
    assert "c: killed; the rule acts everywhere" in tidegate("learning", "status", "--store", path).stdout
    stand.ticks(1)
    assert status(path)["pools"][0]["acting"] == "rule"
    assert status(path)["pools"][0]["rung"] == "off"

    done = tidegate("learning", "revive", "--store", path, "--json")
    assert json.loads(done.stdout) == {"cluster": "c", "killed": False}
    stand.ticks(1)
    assert status(path)["pools"][0]["rung"] != "off"


def test_a_cluster_that_is_not_there_and_a_store_that_is_not_there_are_said_in_a_line(
    path: str, tmp_path: Path
) -> None:
    done = tidegate("learning", "kill", "--store", path, "--cluster", "west")
    assert done.returncode == 2
    assert "--cluster" in done.stderr
    assert "one of: c" in done.stderr
    for command in ("kill", "revive", "status"):
        done = tidegate("learning", command, "--store", str(tmp_path / "none.sqlite"))
        assert done.returncode == 2
        assert "a store that exists" in done.stderr
        assert not (tmp_path / "none.sqlite").exists()


def test_a_store_without_a_learner_says_so(tmp_path: Path) -> None:
    path = str(tmp_path / "empty.sqlite")
    assert tidegate("store", "migrate", path).returncode == 0
    done = tidegate("learning", "status", "--store", path)
    assert (done.returncode, "none yet" in done.stderr) == (2, True)


@pytest.fixture
def record(stand: Stand, path: str, tmp_path: Path) -> dict[str, Any]:
    """The dump of the tick in which the learner acted."""
    newest = stand.store.resume("c")
    assert newest is not None
    dump = tmp_path / "record.json"
    done = tidegate("explain", newest.id, "--store", path, "--dump", str(dump))
    assert done.returncode == 0
    assert "Advice for h, the learner's, was computed again from its inputs and model" in done.stdout
    made: dict[str, Any] = json.loads(dump.read_bytes())
    return made


def explained(record: dict[str, Any], tmp_path: Path) -> tuple[int, str]:
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(record))
    done = tidegate("explain", str(path))
    return done.returncode, done.stdout + done.stderr


def test_a_dumped_record_is_computed_again_from_the_file_alone(record: dict[str, Any], tmp_path: Path) -> None:
    code, said = explained(record, tmp_path)
    assert code == 0
    assert "was computed again" in said


def test_one_weight_that_was_changed_is_noticed(record: dict[str, Any], tmp_path: Path) -> None:
    weights = record["learning"][0]["model"]["weights"]
    heaviest = max(range(len(weights)), key=lambda at: weights[at][1])
    weights[heaviest][1] -= 1
    weights[heaviest - 1][1] += 1
    code, said = explained(record, tmp_path)
    assert code == 1
    assert "could NOT be computed again" in said


def test_an_input_that_was_changed_is_noticed(record: dict[str, Any], tmp_path: Path) -> None:
    record["learning"][0]["inputs"]["demand_milli_gpus"] += 80_000
    code, said = explained(record, tmp_path)
    assert code == 1
    assert "could NOT be computed again" in said


@pytest.mark.parametrize(
    ("part", "value", "named"),
    [
        ("learning", 7, "learning"),
        ("learning", [7], "learning"),
        ("inputs", {}, "learning[0]"),
        ("inputs", None, "learning[0]"),
        ("model", {}, "learning[0]"),
        ("model", "x", "learning[0]"),
    ],
)
def test_a_damaged_part_is_named_and_no_traceback_is_shown(
    record: dict[str, Any], tmp_path: Path, part: str, value: Any, named: str
) -> None:
    if part == "learning":
        record["learning"] = value
    else:
        record["learning"][0][part] = value
    code, said = explained(record, tmp_path)
    assert code == 2
    assert named in said
    assert "Traceback" not in said
