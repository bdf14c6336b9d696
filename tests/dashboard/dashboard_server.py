"""The dashboard as a browser meets it: on a port."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import uvicorn

from controller.store import open_store
from dashboard.app import create_app


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
