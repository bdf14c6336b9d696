"""What a running tidegate recorded of its learner: what it wanted, who acted and why, what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from controller.core.errors import InputError
from controller.core.quantities import HOUR_S, MILLI
from controller.learning.advise import read_model
from controller.learning.candidates import NAMES
from controller.resources.parse import parse_policy
from controller.store import LearningDay, LearningEvent, LearningOutcome, LearningTick, Store, open_store
from dashboard.notebook.history import History, local_times
from dashboard.notebook.replayed import LEARNER, WORDS, gate_frame, row_of
from dashboard.notebook.said import Note
from dashboard.notebook.why import Why
from forecaster.windows import Window, maxima

ALL = 10**7
MILLI_GPU_H = 1000
HEDGE = "hedge"
NOTHING = (
    "**No learner is on record here.** Only the store of a tidegate whose policy has `learning.mode` other than `off`"
    " knows one; what is above was replayed from demand alone."
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The learner's rows of one pool, oldest first; empty where the source has none. Amounts of tables are in GPUs.

    ``models``: the candidates' weights by model file, adding up to 1.
    """

    history: History
    gpus_per_node: int
    rows: tuple[LearningTick, ...] = ()
    outcomes: tuple[LearningOutcome, ...] = ()
    days: tuple[LearningDay, ...] = ()
    told: tuple[LearningEvent, ...] = ()
    models: dict[str, dict[str, float]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rows or self.days or self.told)

    def targets(self) -> pd.DataFrame:
        """By tick, in GPUs: what was wanted, what rule and learner asked for, and what was aimed at in the end."""
        size = self.gpus_per_node
        made = [
            (
                one.demand_milli_gpus / MILLI,
                one.rule_nodes * size,
                _gpus(one.learner_nodes, size),
                one.target_nodes * size,
            )
            for one in self.rows
        ]
        columns = ["wanted", "rule", LEARNER, "aimed at"]
        return pd.DataFrame(made, index=self._times([one.at_s for one in self.rows]), columns=columns, dtype=float)

    def ticks(self) -> pd.DataFrame:
        """By tick: targets, the rung in force, who acted, what the shield did, and the cost once it was known."""
        frame = self.targets()
        frame["rung"] = [one.rung for one in self.rows]
        frame["who acted"] = [one.acting for one in self.rows]
        frame["quantile"] = [
            np.nan if one.implied_permille is None else one.implied_permille / 1000 for one in self.rows
        ]
        frame["clipped by"] = [", ".join(one.clipped) for one in self.rows]
        known = {one.tick_id: one for one in self.outcomes}
        for column, name in (("cost", "cost_milli"), ("rule's cost", "rule_cost_milli"), ("regret", "regret_milli")):
            costs = [getattr(known.get(one.tick_id), name, np.nan) for one in self.rows]
            frame[column] = np.array(costs, dtype=float) / MILLI_GPU_H
        return frame

    def weights(self) -> pd.DataFrame:
        """The hedge's weights by tick (rows) and fleet (columns), as the model file in force had them."""
        known = [one for one in self.rows if one.model in self.models]
        frame = pd.DataFrame([self.models[one.model] for one in known], columns=list(NAMES), dtype=float)
        return frame.set_axis(self._times([one.at_s for one in known]))

    def savings(self) -> pd.DataFrame:
        """GPU-hours saved over the rule, by local day (rows) and fleet (columns)."""
        made = [
            (one.day_s, LEARNER if one.name == HEDGE else one.name, one.saving_milli / MILLI_GPU_H) for one in self.days
        ]
        frame = pd.DataFrame(made, columns=["day", "fleet", "saving"]).pivot(
            index="day", columns="fleet", values="saving"
        )
        frame.columns.name = None
        return frame.set_axis(self._times(frame.index.tolist()).rename(None)).astype(float)

    def events(self) -> pd.DataFrame:
        """Verdicts, promotions, demotions and kills, the newest first, as they were told."""
        rows = [(one.kind, one.rung, one.acting, one.sentence) for one in reversed(self.told)]
        index = self._times([one.at_s for one in reversed(self.told)])
        return pd.DataFrame(rows, index=index, columns=["what", "rung", "acts", "says"])

    def gate(self) -> pd.DataFrame:
        """The gate's verdicts: who acts from then on, and by which numbers (GPU-hours a day)."""
        verdicts = [one for one in self.told if one.kind == "gate" and "mean_milli" in dict(one.facts)]
        rows: list[tuple[object, ...]] = []
        for one in verdicts:
            facts = dict(one.facts)
            mean, error = (_number(facts[name]) for name in ("mean_milli", "standard_error_milli"))
            rows.append((str(facts["acting"]), mean, error, mean - error, int(facts["days"]), one.sentence))
        return gate_frame(rows, self._times([one.at_s for one in verdicts]))

    def why(self, when: str = "") -> Why | Note:
        """Why it asked for what it asked at a local time; "": when it differed most from the rule."""
        if not self.rows:
            return Note(NOTHING)
        times = self._times([one.at_s for one in self.rows])
        apart = [
            abs((one.learner_nodes if one.learner_nodes is not None else one.rule_nodes) - one.rule_nodes)
            for one in self.rows
        ]
        one = self.rows[row_of(when, times) if when else int(np.argmax(apart))]
        size = self.gpus_per_node
        names, weights = [name for name, _ in one.candidates], self.models.get(one.model, {})
        votes = pd.DataFrame(
            {
                "asks for, GPUs": [nodes * size for _, nodes in one.candidates],
                "weight": [weights.get(name, np.nan) for name in names],
                "in words": [WORDS.get(name, "") for name in names],
            },
            index=names,
        )
        met = one.implied_permille is not None and one.learner_nodes is not None
        return Why(
            when=self._times([one.at_s])[0],
            lead_s=one.lead_s,
            wanted=one.demand_milli_gpus / MILLI,
            rule=one.rule_nodes * size,
            learner=_gpus(one.learner_nodes, size),
            acts=one.acting != "rule",
            votes=votes,
            quantile=(one.implied_permille or 0) / 1000 if met else np.nan,
            came=self._came(one),
            rule_cost=np.nan,
            learner_cost=np.nan,
        )

    def _came(self, tick: LearningTick) -> float:
        panel = self.history.panel
        row = (tick.at_s - panel.origin_s) // panel.step_s
        if not 0 <= row < panel.rows:
            return float("nan")
        return float(maxima(self.history.total[:, None], Window(tick.lead_s, HOUR_S), panel.step_s)[row, 0])

    def _times(self, at_s: list[int]) -> pd.DatetimeIndex:
        return local_times(np.array(at_s, dtype=np.int64), self.history.zone)

    def _repr_markdown_(self) -> str:
        if not self:
            return NOTHING
        last = self.rows[-1] if self.rows else None
        now = (
            f" Now the rung is **{last.rung}** (the policy allows {last.ceiling}) and **{last.acting}** acts."
            if last
            else ""
        )
        kinds = pd.Series([one.kind for one in self.told], dtype=str).value_counts()
        told = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"
        days = len({one.day_s for one in self.days})
        return f"{len(self.rows):,} ticks and {days} shadow days on record; events: {told}.{now}"


def recorded(history: History) -> Recorded:
    """Read what the learner of a history's pool left in its store; empty for any other source."""
    if history.kind != "store":
        return Recorded(history, 1)
    begin_s, end_s = history.panel.origin_s, history.panel.time(history.panel.rows) + 1
    pools = parse_policy(history.policy_text, history.policy_origin).pools if history.policy_text else ()
    size = next((pool.gpus_per_node for pool in pools if pool.name == history.pool), 1)
    where = (history.cluster, history.pool, begin_s, end_s)
    with open_store(history.address) as store:
        ticks = tuple(reversed(store.learning_ticks(*where, limit=ALL)))
        return Recorded(
            history,
            size,
            ticks,
            tuple(reversed(store.learning_outcomes(*where, limit=ALL))),
            tuple(store.learning_days(*where)),
            tuple(reversed(store.learning_events(*where, limit=ALL))),
            _models(store, {tick.model for tick in ticks}),
        )


def _models(store: Store, fingerprints: set[str]) -> dict[str, dict[str, float]]:
    """Weights by model file; files of versions that had other candidates are left out."""
    found = {}
    for fingerprint in sorted(fingerprints):
        model = store.model(fingerprint) if fingerprint else None
        try:
            weights = None if model is None else read_model(model.body, fingerprint)
        except InputError:
            continue
        if weights is not None:
            found[fingerprint] = dict(zip(NAMES, (weights / weights.sum()).tolist(), strict=True))
    return found


def _gpus(nodes: int | None, size: int) -> float:
    return float("nan") if nodes is None else float(nodes * size)


def _number(milli: object) -> float:
    return int(milli) / MILLI_GPU_H if isinstance(milli, int) else float("nan")
