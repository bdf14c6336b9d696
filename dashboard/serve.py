"""Running the dashboard: one process, graceful at the end."""

from __future__ import annotations

import uvicorn

from controller.store import open_store
from dashboard.app import create_app

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared with, never bound by default


def run(store_url: str, *, host: str = "127.0.0.1", port: int = 8080, title: str = "tidegate") -> None:
    """Serve until interrupted. Raises ``StoreError`` where the store cannot be opened."""
    with open_store(store_url, durable=False) as store:
        app = create_app(store, title=title, hosts=allowed_hosts(host))
        config = uvicorn.Config(
            app, host=host, port=port, log_level="warning", access_log=False, timeout_graceful_shutdown=3
        )
        uvicorn.Server(config).run()


def allowed_hosts(host: str) -> tuple[str, ...]:
    """Host names to answer to: that of a named address; any, where it listens on all of them on purpose."""
    if host in ("127.0.0.1", "::1", "localhost"):
        return ()
    return ("*",) if host in EVERYWHERE else (host,)
