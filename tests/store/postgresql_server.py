"""A real PostgreSQL for the tests: its own data folder, a Unix socket only, gone afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg

PASSWORD = "not-to-be-printed"


def _binaries() -> Path:
    on_path = shutil.which("initdb")
    found = [Path(on_path).resolve().parent] if on_path else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name), reverse=True)
    usable = [folder for folder in found if (folder / "postgres").exists() and (folder / "initdb").exists()]
    assert usable, "the store's tests need PostgreSQL's server programs (Debian: apt-get install postgresql)"
    return usable[0]


def _account() -> dict[str, object]:
    """PostgreSQL refuses to run as root; elsewhere it runs as whoever runs the tests."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = known.get("postgres") or known["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


@contextmanager
def running() -> Iterator[str]:
    """Yield the URL of a server, without a database name: ``postgresql://…@/{}?host=…`` to be formatted."""
    folder = Path(tempfile.mkdtemp(prefix="tidegate-pg-"))
    account, binaries = _account(), _binaries()
    server = None
    try:
        secret = folder / "password"
        secret.write_text(PASSWORD)
        if account:
            for path in (folder, secret):
                os.chown(path, account["user"], account["group"])
        data = folder / "data"
        make = [binaries / "initdb", "-D", data, "-U", "tidegate", "--auth=scram-sha-256", f"--pwfile={secret}"]
        _run([*make, "--no-sync", "--encoding=UTF8", "--locale=C"], account)
        options = {"listen_addresses": "", "fsync": "off", "max_connections": "40", "shared_buffers": "16MB"}
        command = [binaries / "postgres", "-D", data, "-k", folder]
        command += [f"--{name}={value}" for name, value in options.items()]
        log = (folder / "log").open("wb")
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **account)
        url = f"postgresql://tidegate:{PASSWORD}@/{{}}?host={quote(str(folder), safe='')}"
        _wait(server, url.format("postgres"), folder / "log")
        yield url
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)
            server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[object], account: dict[str, object]) -> None:
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=120, check=False, **account)
    assert done.returncode == 0, f"{command[0]} failed: {done.stderr}"


def _wait(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            assert server.poll() is None, f"PostgreSQL did not start: {log.read_text()}"
            assert time.monotonic() < deadline, f"PostgreSQL did not answer: {log.read_text()}"
            time.sleep(0.1)
        else:
            return
