"""The learner on a history: what each candidate would have cost, whom the hedge trusts, what the gate says, and why.

Nothing here learns: ``controller.learning`` replays candidates, rule and hedge as shadow fleets, exactly as gate and
benchmark see them. What is added is words, local days and the question of one moment: why so many GPUs just then?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from controller.core.errors import InputError
from controller.core.quantities import HOUR_S, MILLI
from controller.learning.candidates import CANDIDATES, LEVELS_PERMILLE, NAMES, RULE, Candidate, Edge, Nodes, Reach
from controller.learning.fleet import Terms, seen
from controller.learning.gate import Shadow, Verdict, judge
from controller.learning.hedge import WARM_UP_S
from dashboard.notebook.durations import minutes_text
from dashboard.notebook.history import History, local_times
from dashboard.notebook.said import Note, percent
from dashboard.notebook.tuning import terms_of
from dashboard.notebook.why import Why
from forecaster.windows import Window, maxima

if TYPE_CHECKING:  # scikit-learn takes seconds to import: whoever only looks at demand does not wait for it
    from controller.learning.shadows import Shadows

LEARNER = "learner"
FLEETS = (*NAMES, LEARNER)
"""In the order of the account's columns: the candidates, the rule, and the hedge over them all."""
RULES_COLUMN, LEARNERS_COLUMN = NAMES.index(RULE), len(NAMES)
MOMENTS = 6
REACHES = {
    Reach.QUARTER: "the 15 min after the lead",
    Reach.HALF: "the 30 min after the lead",
    Reach.HOUR: "the hour after the lead",
    Reach.WITHIN_1H: "all until 1 h after the lead",
    Reach.WITHIN_2H: "all until 2 h after the lead",
}


@dataclass(frozen=True, slots=True)
class Learner:
    """The learner's past on a history. ``forecast``: milli-GPUs (rows, reaches, levels), as it was made.

    ``midnights``: rows at which local days begin (the end, too, where it is one); ``verdicts``: the gate's, at each but
    the first.
    """

    history: History
    past: Shadows
    forecast: Nodes
    midnights: tuple[int, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def terms(self) -> Terms:
        """The constants of the account."""
        return self.past.terms

    @property
    def first(self) -> int:
        """The first row that counts: a forecaster's first day is held against nobody."""
        return min(WARM_UP_S // self.terms.step_s, self.history.panel.rows)

    def candidates(self) -> pd.DataFrame:
        """Every fleet with what it would have cost a day, the cheapest first; ``weight`` is the hedge's at the end."""
        account, first = self.past.account, self.first
        days = max(self.history.panel.rows - first, 1) / self.history.panel.rows_a_day
        weights = self.past.hedge.weights / self.past.hedge.weights.sum()
        asked = np.column_stack([self.past.asked, self.past.agreed])[first:]
        frame = pd.DataFrame({"in words": [*WORDS.values(), LEARNER_WORDS]}, index=list(FLEETS))
        frame["asks for, GPUs"] = asked.mean(axis=0) * self.terms.gpus_per_node
        frame["idle GPU-h a day"] = account.idle[first:].sum(axis=0) / days
        frame["waiting GPU-h a day"] = account.wait[first:].sum(axis=0) / days
        frame["nodes added a day"] = account.adds[first:].sum(axis=0) / days
        frame["cost a day"] = account.cost[first:].sum(axis=0) / days
        frame["saves a day"] = (account.cost[first:, [RULES_COLUMN]] - account.cost[first:]).sum(axis=0) / days
        frame["weight"] = [*weights, np.nan]
        return frame.sort_values("cost a day", kind="stable")

    def savings(self) -> pd.DataFrame:
        """GPU-hours saved over the rule, by local day and fleet (columns); days known by half or more."""
        from controller.learning.shadows import LEARNER as HEDGE
        from controller.learning.shadows import days

        ends, found = sorted({*self.midnights, self.history.panel.rows}), {}
        for name in FLEETS:
            made = days(self.past, HEDGE if name == LEARNER else name, ends, self.history.panel.time)
            known = [day for day in made if 2 * day.known_steps >= self.history.panel.rows_a_day]
            at_s = np.array([day.day_s for day in known], dtype=np.int64)
            found[name] = pd.Series([day.saving for day in known], local_times(at_s, self.history.zone), dtype=float)
        return pd.DataFrame(found)

    def weights(self) -> pd.DataFrame:
        """The hedge's weights by hour (rows) and fleet (columns); each row adds up to 1."""
        hourly = slice(0, None, HOUR_S // self.terms.step_s)
        shares = self.past.weights[hourly] / self.past.weights[hourly].sum(axis=1, keepdims=True)
        return pd.DataFrame(shares, index=self.history.times[hourly], columns=list(NAMES))

    def gate(self) -> pd.DataFrame:
        """The gate's verdict at each midnight: who acts that day, and by which numbers (GPU-hours a day)."""
        return gate_table(self.verdicts, self.history.zone)

    def acting(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """By row, whether the gate lets the learner act."""
        acts = np.zeros(self.history.panel.rows, dtype=bool)
        for verdict, begin, end in zip(
            self.verdicts, self.midnights[1:], (*self.midnights[2:], len(acts)), strict=True
        ):
            acts[begin:end] = verdict.on
        return acts

    def targets(self) -> pd.DataFrame:
        """By step, in GPUs: what was wanted, what rule and learner asked for, and which of the two acts."""
        size = self.terms.gpus_per_node
        rule, learner = self.past.ruled * size, self.past.agreed * size
        acts = np.where(self.acting(), learner, rule)
        columns = {"wanted": self.past.demand, "rule": rule, LEARNER: learner, "acts": acts}
        return pd.DataFrame(columns, index=self.history.times)

    def moments(self, count: int = MOMENTS) -> pd.DataFrame:
        """When learner and rule differed most, the widest apart first: GPUs, and GPU-hours that it cost both."""
        made = [self._at(row) for row in self._apart(count)]
        columns = ["wanted", "rule asked", "learner asked", "came", "rule's cost", "learner's cost"]
        table = [(why.wanted, why.rule, why.learner, why.came, why.rule_cost, why.learner_cost) for why in made]
        return pd.DataFrame(table, index=pd.DatetimeIndex([why.when for why in made], name="when"), columns=columns)

    def _apart(self, count: int) -> list[int]:
        """Rows in which they differ most, at least a horizon between two of them."""
        apart = np.abs(self.past.agreed - self.past.ruled)
        apart[: self.first] = 0
        rows: list[int] = []
        for row in np.argsort(-apart, kind="stable").tolist():
            if len(rows) == count or not apart[row]:
                break
            if all(abs(row - other) >= self._horizon for other in rows):
                rows.append(row)
        return rows

    def why(self, when: str = "") -> Why:
        """Why the learner asked for what it asked at a local time; "": when it differed most from the rule."""
        if when:
            return self._at(row_of(when, self.history.times))
        moments = self.moments(1)
        return self._at(
            self.history.panel.rows - 1 if moments.empty else row_of(str(moments.index[0]), self.history.times)
        )

    def verdict(self) -> Note:
        """What it would have saved, who was best in hindsight, and how often it may act."""
        cost = self.past.account.cost[self.first :].sum(axis=0)
        days = max(self.history.panel.rows - self.first, 1) / self.history.panel.rows_a_day
        saved = (cost[RULES_COLUMN] - cost) / days
        best = int(np.argmax(saved[:RULES_COLUMN]))
        word = "saves" if saved[-1] >= 0 else "**loses**"
        share = abs(saved[-1]) / (cost[RULES_COLUMN] / days) if cost[RULES_COLUMN] > 0 else 0.0
        nights = sum(verdict.on for verdict in self.verdicts)
        return Note(
            f"Had it acted from the second day on, the learner {word} **{abs(saved[-1]):,.1f} GPU-hours a day** against"
            f" the tuned rule ({percent(share)} of its cost). The best single candidate, which one knows only"
            f" afterwards, was `{NAMES[best]}` with {saved[best]:+,.1f}. The gate lets the learner act after"
            f" **{nights} of {len(self.verdicts)}** midnights."
        )

    @property
    def _horizon(self) -> int:
        """Steps until the hour after the lead is over: by then a decision's nodes have served or not."""
        return -(-(self.terms.lead_s + HOUR_S) // self.terms.step_s)

    def _at(self, row: int) -> Why:
        size, past = self.terms.gpus_per_node, self.past
        weights = past.weights[row] / past.weights[row].sum()
        votes = pd.DataFrame({"asks for, GPUs": past.asked[row] * size, "weight": weights}, index=list(NAMES))
        votes["in words"] = [*WORDS.values()]
        window = Window(self.terms.lead_s, HOUR_S)
        cost = past.account.cost[row : row + self._horizon].sum(axis=0)
        return Why(
            when=self.history.times[row],
            lead_s=self.terms.lead_s,
            wanted=float(seen(past.demand)[row]),
            rule=int(past.ruled[row]) * size,
            learner=int(past.agreed[row]) * size,
            acts=bool(self.acting()[row]),
            votes=votes,
            quantile=implied(int(past.agreed[row]) * size, self.forecast[row, list(Reach).index(Reach.QUARTER)]),
            came=float(maxima(past.demand[:, None], window, self.terms.step_s)[row, 0]),
            rule_cost=float(cost[RULES_COLUMN]),
            learner_cost=float(cost[LEARNERS_COLUMN]),
        )


def learner(history: History, *, lead: str = "15m", wait_weight: float = 9, gpus_per_node: int = 8) -> Learner:
    """Replay candidates, rule and hedge as shadow fleets against the demand of all teams together."""
    from controller.learning.shadows import forecast, past_of

    history.long_enough("replaying the learner")
    terms = terms_of(history, lead, wait_weight, gpus_per_node)
    total = history.trace().panel
    midnights = local_midnights(history)
    made = forecast(total, terms.lead_s)
    past = past_of(total, terms, midnights[0], made)
    return Learner(history, past, made, midnights, _verdicts(past, history, midnights))


def _verdicts(past: Shadows, history: History, midnights: tuple[int, ...]) -> tuple[Verdict, ...]:
    """The gate's at each midnight but the first, the last one's choice being the incumbent."""
    from controller.learning.shadows import LEARNER as HEDGE
    from controller.learning.shadows import days

    verdicts, acting = [], RULE
    for k in range(1, len(midnights)):
        known = days(past, HEDGE, list(midnights[: k + 1]), history.panel.time)
        verdict = judge([Shadow(LEARNER, known)], history.panel.time(midnights[k]), acting)
        acting = verdict.acting
        verdicts.append(verdict)
    return tuple(verdicts)


def local_midnights(history: History) -> tuple[int, ...]:
    """Rows at which a new local day begins, the row after the last one included."""
    panel = history.panel
    times = local_times(panel.origin_s + np.arange(panel.rows + 1) * panel.step_s, panel.timezone)
    dates = times.normalize().to_numpy()
    return tuple((np.flatnonzero(dates[1:] != dates[:-1]) + 1).tolist())


def gate_table(verdicts: tuple[Verdict, ...], zone: str) -> pd.DataFrame:
    """Verdicts as rows, by midnight; the numbers are the learner's, whether it acts or not."""
    rows: list[tuple[object, ...]] = []
    for verdict in verdicts:
        best = next((row for row in verdict.table if row.name == verdict.best), None)
        mean, error, days = (best.mean, best.standard_error, best.days) if best else (np.nan, np.nan, 0)
        rows.append((verdict.acting, mean, error, mean - error, days, verdict.sentence))
    at_s = np.array([verdict.midnight_s for verdict in verdicts], dtype=np.int64)
    return gate_frame(rows, local_times(at_s, zone))


def gate_frame(rows: list[tuple[object, ...]], midnights: pd.DatetimeIndex) -> pd.DataFrame:
    """Rows of verdicts as a table; numbers are numbers also where there are no rows."""
    numbers = {"saved a day": float, "standard error": float, "score": float, "days": int}
    frame = pd.DataFrame(rows, columns=["acts", *numbers, "says"], index=midnights.rename("midnight"))
    return frame.astype(numbers)


def implied(gpus: float, quantiles: Nodes) -> float:
    """The highest level of a forecast (levels,) milli-GPUs that an amount fills; 0: not even the lowest."""
    filled = [level for level, value in zip(LEVELS_PERMILLE, quantiles.tolist(), strict=True) if value <= gpus * MILLI]
    return filled[-1] / 1000 if filled else 0.0


def row_of(when: str, times: pd.DatetimeIndex) -> int:
    """The row of a local time; ``InputError`` where it is none, or lies outside."""
    span = f"a local time from {times[0]:%Y-%m-%d %H:%M} to {times[-1]:%Y-%m-%d %H:%M}"
    try:
        stamp = pd.Timestamp(when)
    except ValueError:
        raise InputError.one("WHEN", when, span) from None
    if stamp.tzinfo is not None or not times[0] <= stamp <= times[-1]:
        raise InputError.one("WHEN", when, span)
    return int(np.flatnonzero(times <= stamp)[-1])


RULE_WORDS = "last demand and a buffer, held; both tuned each night"
LEARNER_WORDS = "the weighted mean of all above (the hedge)"


def in_words(candidate: Candidate) -> str:
    """A candidate for people who never saw its name."""
    if candidate.low == candidate.high:
        return f"{_edge(candidate.high)}, kept for {minutes_text(candidate.hold_s)}"
    low = "what is wanted now" if candidate.low is None else _edge(candidate.low)
    return f"at least {low}, at most {_edge(candidate.high)}"


def _edge(edge: Edge) -> str:
    return f"the {edge.permille / 10:g} % line of {REACHES[edge.reach]}"


WORDS = {candidate.name: in_words(candidate) for candidate in CANDIDATES} | {RULE: RULE_WORDS}
