"""``tidegate decide`` and ``tidegate explain``: canonical bytes, one line a mistake, proof of what was done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cli_in_process import Ran, tidegate

from controller.core.advice import Advice
from controller.core.decide import decide
from controller.core.forecast import Forecasts
from controller.core.snapshot import Node, PoolObservation, Snapshot, Workload, WorkloadState
from controller.resources import codec
from controller.resources.parse import load_policy
from controller.store import TickRecord, open_store

ROOT = Path(__file__).resolve().parents[2]
NOW = "2026-06-01T10:00:00Z"
NOW_S = 1_780_308_000
POLICY = """\
apiVersion: tidegate.dev/v1alpha1
kind: GPUPolicy
metadata: {name: p}
spec:
  mode: enforce
  pools:
  - {name: h100, nodes: {selector: {a: b}}, capacity: {max: 80}}
  teams:
  - {name: serving, namespaces: [serving], bounds: {floor: 50%}}
  - {name: dev, namespaces: [dev]}
"""
WAITS = Workload("job", "serving", "h100", 2, 8000, WorkloadState.PENDING, NOW_S - 60)
SNAPSHOT = Snapshot(
    "east",
    NOW_S,
    (PoolObservation("h100", 8, 600),),
    (Node("n1", "h100", 8, 8000, NOW_S - 9000, NOW_S - 8900, NOW_S - 8800, idle_since_s=NOW_S - 60),),
    (WAITS,),
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "s.json").write_bytes(codec.write(SNAPSHOT))
    (tmp_path / "p.yaml").write_text(POLICY)
    return tmp_path


def decided(files: Path, *more: str, now: str = NOW) -> Ran:
    return tidegate(
        "decide", "--snapshot", str(files / "s.json"), "--policy", str(files / "p.yaml"), "--now", now, *more
    )


@pytest.fixture
def store(files: Path) -> tuple[str, str]:
    """A store with one tick, made through the public API: its path and the tick's id."""
    policy = load_policy(files / "p.yaml")
    made = decide(SNAPSHOT, Forecasts(), policy, NOW_S, Advice())
    record = TickRecord.of(
        snapshot=SNAPSHOT, forecasts=Forecasts(), policy=policy, advice=Advice(), decision=made, wall_at_s=NOW_S
    )
    with open_store(str(files / "store.sqlite")) as opened:
        opened.append(record, made, Forecasts())
    return str(files / "store.sqlite"), record.id


def test_the_decision_is_its_canonical_bytes_and_one_line(files: Path) -> None:
    done = decided(files, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout_bytes)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert done.stdout_bytes == text.encode() + b"\n"
    # 16 GPUs wait in gangs of eights and a node of 8 stands empty: two nodes of demand; the rule adds a tenth to it,
    # 17.6 GPUs, which is three nodes.
    (capacity,) = [action for action in document["actions"] if action["kind"] == "set_capacity"]
    assert (capacity["pool"], capacity["nodes"]) == ("h100", 3)


def test_two_processes_with_different_hash_seeds_print_the_same_bytes(files: Path) -> None:
    command = [sys.executable, "-m", "controller.cli", "decide", "--now", NOW, "--json"]
    command += ["--snapshot", str(files / "s.json"), "--policy", str(files / "p.yaml")]
    printed = [
        subprocess.run(command, capture_output=True, cwd=ROOT, check=True, env=os.environ | {"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    ]
    assert printed[0].stdout == printed[1].stdout == decided(files, "--json").stdout_bytes


def test_without_json_it_is_sentences(files: Path) -> None:
    done = decided(files)
    assert done.returncode == 0
    assert any(line.startswith("Done: ") and "h100" in line for line in done.stdout.splitlines())


def test_forecasts_and_advice_are_read(files: Path) -> None:
    window = {"start_s": 0, "end_s": 3600, "levels_permille": [500, 900], "milli_gpus": [16_000, 64_000]}
    series = {"pool": "h100", "team": "", "issued_at_s": NOW_S, "windows": [window], "model": "m"}
    (files / "f.json").write_text(json.dumps({"series": [series]}))
    (files / "a.json").write_text(json.dumps({"pools": [{"pool": "h100", "source": "forecast", "window_s": 900}]}))
    done = decided(files, "--forecasts", str(files / "f.json"), "--advice", str(files / "a.json"), "--json")
    (capacity,) = [a for a in json.loads(done.stdout)["actions"] if a["kind"] == "set_capacity"]
    assert capacity["nodes"] == 8, "the 0.9 quantile of 64 GPUs is eight nodes of 8"


def test_a_snapshot_with_a_node_in_two_pools_is_one_line_and_exit_2(files: Path) -> None:
    document = json.loads(codec.write(SNAPSHOT))
    document["pools"].append(document["pools"][0] | {"name": "a100"})
    document["nodes"].append(document["nodes"][0] | {"pool": "a100"})
    (files / "s.json").write_text(json.dumps(document))
    done = decided(files, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    allowed = "a node is in one pool, not in both 'a100' and 'h100'"
    assert done.stderr == f"{files / 's.json'}: nodes[n1]: n1: {allowed}\n"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("s.json", b"", "s.json: (file): not JSON"),
        ("s.json", b"{}", "s.json: cluster: missing: required"),
        ("s.json", None, "s.json: (file): cannot be read: No such file or directory"),
        ("p.yaml", b"", "p.yaml: (file): empty"),
        ("p.yaml", None, "p.yaml: (file): cannot be read: No such file or directory"),
    ],
)
def test_bad_files_are_refused_with_nothing_on_stdout(files: Path, name: str, content: bytes | None, said: str) -> None:
    (files / name).unlink() if content is None else (files / name).write_bytes(content)
    done = decided(files, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr.splitlines()[0]


@pytest.mark.parametrize("now", ["soon", "2026-02-30", "9999-12-31"])
def test_a_moment_that_is_none(files: Path, now: str) -> None:
    done = decided(files, now=now)
    assert (done.returncode, len(done.stderr.splitlines()), done.stderr[:7]) == (2, 1, "--now: ")


def test_a_moment_without_an_offset_is_utc(files: Path) -> None:
    assert decided(files, "--json", now="2026-06-01T10:00").stdout == decided(files, "--json").stdout
    assert decided(files, "--json", now="2026-06-01T12:00+02:00").stdout == decided(files, "--json").stdout


def test_a_decision_file_is_explained(files: Path) -> None:
    (files / "d.json").write_bytes(decided(files, "--json").stdout_bytes)
    done = tidegate("explain", str(files / "d.json"))
    assert done.returncode == 0
    *lines, verdict = done.stdout.splitlines()
    assert lines == decided(files).stdout.splitlines()
    assert verdict.startswith("Not re-derived: a decision without its inputs")
    as_json = json.loads(tidegate("explain", str(files / "d.json"), "--json").stdout)
    assert (as_json["re_derived"], as_json["sentences"]) == (None, lines)


def test_an_id_is_derived_again_from_the_store(files: Path, store: tuple[str, str]) -> None:
    url, identity = store
    for name in (url, f"sqlite:///{url}"):
        done = tidegate("explain", identity, "--store", name)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1] == "Re-derived from its inputs bit for bit."
    as_json = json.loads(tidegate("explain", identity, "--store", url, "--json").stdout)
    assert (as_json["id"], as_json["re_derived"]) == (identity, True)
    assert as_json["decision"] == json.loads(decided(files, "--json").stdout)


def test_a_dump_explains_itself_and_a_tampered_one_does_not(files: Path, store: tuple[str, str]) -> None:
    dump = files / "record.json"
    assert tidegate("explain", store[1], "--store", store[0], "--dump", str(dump)).returncode == 0
    whole = dump.read_text()
    again = tidegate("explain", str(dump))
    assert (again.returncode, again.stdout.splitlines()[-1]) == (0, "Re-derived from its inputs bit for bit.")
    for was, becomes in (
        ('"nodes":3', '"nodes":4'),  # what was decided
        ('"milli_gpus_per_pod":8000', '"milli_gpus_per_pod":7000'),  # what was seen
        ('"ppm":500000', '"ppm":400000'),  # what was allowed
    ):
        assert was in whole
        dump.write_text(whole.replace(was, becomes))
        tampered = tidegate("explain", str(dump))
        assert (tampered.returncode, tampered.stderr) == (1, "")
        assert tampered.stdout.splitlines()[-1] == "NOT re-derived: the recorded bytes differ from these."
        assert json.loads(tidegate("explain", str(dump), "--json").stdout)["re_derived"] is False


def test_a_tampered_record_in_the_store_is_exit_1(files: Path) -> None:
    policy = load_policy(files / "p.yaml")
    made = decide(SNAPSHOT, Forecasts(), policy, NOW_S, Advice())
    forged = replace(made, actions=())
    whole = TickRecord.of(
        snapshot=SNAPSHOT, forecasts=Forecasts(), policy=policy, advice=Advice(), decision=forged, wall_at_s=NOW_S
    )
    unreadable = replace(whole, id="0123456789abcdef", at_s=NOW_S + 60, snapshot=b'{"cluster":"east"}')
    with open_store(str(files / "forged.sqlite")) as store:
        store.append(whole, forged, Forecasts())
        store.append(unreadable, replace(forged, at_s=NOW_S + 60), Forecasts())
    url = str(files / "forged.sqlite")
    done = tidegate("explain", whole.id, "--store", url)
    assert (done.returncode, done.stdout.splitlines()[-1][:15]) == (1, "NOT re-derived:")
    done = tidegate("explain", unreadable.id, "--store", url)
    assert (done.returncode, done.stderr) == (1, "")
    assert "its inputs cannot be read (record: snapshot: taken_at_s: missing: required" in done.stdout
    assert json.loads(tidegate("explain", unreadable.id, "--store", url, "--json").stdout)["re_derived"] is False


def test_what_is_neither_a_file_nor_an_id(files: Path, store: tuple[str, str]) -> None:
    done = tidegate("explain", "feedfacefeedface", "--store", store[0])
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith("id: feedfacefeedface: an id that ")
    absent = files / "absent.sqlite"
    done = tidegate("explain", "feedfacefeedface", "--store", str(absent))
    assert (done.returncode, absent.exists()) == (2, False), "asking never makes a store"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"policy": ...}, "policy: missing: required in a record"),
        ({"at_s": "noon"}, "at_s: noon: whole seconds since 1970"),
        ({"at_s": 10**20}, "at_s: 100000000000000000000: whole seconds since 1970"),
        ({"at_s": 1.5}, "(file): float has no canonical form: whole numbers, text, lists and mappings"),
        ({"snapshot": {"cluster": "east"}}, "snapshot: taken_at_s: missing: required"),
    ],
    ids=["no policy", "words as moment", "far future", "fraction", "half a snapshot"],
)
def test_a_bad_record_file_is_refused(
    files: Path, store: tuple[str, str], change: dict[str, object], said: str
) -> None:
    dump = files / "record.json"
    tidegate("explain", store[1], "--store", store[0], "--dump", str(dump))
    document = json.loads(dump.read_text()) | change
    dump.write_text(json.dumps({key: value for key, value in document.items() if value is not ...}))
    done = tidegate("explain", str(dump))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0].startswith(f"{dump}: {said}")


def test_a_dump_that_cannot_be_written_is_one_line(files: Path, store: tuple[str, str]) -> None:
    done = tidegate("explain", store[1], "--store", store[0], "--dump", str(files / "no" / "r.json"))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
