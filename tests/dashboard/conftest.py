"""A store filled through the public interfaces, a server on it, and a real Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_seed import fill
from dashboard_server import Served
from learning_seed import learn
from playwright.sync_api import Browser, sync_playwright

CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


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
