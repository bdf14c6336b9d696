"""``tidegate simulate`` as people and ``tidegate demo`` start it: real processes on a real store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import controller
from controller.cli.app import app
from controller.core.errors import InputError
from controller.store import open_store

DEMO = ["--trace", "builtin:demo", "--policy", "builtin:demo"]


def command(store: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "controller.cli", "simulate", *DEMO, "--store", str(store), *more]


def run(store: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(store, *more), capture_output=True, text=True, check=False, timeout=300)


def moments(store: Path) -> list[int]:
    with open_store(str(store)) as opened:
        return sorted(header.at_s for header in opened.ticks("demo", limit=10_000))


def wait_for_ticks(store: Path, least: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if store.exists() and len(moments(store)) >= least:
            return
        time.sleep(0.2)
    raise AssertionError("no ticks were written")


def test_two_runs_of_three_hours_are_one_run_of_six(tmp_path: Path) -> None:
    """Stopped in between or not: the same ticks, the same work done, the same GPU-hours but for a forecast refitted."""
    whole, parts = tmp_path / "whole.sqlite", tmp_path / "parts.sqlite"
    one = run(whole, "--speed", "0", "--until", "66h", "--json")
    assert one.returncode == 0, one.stderr
    first = run(parts, "--speed", "0", "--until", "63h", "--json")
    assert first.returncode == 0, first.stderr
    second = run(parts, "--speed", "0", "--until", "66h", "--json")
    single, begun, ended = (json.loads(done.stdout) for done in (one, first, second))
    assert (begun["continued"], ended["continued"]) == (False, True)
    # 60 h is where the demo begins: a tick each 5 minutes, both ends included.
    assert (single["ticks"], begun["ticks"], ended["ticks"]) == (73, 37, 36)
    assert ended["to"] == single["to"]
    assert moments(parts) == moments(whole) == list(range(1_715_515_200, 1_715_515_200 + 6 * 3600 + 1, 300))
    assert ended["jobs_done"] == single["jobs_done"] > 0
    assert ended["busy_gpu_h"] == pytest.approx(single["busy_gpu_h"], rel=0.02)
    assert single["problems"] == 0


def test_a_signal_stops_it_cleanly_and_a_kill_loses_no_tick(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    first = subprocess.Popen(command(store, "--speed", "3000", "--json"), stdout=subprocess.PIPE, text=True)
    wait_for_ticks(store, 3)
    first.send_signal(signal.SIGINT)
    out, _ = first.communicate(timeout=60)
    assert first.returncode == 0
    assert json.loads(out)["ended"] is False
    before = moments(store)
    second = subprocess.Popen(command(store, "--speed", "3000", "--json"), stdout=subprocess.DEVNULL)
    wait_for_ticks(store, len(before) + 3)
    second.kill()
    second.wait(30)
    third = subprocess.Popen(command(store, "--speed", "3000", "--json"), stdout=subprocess.PIPE, text=True)
    wait_for_ticks(store, len(moments(store)) + 3)
    third.send_signal(signal.SIGTERM)
    out, _ = third.communicate(timeout=60)
    assert third.returncode == 0
    assert json.loads(out)["continued"] is True
    seen = moments(store)
    assert seen[: len(before)] == before
    assert seen == list(range(seen[0], seen[-1] + 1, 300))


def test_it_ends_when_its_parent_does(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    reader, writer = os.pipe()
    child = subprocess.Popen(command(store, "--speed", "600", "--until-stdin-closes"), stdin=reader)
    os.close(reader)
    wait_for_ticks(store, 1)
    os.close(writer)
    assert child.wait(60) == 0


def test_a_second_simulator_on_the_same_store_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    first = subprocess.Popen(command(store, "--speed", "600"), stdout=subprocess.DEVNULL)
    try:
        wait_for_ticks(store, 1)
        second = run(store, "--speed", "0", "--until", "61h")
    finally:
        first.terminate()
        first.wait(60)
    assert second.returncode == 2
    assert second.stderr.count("\n") == 1
    assert "another tidegate writes to it" in second.stderr


def test_a_store_of_another_simulation_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    assert run(store, "--speed", "0", "--until", "61h").returncode == 0
    other = run(store, "--speed", "0", "--until", "62h", "--seed", "5")
    assert other.returncode == 2
    assert "holds a simulation with seed 0" in other.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--lead", "soon"], "--lead: soon: a duration such as 15m"),
        (["--tick", "0"], "--tick: 0: at least 1 s"),
        (["--until", "10h"], "--until: 36000: a moment after the beginning"),
        (["--begin", "90d"], "--begin: 7776000: a moment before the end of the trace"),
        (["--trace", "builtin:nothing"], "builtin:demo"),
        (["--trace", "no/such/folder"], "--trace"),
        (["--policy", "no-such.yaml"], "no-such.yaml"),
    ],
)
def test_bad_input_is_refused_with_its_flag_before_anything_is_written(
    tmp_path: Path, options: list[str], said: str
) -> None:
    store = tmp_path / "s.sqlite"
    done = CliRunner().invoke(app, ["simulate", *DEMO, "--store", str(store), "--speed", "0", *options])
    assert isinstance(done.exception, InputError)
    assert len(done.exception.lines()) == 1
    assert said in done.exception.lines()[0]
    assert done.stdout == ""
    assert not store.exists()


def test_on_the_command_line_that_is_one_line_and_exit_2(tmp_path: Path) -> None:
    done = run(tmp_path / "s.sqlite", "--lead", "soon")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "--lead: soon: a duration such as 15m, 900s, 900 or 1h30m\n"


def test_an_edit_of_the_policy_takes_effect_and_a_bad_one_does_not(tmp_path: Path) -> None:
    text = (Path(controller.__file__).parent / "data" / "traces" / "demo" / "policy.yaml").read_text("utf-8")
    assert text.count("ceiling: 70%") == 1
    policy, store = tmp_path / "p.yaml", tmp_path / "s.sqlite"
    policy.write_text(text, "utf-8")
    options = ["--policy", str(policy), "--speed", "3000", "--json"]
    child = subprocess.Popen(command(store, *options), stdout=subprocess.PIPE, text=True)
    wait_for_ticks(store, 2)
    policy.write_text(text.replace("ceiling: 70%", "ceiling: 170%"), "utf-8")
    wait_for_ticks(store, len(moments(store)) + 3)
    policy.write_text(text.replace("ceiling: 70%", "ceiling: 60%"), "utf-8")
    wait_for_ticks(store, len(moments(store)) + 3)
    child.terminate()
    out, _ = child.communicate(timeout=60)
    summary = json.loads(out)
    assert summary["problems"] >= 1
    assert "policy refused, the last good one stays" in summary["last_problem"]
    with open_store(str(store)) as opened:
        ceilings = opened.team_series("demo", "h100", "vision", max_points=10_000)["ceiling"]
    # 70 % and then 60 % of 256, whole GPUs.
    assert list(dict.fromkeys(ceilings)) == [179_000, 153_000]
