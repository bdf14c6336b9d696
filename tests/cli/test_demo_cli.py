"""``tidegate demo`` from the outside: one page within moments, one Ctrl-C, and on where it stopped."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

WITHIN_S = 60


def a_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Demo:
    """A running demo; ``wait_for`` polls within a bound."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.port = a_free_port()
        command = [
            sys.executable,
            "-m",
            "controller.cli",
            "demo",
            "--port",
            str(self.port),
            "--speed",
            "3000",
            *arguments,
        ]
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.wait_for(lambda: self.get("/healthz"))

    def get(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return json.load(answer)
        except OSError:
            return None

    def wait_for(self, found: Any) -> Any:
        until = time.monotonic() + WITHIN_S
        while time.monotonic() < until:
            assert self.process.poll() is None, self.process.stdout.read() if self.process.stdout else ""
            if value := found():
                return value
            time.sleep(0.2)
        raise AssertionError(f"nothing within {WITHIN_S} s")

    def a_tick_after(self, at_s: int) -> int:
        def later() -> int | None:
            tick = self.get("/api/v1/ticks/latest")
            return int(tick["at_s"]) if tick and tick["at_s"] and tick["at_s"] > at_s else None

        return int(self.wait_for(later))

    def children(self) -> list[int]:
        listed = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True)
        return [int(pid) for pid in listed.stdout.split()]


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_it_shows_decisions_stops_at_ctrl_c_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    demo = Demo(tmp_path)
    stopped_at = demo.a_tick_after(demo.a_tick_after(0))
    demo.process.send_signal(signal.SIGINT)
    said, _ = demo.process.communicate(timeout=WITHIN_S)
    assert demo.process.returncode == 0, said
    assert f"http://127.0.0.1:{demo.port}" in said
    assert "Traceback" not in said

    again = Demo(tmp_path)
    try:
        fresh = [sys.executable, "-m", "controller.cli", "demo", "--fresh", "--port", str(a_free_port())]
        refused = subprocess.run(fresh, cwd=tmp_path, capture_output=True, text=True, timeout=WITHIN_S)
        assert refused.returncode == 2, refused.stdout  # a demo that runs keeps its store
        first = again.get("/api/v1/ticks/latest")
        assert first["at_s"] >= stopped_at
        assert again.a_tick_after(stopped_at) > stopped_at
    finally:
        children = again.children()
        again.process.kill()
        again.process.wait(10)
    # Killed without a chance to clean up, it still leaves no simulation behind.
    until = time.monotonic() + WITHIN_S
    while any(map(alive, children)) and time.monotonic() < until:
        time.sleep(0.2)
    assert not [pid for pid in children if alive(pid)]


def test_a_port_that_is_taken_is_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "controller.cli", "demo", "--port", port]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=WITHIN_S)
    assert result.returncode == 2
    assert f"--port: {port}" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_bad_policy_ends_it_before_it_begins(tmp_path: Path) -> None:
    policy = tmp_path / "mine.yaml"
    policy.write_text("apiVersion: tidegate.dev/v1alpha1\nkind: GPUPolicy\nmetadata: {name: p}\nspec: {teams: []}\n")
    command = [sys.executable, "-m", "controller.cli", "demo", "--policy", "mine.yaml", "--port", str(a_free_port())]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=WITHIN_S)
    assert result.returncode == 2
    assert "spec.pools" in result.stderr
    assert "Traceback" not in result.stderr + result.stdout
