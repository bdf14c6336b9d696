"""Bad input, as data: which field, what it held, what is allowed.

One error type for every boundary (policy files, snapshots, traces, command line), so that each prints the same way:
one line a problem, exit code 2, nothing half written.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong with an input.

    ``path`` is the field as the user wrote it (``spec.teams[1].bounds.floor``), ``value`` what stands there (already
    rendered, never a secret), ``allowed`` what would be accepted.
    """

    path: str
    value: str
    allowed: str

    def __str__(self) -> str:
        """Render as the one line that a user sees."""
        shown = f"{self.path}: {self.value}" if self.value else self.path
        return f"{shown}: {self.allowed}"


class InputError(ValueError):
    """An input was refused; ``problems`` says why, ``source`` which input (a file name, a flag)."""

    def __init__(self, problems: tuple[Problem, ...] | list[Problem], *, source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        super().__init__("\n".join(self.lines()))

    @classmethod
    def one(cls, path: str, value: object, allowed: str, *, source: str = "") -> InputError:
        """Build the error for a single problem."""
        return cls([Problem(path, str(value), allowed)], source=source)

    def lines(self) -> list[str]:
        """One line a problem, prefixed with the source where one is known."""
        prefix = f"{self.source}: " if self.source else ""
        return [f"{prefix}{problem}" for problem in self.problems]
