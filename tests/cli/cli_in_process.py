"""The whole command in this process: its own ``main``, arguments, streams and exit code, without a start of Python."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

from controller.cli.app import main


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left behind."""

    returncode: int
    stdout_bytes: bytes
    stderr: str

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode()


def tidegate(*arguments: str) -> Ran:
    """Run ``tidegate`` with these arguments."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code = 0
    with patch.object(sys, "argv", ["tidegate", *arguments]), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    out_bytes, err_bytes = (stream.buffer.getvalue() for stream in (out, err))
    return Ran(code, out_bytes, err_bytes.decode())
