"""A policy file that is watched: an edit takes effect with the next tick, a bad edit is refused and said so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from controller.core.errors import InputError
from controller.core.policy import Policy
from controller.resources.parse import load_policy


class PolicyFile:
    """Re-read when its modification time or size changes. The first read raises ``InputError``; later ones do not."""

    def __init__(self, path: Path, load: Callable[[Path], Policy] = load_policy) -> None:
        self._path, self._load = path, load
        self.problem = ""
        self._seen = self._stamp()
        self._policy = load(path)

    def current(self) -> Policy:
        """The last good policy."""
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            try:
                self._policy, self.problem = self._load(self._path), ""
            except InputError as error:
                self.problem = f"policy refused, the last good one stays: {'; '.join(error.lines())}"
        return self._policy

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size
