"""What the loop is given: who forecasts, who advises, which policy is in force, where ticks are recorded.

Each is a small protocol with a plain implementation beside it, so that a backtest or a test runs the production loop
without a database, a model or a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from controller.core.actions import Decision
from controller.core.advice import Advice
from controller.core.errors import Problem
from controller.core.forecast import Forecasts
from controller.core.policy import Policy
from controller.core.snapshot import Snapshot
from controller.worlds.base import Outcome


class ForecastError(Exception):
    """No forecast can be made now; the rule decides alone and the tick says so."""


class RecordError(Exception):
    """The tick could not be recorded; what is not on record is not applied."""


class Forecaster(Protocol):
    """Forecasts from what was observed up to ``now_s`` and nothing later."""

    def fit(self, now_s: int) -> None:
        """Learn from the past; called at the start and every night. Raises ``ForecastError``."""

    def forecasts(self, now_s: int) -> Forecasts:
        """Forecasts issued at ``now_s``. Raises ``ForecastError``."""


class Advisor(Protocol):
    """Who says how much headroom to aim for."""

    def tune(self, now_s: int) -> None:
        """Tune on the past; called at the start and every night, after the forecaster's fit."""

    def advice(self, now_s: int, forecasts: Forecasts) -> Advice:
        """The advice of this tick."""

    def recorded(self, tick_id: str, decision: Decision) -> None:
        """The tick is on record; keep what belongs to it. Raises ``RecordError``: then it is not applied."""


class PolicySource(Protocol):
    """The policy in force; ``controller.resources.source.PolicyFile`` is one."""

    @property
    def problems(self) -> Sequence[Problem]:
        """What is wrong with the newest policy, while the last good one stays."""

    def current(self) -> Policy:
        """The last good policy, looked up anew."""


class Recorder(Protocol):
    """Where ticks are kept. Both methods raise ``RecordError``."""

    def record(
        self, snapshot: Snapshot, forecasts: Forecasts, policy: Policy, advice: Advice, decision: Decision
    ) -> str:
        """Keep a tick durably, before anything of it is applied; return its id."""

    def outcomes(self, tick_id: str, at_s: int, outcomes: Sequence[Outcome]) -> None:
        """Keep what became of its actions."""


@dataclass(frozen=True, slots=True)
class NoForecasts:
    """No forecaster: the rule decides alone."""

    def fit(self, now_s: int) -> None:
        """Nothing to learn."""

    def forecasts(self, now_s: int) -> Forecasts:
        """None."""
        return Forecasts()


@dataclass(frozen=True, slots=True)
class DefaultAdvice:
    """Always the same advice; by default the plain rule."""

    fixed: Advice = field(default_factory=Advice)

    def tune(self, now_s: int) -> None:
        """Nothing to tune."""

    def advice(self, now_s: int, forecasts: Forecasts) -> Advice:
        """The fixed advice."""
        return self.fixed

    def recorded(self, tick_id: str, decision: Decision) -> None:
        """Nothing more to keep."""


@dataclass(frozen=True, slots=True)
class FixedPolicy:
    """One policy that never changes."""

    policy: Policy
    problems: tuple[Problem, ...] = ()

    def current(self) -> Policy:
        """The policy."""
        return self.policy


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """Keeps nothing: for backtests, whose results are their sums."""

    def record(
        self, snapshot: Snapshot, forecasts: Forecasts, policy: Policy, advice: Advice, decision: Decision
    ) -> str:
        """An id that names nothing."""
        return ""

    def outcomes(self, tick_id: str, at_s: int, outcomes: Sequence[Outcome]) -> None:
        """Nothing is kept."""
