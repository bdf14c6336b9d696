"""Where the loop gets its policy from: a file that is read again when it changes. A bad edit never takes effect."""

from __future__ import annotations

from pathlib import Path

from controller.core.errors import InputError, Problem
from controller.core.policy import Policy
from controller.resources.parse import parse_policy, read_text


class PolicyFile:
    """A policy file being watched. ``policy`` is the last good one; ``problems`` what is wrong with the file now."""

    def __init__(self, path: Path) -> None:
        """Read the file; a first policy that is bad raises ``InputError``: there is no good one to keep."""
        self.path = path
        self.text = read_text(path)
        self.policy: Policy = parse_policy(self.text, str(path))
        self.problems: tuple[Problem, ...] = ()

    def current(self) -> Policy:
        """The policy to decide by: the file's if it changed and is good, else the last good one."""
        try:
            text = read_text(self.path)
            if text != self.text or self.problems:
                self.text = text
                self.policy = parse_policy(text, str(self.path))
            self.problems = ()
        except InputError as error:
            self.problems = error.problems
        return self.policy
