"""A learner's stay: how long it has acted without a break, and how its account against the rule stands.

The ``Stop`` of the benchmark, on a running loop: rows are closed one at a time, a restart may fall into any hour, and a
learner may be let in at noon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from controller.core.errors import InputError
from controller.core.quantities import HOUR_S
from controller.learning.fleet import Array
from controller.learning.stop import Stop


@dataclass(frozen=True, slots=True)
class Judged:
    """The days by which the gate let a learner in: what the rule cost on each, what the learner saved row by row.

    ``midnight_s``: where the day after them begins. ``step_s``: seconds of a row.
    """

    midnight_s: int
    step_s: int
    rule_costs: tuple[float, ...]
    savings: tuple[Array, ...]

    def stop(self, from_s: int, saved: float) -> Stop:
        """The stop of the day, for a learner that acts from ``from_s`` on and had saved so much (GPU-hours) by then."""
        first, hour = (from_s - self.midnight_s) // self.step_s, HOUR_S // self.step_s
        by_hour = [np.add.reduceat(day[first:], np.arange(0, len(day) - first, hour)) for day in self.savings]
        return Stop.of(self.rule_costs, by_hour, saved)


@dataclass(frozen=True, slots=True)
class Stay:
    """Since when the learner acts. ``saved``: GPU-hours below the rule's by ``day_s``, a midnight or ``since_s``.

    ``rows``: what was saved in each row since ``day_s``.
    """

    since_s: int
    day_s: int
    saved: float = 0.0
    rows: tuple[float, ...] = ()

    @classmethod
    def begun(cls, at_s: int) -> Stay:
        """A stay that begins with the row at ``at_s``."""
        return cls(at_s, at_s)

    def closed(self, at_s: int, saving: float) -> Stay:
        """Take in a row that is over; one before the stay is not the learner's."""
        return self if at_s < self.day_s else replace(self, rows=(*self.rows, saving))

    def told_anew(self, midnight_s: int, savings: Array, row_of: Callable[[int], int]) -> Stay:
        """The stay as of the last midnight, from the account of a replayed past. ``savings``: (rows so far,)."""
        day_s = max(self.since_s, midnight_s)
        before, today = max(row_of(self.day_s), 0), max(row_of(day_s), 0)
        saved = self.saved + float(savings[before:today].sum())
        return replace(self, day_s=day_s, saved=saved, rows=tuple(float(one) for one in savings[today:]))

    def used(self, judged: Judged) -> float:
        """What was lost, of what may be lost, at the end of the last whole hour: above 1 the rule must act."""
        hour = HOUR_S // judged.step_s
        stop = judged.stop(self.day_s, self.saved)
        for end in range(hour, len(self.rows) + 1, hour):
            stop = stop.after(sum(self.rows[end - hour : end]))
        return stop.used

    def to_plain(self) -> dict[str, Any]:
        """What JSON knows; the rows are on record as demand, and are told anew."""
        return {"since_s": self.since_s, "day_s": self.day_s, "saved": self.saved}

    @classmethod
    def from_plain(cls, kept: Mapping[str, Any]) -> Stay:
        """Read back what ``to_plain`` gave; ``InputError`` for anything else."""
        try:
            return cls(int(kept["since_s"]), int(kept["day_s"]), float(kept["saved"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError.one("stay", repr(error), "what Stay.to_plain gave") from error


def judged_days(
    midnight_s: int, step_s: int, rule_costs: Sequence[float], begins: Sequence[int], savings: Array, rows_a_day: int
) -> Judged:
    """Cut a past's savings (rows,) into the days that begin at these rows."""
    days = tuple(savings[begin : begin + rows_a_day] for begin in begins)
    return Judged(midnight_s, step_s, tuple(rule_costs), days)
