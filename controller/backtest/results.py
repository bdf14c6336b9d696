"""Results of a suite on disk: one line of JSON a case, written when it is finished and before the next is counted.

Whatever ends a run, the lines that are there stay; a line that was torn by the end is passed over, and its case is run
again.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import orjson

from controller.core.errors import InputError

FILE = "results.jsonl"


class Results:
    """The results in a folder (None: in memory only). One run at a time may write there."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.torn = 0
        self._file: IO[bytes] | None = None
        self._by_id: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> Results:
        if self.folder is None:
            return self
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._file = (self.folder / FILE).open("a+b")
        except OSError as error:
            raise InputError.one("--out", self.folder, f"a folder that can be written ({error.strerror})") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise InputError.one("--out", self.folder, "a folder that no other run is writing to") from error
        self._read(self._file)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def _read(self, file: IO[bytes]) -> None:
        file.seek(0)
        text = file.read()
        for line in text.splitlines():
            try:
                result = orjson.loads(line)
                self._by_id[result["id"]] = result
            except (orjson.JSONDecodeError, KeyError, TypeError):
                self.torn += 1
        if text and not text.endswith(b"\n"):
            file.write(b"\n")

    def finished(self, case_id: str) -> dict[str, Any] | None:
        """The result of a case, unless it failed: that is tried again."""
        result = self._by_id.get(case_id)
        return None if result is None or "failed" in result else result

    def add(self, result: dict[str, Any]) -> None:
        """Keep a result; on return it is on the disk."""
        self._by_id[result["id"]] = result
        if self._file is not None:
            self._file.write(orjson.dumps(result, option=orjson.OPT_APPEND_NEWLINE))
            self._file.flush()
            os.fsync(self._file.fileno())
