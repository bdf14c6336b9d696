"""Would the learner still earn its place with another lead, or another wait weight? The benchmark, once for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from controller.core.errors import InputError
from dashboard.notebook.durations import minutes_text
from dashboard.notebook.history import History
from dashboard.notebook.said import Note
from dashboard.notebook.tuning import LABELS, terms_of

POLICIES = ("learner", "gated")
WEEK = 7
COLUMNS = ["lead", "w", "policy", "gap closed, %", "from", "to", "saves a day", "rule's cost a day"]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """``table``: a row a lead, w and policy. Gap closed: 0 % is the tuned rule, 100 % the clairvoyant optimum.

    ``from`` and ``to`` bound it at 95 %, by resampling whole days (NaN: less than two, or nothing to close); savings
    are GPU-hours a judged day over the rule.
    """

    history: History
    gpus_per_node: int
    table: pd.DataFrame

    def verdict(self) -> Note:
        """Where it wins, where it loses, and what of that is more than luck."""
        lines = []
        for name in POLICIES:
            rows = self.table[self.table["policy"] == LABELS[name]]
            wins, losses = (rows["from"] > 0).sum(), (rows["to"] < 0).sum()
            known = rows.dropna(subset="gap closed, %").sort_values("gap closed, %")
            said = f"- **{LABELS[name]}**: clearly better than the rule in {wins} of {len(rows)} settings,"
            said += f" clearly worse in {losses}"
            if len(known):
                worst = known.iloc[0]
                said += f"; its worst is {worst['gap closed, %']:+.0f} % at lead {worst['lead']}, w {worst['w']:g}"
            lines.append(said + ".")
        luck = "Elsewhere these days are too few to tell it from the rule."
        if self.judged_days < WEEK:
            luck += f" And {self.judged_days:.1f} judged days are so few that the intervals themselves are guesses."
        return Note("\n".join(lines) + f"\n\n{luck}")

    @property
    def judged_days(self) -> float:
        """Days that were judged."""
        return (self.history.panel.rows - self.history.judge_from) / self.history.panel.rows_a_day


def sensitivity(
    history: History,
    *,
    leads: Sequence[str] = ("5m", "15m", "30m"),
    weights: Sequence[float] = (3, 9, 30),
    gpus_per_node: int = 8,
    tell: Callable[[str], None] = lambda _: None,
) -> Sensitivity:
    """Run the benchmark for every lead and w. Some seconds each: a month of demand takes about fifteen."""
    from controller.backtest.run import bench

    history.long_enough("comparing leads and weights")
    for name, given in (("LEADS", leads), ("WEIGHTS", weights)):
        if not given or isinstance(given, str):
            raise InputError.one(name, given or "none", "a list of at least one, such as " + EXAMPLES[name])
    cases = [terms_of(history, lead, w, gpus_per_node) for lead in dict.fromkeys(leads) for w in sorted(set(weights))]
    made = Sensitivity(history, gpus_per_node, pd.DataFrame(columns=COLUMNS))
    rows: list[tuple[object, ...]] = []
    for terms in sorted(cases, key=lambda one: (one.lead_s, one.wait_weight)):
        lead = minutes_text(terms.lead_s)
        tell(f"lead {lead}, w {terms.wait_weight:g}")
        report = bench(history.trace(), terms, "demand")
        rule = report.rows["tuned_rule"].cost
        for name in POLICIES:
            row = report.rows[name]
            gap, (low, high) = row.gap_closed, row.gap_ci or (None, None)
            shares = (np.nan if value is None else 100 * value for value in (gap, low, high))
            rows.append(
                (
                    lead,
                    terms.wait_weight,
                    LABELS[name],
                    *shares,
                    (rule - row.cost) / made.judged_days,
                    rule / made.judged_days,
                )
            )
    return replace(made, table=pd.DataFrame(rows, columns=COLUMNS))


EXAMPLES = {"LEADS": '["5m", "15m"]', "WEIGHTS": "[3, 9]"}
