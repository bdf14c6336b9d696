"""``tidegate demo``: the whole product on an embedded default, with one Ctrl-C to end it all.

Two processes on one store: a child runs ``tidegate simulate`` (the same loop as on a cluster), this one serves the
dashboard. They share nothing but the store, as they would in a deployment.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from controller.core.errors import InputError

DEFAULT_STORE = Path(".tidegate") / "demo.sqlite"
STOP_WITHIN_S = 15


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("demo")(demo)


def demo(
    policy: Annotated[
        Path | None, typer.Option(help="A policy file of your own; edits are picked up while it runs.")
    ] = None,
    speed: Annotated[float, typer.Option(min=0, help="Simulated seconds a second; 0 is as fast as possible.")] = 600,
    store: Annotated[Path, typer.Option(help="Where history and decisions are kept (SQLite).")] = DEFAULT_STORE,
    host: Annotated[str, typer.Option(help="Address of the dashboard.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the dashboard.")] = 8080,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what the store holds and start over.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but the address.")] = False,
) -> None:
    """Run everything on a bundled trace: simulated cluster, store, dashboard. Ctrl-C stops it; starting again goes on.

    Examples:

      tidegate demo

      tidegate policy init --template production --output mine.yaml && tidegate demo --policy mine.yaml

      tidegate demo --fresh --speed 1200 --port 9090
    """
    from controller.resources.parse import load_policy
    from dashboard.serve import run

    _refuse_busy_port(host, port)
    if policy is not None:
        load_policy(policy)
    _claim(store, fresh=fresh)
    url = f"http://{'[' + host + ']' if ':' in host else host}:{port}"
    with _simulation(policy, speed, store):
        typer.echo(f"tidegate is at {url}   (Ctrl-C stops it; start again to go on where it stopped)")
        if not quiet:
            typer.echo(f"a simulated cluster replays two real traces at {speed:g} times real time, kept in {store}")
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn has shut down by then: Ctrl-C is how a demo ends
            run(f"sqlite:///{store.resolve()}", host=host, port=port)


def _refuse_busy_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.closing(socket.socket(family)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise InputError.one("--port", port, f"a free port on {host} ({error.strerror})") from error


def _claim(store: Path, *, fresh: bool) -> None:
    """Refuse a store that another demo writes to, or that is none, before anything is said, deleted or started."""
    from controller.store import open_store
    from controller.store.lock import exclusive

    with exclusive(str(store), "demo"):
        if fresh:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{store}{suffix}").unlink(missing_ok=True)
        open_store(str(store), durable=False).close()


@contextlib.contextmanager
def _simulation(policy: Path | None, speed: float, store: Path) -> Iterator[None]:
    """Keep the simulation running for as long as the dashboard does, and never longer."""
    command = [sys.executable, "-m", "controller.cli", "simulate", "--trace", "builtin:demo"]
    command += ["--store", f"sqlite:///{store.resolve()}", "--speed", f"{speed:g}", "--until-stdin-closes"]
    command += ["--policy", str(policy) if policy else "builtin:demo"]
    # The pipe is never written to: it closes when this process ends, however it ends, and the child then stops.
    child = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603
    stopping = threading.Event()
    try:
        _fail_early(child)
        threading.Thread(target=_watch, args=(child, stopping), daemon=True).start()
        yield
    finally:
        stopping.set()
        if child.stdin:
            child.stdin.close()
        try:
            child.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            child.kill()
    if child.returncode not in (0, -signal.SIGINT, 130):
        raise typer.Exit(child.returncode if child.returncode > 0 else 1)


def _fail_early(child: subprocess.Popen[bytes]) -> None:
    """A refused policy or store ends the child at once: end with its exit code; it has said why."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        if child.wait(2):
            raise typer.Exit(child.returncode)


def _watch(child: subprocess.Popen[bytes], stopping: threading.Event) -> None:
    """End the dashboard too when the simulation fails; when the trace has merely ended, leave it to be looked at."""
    code = child.wait()
    if stopping.is_set():
        return
    if code:
        typer.echo(f"the simulation has ended with code {code}, so the demo ends too", err=True)
        signal.raise_signal(signal.SIGINT)
    else:
        typer.echo("the trace has ended; the dashboard stays until Ctrl-C (tidegate demo --fresh starts over)")
