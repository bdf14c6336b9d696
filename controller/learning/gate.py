"""Who may act tonight: the candidate whose shadow fleet has clearly saved over the tuned rule, or else the rule.

Each midnight the last seven shadow days of every candidate are judged alike: mean daily saving over the rule less one
standard error. The best is switched on if that is above zero. Days are the unit because the steps within one are not
independent; days are not quite independent either (a busy week is busy every day), so the standard error, sample s.d. /
sqrt(n), is somewhat too small, and one standard error is a low bar: a candidate that saves nothing passes it by luck in
18 % of nights (Student's t with 6 degrees of freedom above 1; 25 % after two days), the best of several more often.
The gate therefore only picks; ``controller.learning.ladder`` is what stops a lucky one.

Who keeps fewer nodes than the rule saves a little in every quiet hour and loses much in the one in which a crowd comes,
and a quiet week has no such hour. So the last four weeks are asked what may go wrong: an hour like the worst of them
must be paid for by one mean day, a day like the worst of them by two (docs/designs/0009-materially-better.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite, nan, sqrt
from statistics import fmean, stdev

from controller.core.quantities import DAY_S
from controller.core.reasons import Fact

RULE = "rule"
WINDOW_DAYS = 7
"""DESIGN section 7: a week holds one of each weekday."""
MEMORY_DAYS = 28
"""How long what went wrong is remembered: the rule is tuned on as much."""
HOUR_PAID_IN_DAYS, DAY_PAID_IN_DAYS = 1, 2
"""Mean daily savings that the worst hour, and the worst day, of that time may have cost."""
LEAST_DAYS = 2
"""One saving has no spread; two have a poor one, and what is left to chance the ladder's patience takes up."""
STEPS_A_DAY = 288
"""Of five minutes. A day counts from half of them on, known and judged."""
LARGEST = 1e12
"""GPU-hours a day beyond which a value is a fault and no cost: a million GPUs make 24 million."""
TIE = 1e-9
"""GPU-hours below which two scores are equal: the last digits of a float must not choose who acts."""


def is_cost(value: float) -> bool:
    """Whether it is a number that a day of GPU-hours can be; NaN and infinity are not."""
    return abs(value) <= LARGEST


class Why(StrEnum):
    """Why a candidate may act or not, and why the gate decided as it did."""

    SAVES = "SAVES"
    INCUMBENT_STAYS = "INCUMBENT_STAYS"
    NO_SAVING = "NO_SAVING"
    TOO_LITTLE = "TOO_LITTLE"
    TOO_RISKY = "TOO_RISKY"
    TOO_FEW_DAYS = "TOO_FEW_DAYS"
    NOT_A_NUMBER = "NOT_A_NUMBER"
    NO_CANDIDATES = "NO_CANDIDATES"


_SENTENCES = {
    Why.SAVES: "{acting} may act: {mean:.1f} GPU-hours a day below the rule, standard error {error:.1f}, {days} days.",
    Why.INCUMBENT_STAYS: "{acting} may go on: {best} is not clearly better, day by day.",
    Why.NO_SAVING: "The rule acts: the best, {best}, has not saved more than one standard error a day.",
    Why.TOO_LITTLE: "The rule acts: what the best, {best}, has saved is too little beside what the rule costs.",
    Why.TOO_RISKY: "The rule acts: an hour or a day like the worst of 28 days would undo what the best, {best}, saves.",
    Why.TOO_FEW_DAYS: "The rule acts: too few of the last 7 days are known well enough to judge.",
    Why.NOT_A_NUMBER: "The rule acts: the account of {best} holds a value that is not a number.",
    Why.NO_CANDIDATES: "The rule acts: there is no candidate.",
}


@dataclass(frozen=True, slots=True)
class Day:
    """One shadow day: ``day_s`` its local midnight; ``saving`` and ``cost_rule`` GPU-hours; ``known_steps`` judged.

    ``worst_hour``: GPU-hours saved in its worst hour, below 0 where it lost; 0 where hours are not known.
    """

    day_s: int
    saving: float
    cost_rule: float
    known_steps: int
    worst_hour: float = 0.0


@dataclass(frozen=True, slots=True)
class Shadow:
    """A candidate and its days, in any order."""

    name: str
    days: tuple[Day, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """How one candidate stands: GPU-hours saved a day, by how many days. ``standard_error`` is NaN below two days."""

    name: str
    mean: float
    standard_error: float
    days: int
    why: Why

    @property
    def score(self) -> float:
        """Mean less one standard error: what the candidate may be trusted to save."""
        return self.mean - self.standard_error


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate said at a midnight. ``mean`` and ``standard_error`` are those of ``acting`` (the rule: 0).

    ``best`` is the highest scorer whether it acts or not ("": nobody could be scored); ``table`` has every candidate in
    the order in which they were handed in.
    """

    midnight_s: int
    acting: str
    mean: float
    standard_error: float
    days: int
    why: Why
    best: str
    table: tuple[Standing, ...]

    @property
    def on(self) -> bool:
        """Whether a candidate may act; never where a number is not one."""
        return self.acting != RULE and self.mean - self.standard_error > 0

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The numbers as a stored event keeps them: whole milli-GPU-hours a day."""
        shown = next((row for row in self.table if row.name == (self.acting if self.on else self.best)), None)
        if shown is None:
            return (("acting", self.acting), ("days", self.days))
        return (
            ("acting", self.acting),
            ("best", self.best),
            ("days", shown.days),
            ("mean_milli", _milli(shown.mean)),
            ("standard_error_milli", _milli(shown.standard_error)),
        )

    @property
    def sentence(self) -> str:
        """One line for people."""
        values = {"mean": self.mean, "error": self.standard_error, "days": self.days}
        return _SENTENCES[self.why].format(acting=self.acting, best=self.best, **values)


def judge(
    shadows: Sequence[Shadow],
    midnight_s: int,
    incumbent: str = RULE,
    *,
    steps_a_day: int = STEPS_A_DAY,
    least_share: float = 0.0,
    least_days: int = LEAST_DAYS,
) -> Verdict:
    """Decide who acts from ``midnight_s`` on. ``shadows``: the simplest candidate first, which wins ties.

    Only days that were over at ``midnight_s`` and began within the seven days before it are looked at, and of those
    only the ones of which half the steps are known; a day handed in twice counts as it was handed in last. A candidate
    with a value among them that is no cost (``is_cost``), or with fewer than ``least_days`` of them, cannot act. Of the
    three weeks before them only the worst hour and the worst day count; values that are no cost are passed over there.

    The ``incumbent`` stays while it passes by itself, unless the best challenger passes the same test with the
    incumbent in the rule's place: the mean of their daily differences is above one standard error of those differences.
    They met the same demand, so what was hard for both cancels out, and two near equals do not take turns.

    ``least_share``: of the rule's mean daily cost; a candidate whose mean less one standard error is not above that
    saves too little to act (docs/designs/0009-materially-better.md).
    """
    counted, table = {}, []
    for shadow in shadows:
        known = _counted(shadow.days, midnight_s, steps_a_day, MEMORY_DAYS)
        counted[shadow.name] = _counted(known, midnight_s, steps_a_day, WINDOW_DAYS)
        table.append(_standing(shadow.name, counted[shadow.name], known, least_share, least_days))
    passing = [row for row in table if row.why is Why.SAVES]
    if not passing:
        return _rule_acts(tuple(table), midnight_s)
    best = _best(passing)
    acting, why = best, Why.SAVES
    holder = next((row for row in passing if row.name == incumbent), None)
    if holder is not None and holder is not best and not _beats(counted[best.name], counted[holder.name]):
        acting, why = holder, Why.INCUMBENT_STAYS
    return Verdict(
        midnight_s, acting.name, acting.mean, acting.standard_error, acting.days, why, best.name, tuple(table)
    )


def _counted(days: Sequence[Day], midnight_s: int, steps_a_day: int, window_days: int) -> tuple[Day, ...]:
    # Half a day of slack: local midnights are 23 or 25 hours apart when clocks change.
    first_s = midnight_s - window_days * DAY_S - DAY_S // 2
    inside = [day for day in days if first_s < day.day_s < midnight_s and 2 * day.known_steps >= steps_a_day]
    return tuple({day.day_s: day for day in sorted(inside, key=lambda day: day.day_s)}.values())


def _standing(
    name: str, days: tuple[Day, ...], remembered: tuple[Day, ...], least_share: float, least_days: int
) -> Standing:
    """How a candidate stands by its last ``days``, and by the worst of the ``remembered`` ones."""
    n = len(days)
    if not all(is_cost(value) for day in days for value in (day.saving, day.cost_rule, day.worst_hour)):
        return Standing(name, nan, nan, n, Why.NOT_A_NUMBER)
    mean, error = _mean_and_error([day.saving for day in days])
    if n < max(least_days, LEAST_DAYS):
        return Standing(name, mean, error, n, Why.TOO_FEW_DAYS)
    if not mean - error > TIE:
        return Standing(name, mean, error, n, Why.NO_SAVING)
    if not mean - error > least_share * fmean(day.cost_rule for day in days):
        return Standing(name, mean, error, n, Why.TOO_LITTLE)
    return Standing(name, mean, error, n, Why.SAVES if _pays_for_the_worst(mean, remembered) else Why.TOO_RISKY)


def _pays_for_the_worst(mean: float, days: Sequence[Day]) -> bool:
    """Whether mean daily savings soon make up for an hour and for a day like the worst of these."""
    hours = [day.worst_hour for day in days if is_cost(day.worst_hour)]
    whole = [day.saving for day in days if is_cost(day.saving)]
    return -min(hours) <= HOUR_PAID_IN_DAYS * mean and -min(whole) <= DAY_PAID_IN_DAYS * mean


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error; NaN where there are too few values for it."""
    mean = fmean(values) if values else nan
    return mean, stdev(values) / sqrt(len(values)) if len(values) > 1 else nan


def _best(rows: Sequence[Standing]) -> Standing:
    best = rows[0]
    for row in rows[1:]:
        if row.score > best.score + TIE:
            best = row
    return best


def _beats(challenger: tuple[Day, ...], holder: tuple[Day, ...]) -> bool:
    known = {day.day_s: day.saving for day in holder}
    more = [day.saving - known[day.day_s] for day in challenger if day.day_s in known]
    mean, error = _mean_and_error(more)
    return len(more) >= LEAST_DAYS and mean - error > TIE


def _rule_acts(table: tuple[Standing, ...], midnight_s: int) -> Verdict:
    """The rule, with the reason of those candidates that came nearest to acting."""
    for why in (Why.TOO_RISKY, Why.TOO_LITTLE, Why.NO_SAVING, Why.TOO_FEW_DAYS, Why.NOT_A_NUMBER):
        rows = [row for row in table if row.why is why]
        if rows:
            best = rows[0] if why in (Why.TOO_FEW_DAYS, Why.NOT_A_NUMBER) else _best(rows)
            return Verdict(midnight_s, RULE, 0.0, 0.0, best.days, why, best.name, table)
    return Verdict(midnight_s, RULE, 0.0, 0.0, 0, Why.NO_CANDIDATES, "", table)


def _milli(value: float) -> int | str:
    return round(1000 * value) if isfinite(1000 * value) else "unknown"
