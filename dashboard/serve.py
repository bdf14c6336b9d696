"""Running the dashboard: one process, graceful at the end."""

from __future__ import annotations

import uvicorn

from controller.store import open_store
from dashboard.app import create_app


def run(store_url: str, *, host: str = "127.0.0.1", port: int = 8080, title: str = "tidegate") -> None:
    """Serve until interrupted. Raises ``StoreError`` where the store cannot be opened."""
    with open_store(store_url, durable=False) as store:
        hosts = (
            () if host in ("127.0.0.1", "::1", "localhost") else (host,) if host not in ("0.0.0.0", "::") else ("*",)
        )
        app = create_app(store, title=title, hosts=hosts)
        config = uvicorn.Config(
            app, host=host, port=port, log_level="warning", access_log=False, timeout_graceful_shutdown=3
        )
        uvicorn.Server(config).run()
