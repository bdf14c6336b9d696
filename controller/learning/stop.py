"""The stop within a day: a learner that has cost too much since it was let in hands back to the rule at once.

The gate looks at whole days, once a night. What breaks the pattern by which a learner was chosen (no node to be had, a
day without demand, everything three hours late) breaks it at ten in the morning, and the worst of it is paid by noon.
Afterwards it stays out as long as after the ladder's cause COST: the days that spoke for it are those that misled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from controller.core.quantities import DAY_S
from controller.learning.fleet import Array

SHARE = 0.02
"""Of what the rule costs in a day: the benchmark's bar of what is materially worse."""
OUT_S = 7 * DAY_S


@dataclass(frozen=True, slots=True)
class Stop:
    """An account of one stay. ``allowed``: GPU-hours that may be lost; ``saved``: GPU-hours below the rule so far.

    ``usual``: (looks a day,) what was saved by that time of day, on the mean of the days that the gate judged, where
    that is below 0: who warms nodes before nine pays first and saves later, and is not to be stopped at half past
    eight. What was saved in the stay may be lost again before anything counts as a loss.
    """

    allowed: float
    usual: Array
    saved: float = 0.0
    looks: int = 0

    @classmethod
    def of(cls, rule_costs: Sequence[float], savings: Sequence[Array], saved: float = 0.0) -> Stop:
        """The stop of a day. ``rule_costs``: the rule's on each judged day; ``savings``: by look on each of them."""
        usual = np.minimum(np.mean([np.cumsum(one) for one in savings], axis=0), 0.0)
        return cls(SHARE * float(np.mean(rule_costs)), usual, saved)

    def after(self, saving: float) -> Stop:
        """Take in what was saved over the rule (GPU-hours; below 0: lost) since the last look."""
        return replace(self, saved=self.saved + saving, looks=self.looks + 1)

    @property
    def used(self) -> float:
        """What is lost, of what may be lost beyond the usual; a value that is not a number stays one."""
        usual = float(self.usual[self.looks - 1]) if 0 < self.looks <= len(self.usual) else 0.0
        lost = usual - self.saved
        return lost / self.allowed if self.allowed else 0.0 if lost <= 0 else inf

    @property
    def out(self) -> bool:
        """Whether the rule must act now; a value that is not a number is no saving."""
        return not self.used <= 1
