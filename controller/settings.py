"""Settings of a process, from its environment: few, each with its reason; everything else is in the policy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from controller.core.errors import InputError

LEVELS = ("debug", "info", "warning", "error")


class LogFormat(StrEnum):
    """How log lines look: for people, or for a log collector."""

    CONSOLE = "console"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Settings:
    """``TIDEGATE_LOG_FORMAT`` (console or json) and ``TIDEGATE_LOG_LEVEL`` (debug, info, warning, error)."""

    log_format: LogFormat = LogFormat.CONSOLE
    log_level: str = "warning"

    @classmethod
    def of(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the environment; a value that is not allowed is refused with its name."""
        given = os.environ if environment is None else environment
        log_format = given.get("TIDEGATE_LOG_FORMAT", LogFormat.CONSOLE.value).lower()
        log_level = given.get("TIDEGATE_LOG_LEVEL", "warning").lower()
        if log_format not in list(LogFormat):
            raise InputError.one("TIDEGATE_LOG_FORMAT", log_format, " or ".join(LogFormat))
        if log_level not in LEVELS:
            raise InputError.one("TIDEGATE_LOG_LEVEL", log_level, ", ".join(LEVELS))
        return cls(LogFormat(log_format), log_level)
