"""A store filled through the public interfaces, a server on it, and a real Chromium."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from dashboard_seed import fill
from learning_seed import learn
from playwright.sync_api import Browser, sync_playwright

from controller.store import open_store
from dashboard.app import create_app

CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Served:
    """An application on a free loopback port, in a thread of its own."""

    def __init__(self, store_path: Path) -> None:
        self.store = open_store(str(store_path))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        config = uvicorn.Config(create_app(self.store), host="127.0.0.1", port=self.port, log_level="warning")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "the dashboard did not start"
            self._thread.join(0.02)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self.store.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Three teams, forty ticks, a violation, forecasts, a learner that acts."""
    path = tmp_path_factory.mktemp("store") / "seeded.sqlite"
    fill(path, teams=3, ticks=40)
    learn(path)
    running = Served(path)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two hundred teams."""
    path = tmp_path_factory.mktemp("store") / "crowded.sqlite"
    fill(path, teams=200, ticks=3)
    running = Served(path)
    yield running
    running.stop()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Served]:
    """A store without a tick."""
    running = Served(tmp_path / "empty.sqlite")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Chromium as the system has it; where it cannot start, the test fails."""
    path = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    assert path, "Chromium is needed: tests/prepare.sh installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
        yield browser
        browser.close()
