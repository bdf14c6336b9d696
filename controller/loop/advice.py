"""Headroom advice from a pool's own past: each night the rule is tuned, and a forecast acts where it has earned it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from controller.core.advice import Advice, HeadroomSource, PoolAdvice
from controller.core.policy import LearningMode, Pool
from controller.learning.fleet import Terms
from controller.learning.forecast_only import Choice, chosen_nightly
from controller.loop.demand import DemandRecorder
from controller.loop.ports import PolicySource
from forecaster.series import Panel

LEAST_ROWS = 144
"""Half a day of 5-minute steps; less says nothing about a night, and the default rule serves."""


class PastAdvice:
    """An ``Advisor`` over recorded demand. ``lead_of`` tells a pool's lead in seconds."""

    def __init__(self, demand: DemandRecorder, policies: PolicySource, lead_of: Callable[[str], int]) -> None:
        self._demand, self._policies, self._lead_of = demand, policies, lead_of
        self._choices: dict[str, Choice] = {}

    def tune(self, now_s: int) -> None:
        """Choose for each pool on what was observed before ``now_s``."""
        policy = self._policies.current()
        known = set(self._demand.pools)
        self._choices = {
            pool.name: choice
            for pool in policy.pools
            if pool.name in known and (choice := self._choose(pool, now_s)) is not None
        }
        if policy.learning.mode is LearningMode.OFF:
            self._choices = {pool: Choice(choice.rule) for pool, choice in self._choices.items()}

    def _choose(self, pool: Pool, now_s: int) -> Choice | None:
        panel = self._demand.panel(pool.name)
        panel = panel.until(max(0, panel.row(now_s)))
        total = panel.values[:, -1:]
        if np.count_nonzero(~np.isnan(total)) < LEAST_ROWS:
            return None
        # The night to choose for begins after the last row: one unknown row stands for it.
        night = np.vstack([total, np.full((1, 1), np.nan)])
        terms = Terms(pool.gpus_per_node, self._lead_of(pool.name), pool.wait_weight, panel.step_s)
        padded = Panel(("",), panel.origin_s, panel.step_s, panel.timezone, night)
        return chosen_nightly(padded, terms, panel.rows).nights[0]

    def lengths_s(self, pool: str) -> tuple[int, ...]:
        """The window lengths whose forecasts the advice needs."""
        choice = self._choices.get(pool)
        return () if choice is None or choice.window is None else (choice.window.length_s,)

    def advice(self, now_s: int) -> Advice:
        """The advice of the last tuning."""
        return Advice(tuple(_advice(pool, choice) for pool, choice in sorted(self._choices.items())))


def _advice(pool: str, choice: Choice) -> PoolAdvice:
    if choice.level is None or choice.window is None:
        return PoolAdvice(pool, HeadroomSource.RULE, choice.rule)
    return PoolAdvice(
        pool,
        HeadroomSource.FORECAST,
        choice.rule,
        quantile_permille=round(1000 * choice.level),
        window_s=choice.window.length_s,
        hold_s=choice.hold_s,
        model="mixture",
    )
