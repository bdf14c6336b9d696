"""How learning stands in one pool: rung, monitors, verdict, stay; what a restart gets back of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from controller.core.advice import RuleParameters
from controller.core.errors import InputError
from controller.core.policy import Learning
from controller.core.quantities import DAY_S
from controller.learning import candidates, ladder, rule
from controller.learning.candidates import NAMES
from controller.learning.demotions import Code
from controller.learning.fleet import replay
from controller.learning.gate import WINDOW_DAYS, Day, Shadow, Verdict, judge
from controller.learning.ladder import Event, LadderState
from controller.learning.learner import Learner, Settled
from controller.learning.monitors import Watch
from controller.learning.shadows import LEARNER, MATERIAL, Shadows
from controller.learning.stay import Judged, Stay, judged_days

LEAST_ROWS = 144
"""Half a day of 5-minute steps; less says nothing about a night, and the default rule serves."""


@dataclass(slots=True)
class Standing:
    """One pool: its tuned rule and, where there is enough past, its learner with all that is watched about it."""

    tuned: RuleParameters = rule.DEFAULT
    ladder: LadderState = field(default_factory=LadderState)
    watch: Watch = field(default_factory=Watch)
    fed_s: int = 0
    learner: Learner | None = None
    verdict: Verdict | None = None
    judged: Judged | None = None
    stay: Stay | None = None
    age_s: int | None = None
    model: str = ""
    lived: dict[int, Settled] = field(default_factory=dict)
    tick_ids: dict[int, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def remembered(cls, kept: Mapping[str, Any] | None) -> Standing:
        """As it stood before a restart (``to_plain``); another version's state is as none."""
        try:
            if kept is not None:
                return cls(
                    ladder=LadderState.from_plain(kept["ladder"]),
                    watch=Watch.from_plain(kept["watch"]),
                    fed_s=int(kept.get("fed_s", 0)),
                    stay=Stay.from_plain(kept["stay"]) if kept.get("stay") else None,
                )
        except (InputError, KeyError, TypeError, ValueError):
            pass
        return cls()

    def to_plain(self) -> dict[str, Any]:
        """What JSON knows; a loss that is not a number is null."""
        weights = [] if self.learner is None else [int(weight) for weight in self.learner.weights]
        used = self.loss_used
        return {
            "ladder": self.ladder.to_plain(),
            "watch": self.watch.to_plain(),
            "inputs_age_s": self.age_s,
            "loss_used": used if used is not None and isfinite(used) else None,
            "stay": self.stay.to_plain() if self.stay is not None else None,
            "weights": [list(pair) for pair in zip(NAMES, weights, strict=False)],
            "fed_s": self.fed_s,
        }

    @property
    def acts(self) -> bool:
        """Whether the learner sets the target; else the rule does."""
        return self.ladder.acting == LEARNER

    @property
    def loss_used(self) -> float | None:
        """Of what may be lost in the stay; a learner that does not act loses nothing."""
        if self.stay is None:
            return 0.0
        return self.stay.used(self.judged) if self.judged is not None else None

    def judge(self, past: Shadows, days: Sequence[Day], starts: Sequence[int], origin_s: int) -> None:
        """Hear what the learner's ``days`` say at the last of the midnights ``starts``; bring all accounts up to it."""
        if starts:
            self.verdict = judge([Shadow(LEARNER, tuple(days))], starts[-1], self.ladder.chosen, least_share=MATERIAL)
            self._told_anew(past, starts[-1], days[-WINDOW_DAYS:], origin_s)
        for day in days:
            if day.day_s > self.fed_s and day.known_steps:
                self.fed_s = day.day_s
                self.watch = self.watch.day_over(-day.saving, day.cost_rule)
        self._compare(past, starts, origin_s)

    def _told_anew(self, past: Shadows, midnight_s: int, judged: Sequence[Day], origin_s: int) -> None:
        """The stay's account, and the days by which it is measured, from the replayed past."""
        step_s = past.terms.step_s
        savings = past.account.cost[:, NAMES.index(candidates.RULE)] - past.account.cost[:, -1]

        def row_of(at_s: int) -> int:
            return (at_s - origin_s) // step_s

        begins, costs = [row_of(day.day_s) for day in judged], [day.cost_rule for day in judged]
        self.judged = judged_days(midnight_s, step_s, costs, begins, savings, DAY_S // step_s)
        if self.stay is not None:
            self.stay = self.stay.told_anew(midnight_s, savings, row_of)

    def _compare(self, past: Shadows, starts: Sequence[int], origin_s: int) -> None:
        """The account that was kept step by step beside a replay of the same targets on the demand now on record."""
        for begin, end in zip(starts, [*starts[1:], None], strict=True):
            lived = {
                (at - origin_s) // past.terms.step_s: step
                for at, step in sorted(self.lived.items())
                if begin <= at and (end is None or at < end)
            }
            if end is not None and len(lived) >= LEAST_ROWS:
                paid = sum(step.hedge for step in lived.values())
                self.watch = self.watch.replayed(begin, paid, _again(past, lived))
        last = starts[-1] if starts else 0
        self.lived = {at: step for at, step in self.lived.items() if at >= last}

    def closed(self, at_s: int, step: Settled) -> None:
        """Take in a step that is over."""
        if step.known:
            self.lived[at_s] = step
        if self.stay is not None:
            self.stay = self.stay.closed(at_s, step.rule - step.hedge)

    def step(self, policy: Learning, now_s: int, killed: bool) -> tuple[Event, ...]:
        """Take the ladder's step of this tick."""
        seen = self.watch.read(self.age_s, loss_used=self.loss_used, verdict=self.verdict)
        self.ladder, events = ladder.step(
            self.ladder, seen, policy.mode, now_s, kill=killed, patience_days=policy.patience_days
        )
        if not self.acts or self.learner is None:
            self.stay = None
        elif self.stay is None:
            self.stay = Stay.begun(now_s - now_s % self.learner.terms.step_s)
        # An alarm is answered once it holds; it then counts anew, so that a second one within the hold is seen too.
        if any(hold.code is Code.COST and hold.well_since_s is None for hold in self.ladder.holds):
            self.watch = self.watch.cost_alarmed()
        return events


def _again(past: Shadows, lived: Mapping[int, Settled]) -> float:
    """What the targets of some rows cost on the demand that is on record for them."""
    first, last = min(lived), max(lived)
    nodes = [lived[first].nodes]
    for row in range(first + 1, last + 1):
        nodes.append(lived[row].nodes if row in lived else nodes[-1])
    targets = np.array(nodes, dtype=np.float64)[:, None]
    return float(replay(past.demand[first : last + 1], targets, past.terms, nodes[0]).cost.sum())
