"""Log set-up: one line an event on stderr, so that stdout stays for results; the reasons' vocabulary is the keys."""

from __future__ import annotations

import logging
import sys

import structlog

from controller.settings import LogFormat, Settings


def set_up_logging(settings: Settings) -> None:
    """Configure structlog for this process."""
    as_json = settings.log_format is LogFormat.JSON
    renderer = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.dict_tracebacks if as_json else structlog.processors.ExceptionRenderer(),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[settings.log_level.upper()]),
        # Looked up at each use: what standard error is may have changed since (a test runner, a daemon).
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
