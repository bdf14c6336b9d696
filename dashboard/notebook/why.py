"""One moment of the learner: who asked for what, what it made of that, and how it turned out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dashboard.notebook.durations import minutes_text
from dashboard.notebook.said import percent


@dataclass(frozen=True, slots=True)
class Why:
    """GPUs wanted at ``when`` and asked for by rule and learner; ``came``: the most wanted in the hour after the lead.

    ``votes``: each fleet's wish and weight (NaN: not recorded). ``quantile``: the highest level of the forecast for the
    first quarter of that hour that the learner's target fills. Costs: GPU-hours of both shadow fleets until that hour
    is over. NaN: not known.
    """

    when: pd.Timestamp
    lead_s: int
    wanted: float
    rule: float
    learner: float
    acts: bool
    votes: pd.DataFrame
    quantile: float
    came: float
    rule_cost: float
    learner_cost: float

    def table(self) -> pd.DataFrame:
        """Each candidate's wish, the heaviest first."""
        return self.votes.sort_values(["weight", "asks for, GPUs"], ascending=False, kind="stable")

    def shares(self) -> pd.Series[float]:
        """By GPUs asked for: the share of the weight (of the candidates, where no weights are known) behind it."""
        weights = self.votes["weight"]
        if weights.isna().all():
            weights = pd.Series(1 / len(weights), index=weights.index)
        return weights.groupby(self.votes["asks for, GPUs"]).sum() / weights.sum()

    def _repr_markdown_(self) -> str:
        move = "raise" if self.learner > self.rule else "lower" if self.learner < self.rule else "keep"
        wants = f"the learner for **{self.learner:,.0f}** ({move})"
        if np.isnan(self.learner):
            wants = "the learner wanted nothing"
        asked = (
            f"**{self.when:%a %Y-%m-%d %H:%M}**: {self.wanted:,.0f} GPUs were wanted. The rule asked for"
            f" **{self.rule:,.0f}**, {wants}; {'the learner' if self.acts else 'the rule'} acts."
        )
        said = [asked]
        if len(self.votes):
            said.append(f"The candidates that were given weight asked for {self._span()} GPUs.")
        if np.isfinite(self.quantile):
            said.append(f"The learner's number {self._quantile()}.")
        if np.isfinite(self.came):
            lead = minutes_text(self.lead_s)
            said.append(f"What came: at most **{self.came:,.0f} GPUs** in the hour after the lead ({lead}).")
        if np.isfinite(self.rule_cost) and np.isfinite(self.learner_cost):
            said.append(
                f"Until that hour was over the rule's fleet cost {self.rule_cost:,.1f} GPU-hours, the learner's"
                f" **{self.learner_cost:,.1f}**."
            )
        return " ".join(said)

    def _span(self) -> str:
        """From where to where nine tenths of the weight lie."""
        upto = self.shares().cumsum()
        low, high = (float(upto.index[int(np.searchsorted(upto.to_numpy(), edge))]) for edge in (0.05, 0.95 - 1e-9))
        return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"

    def _quantile(self) -> str:
        if self.quantile <= 0:
            return "lies below all lines of the forecast for the 15 min after the lead"
        return f"reaches the {percent(self.quantile)} line of the forecast for the 15 min after the lead"
