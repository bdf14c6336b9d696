"""One tick, and ticks one after another.

The order is the contract: what is decided is recorded before any of it is applied, and what cannot be recorded is not
applied (the cluster goes on as it is). A crash between the two asks for nothing twice: the next tick derives everything
from what it then observes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from controller.core.actions import Decision
from controller.core.decide import decide
from controller.core.forecast import Forecasts
from controller.core.policy import Mode, Policy
from controller.loop.demand import DemandRecorder
from controller.loop.memory import Memory
from controller.loop.nights import Nights
from controller.loop.ports import (
    Advisor,
    DefaultAdvice,
    Forecaster,
    ForecastError,
    NoForecasts,
    PolicySource,
    Recorder,
    RecordError,
    Unrecorded,
)
from controller.worlds.base import Outcome, World, WorldError

log = structlog.get_logger("tidegate.loop")


@dataclass(frozen=True, slots=True)
class Tick:
    """What came of one tick. ``decision`` is None when the world could not be observed.

    ``problems`` says what failed in words; ``outcomes`` is empty when nothing was applied.
    """

    at_s: int
    tick_id: str = ""
    decision: Decision | None = None
    outcomes: tuple[Outcome, ...] = ()
    problems: tuple[str, ...] = ()


class Loop:
    """The loop over an injected world. ``demand`` is filled with what each tick observes."""

    def __init__(
        self,
        world: World,
        policies: PolicySource,
        *,
        forecaster: Forecaster | None = None,
        advisor: Advisor | None = None,
        recorder: Recorder | None = None,
        demand: DemandRecorder | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.world = world
        self.policies = policies
        self.forecaster: Forecaster = forecaster or NoForecasts()
        self.advisor: Advisor = advisor or DefaultAdvice()
        self.recorder: Recorder = recorder or Unrecorded()
        self.demand = demand
        self.memory = memory or Memory()
        self._nights = Nights()
        self._recorded_s: int | None = None

    def resume(self, snapshot: bytes, decision: bytes) -> None:
        """Go on after the newest tick on record: what was decided is not decided again, nor asked for again."""
        self._recorded_s = self.memory.restore(snapshot, decision)

    def tick(self) -> Tick:
        """Observe, forecast, decide, record, apply (only in mode enforce), record what became of it."""
        now_s = self.world.now_s
        if self._recorded_s is not None and now_s <= self._recorded_s:
            return Tick(now_s, problems=("decided before the restart",))
        policy = self.policies.current()
        problems = [f"policy refused, the last good one stays: {problem}" for problem in self.policies.problems]
        try:
            snapshot = self.world.observe(self.memory.past())
        except WorldError as error:
            log.error("world_unavailable", at_s=now_s, error=str(error))
            return Tick(now_s, problems=(*problems, f"not observed: {error}"))
        if self.demand is not None:
            self.demand.observe(snapshot, policy)
        problems += self._nightly(now_s, policy)
        forecasts = self._forecasts(now_s, problems)
        advice = self.advisor.advice(now_s, forecasts)
        decision = decide(snapshot, forecasts, policy, now_s, advice)
        try:
            tick_id = self.recorder.record(snapshot, forecasts, policy, advice, decision)
            self.advisor.recorded(tick_id, decision)
        except RecordError as error:
            log.error("not_recorded", at_s=now_s, error=str(error))
            return Tick(now_s, decision=decision, problems=(*problems, f"not recorded, so not applied: {error}"))
        self.memory.remember(decision)
        outcomes = tuple(self.world.apply(decision)) if policy.mode is Mode.ENFORCE else ()
        problems += self._record_outcomes(tick_id, now_s, outcomes)
        return Tick(now_s, tick_id, decision, outcomes, tuple(problems))

    def _nightly(self, now_s: int, policy: Policy) -> list[str]:
        """Fit and tune at the start and after every midnight of the policy's time zone."""
        if not self._nights.due(now_s, policy.timezone):
            return []
        problems = []
        try:
            self.forecaster.fit(now_s)
        except ForecastError as error:
            log.warning("fit_failed", at_s=now_s, error=str(error))
            problems = [f"the forecaster could not be fitted: {error}"]
        self.advisor.tune(now_s)
        return problems

    def _forecasts(self, now_s: int, problems: list[str]) -> Forecasts:
        try:
            return self.forecaster.forecasts(now_s)
        except ForecastError as error:
            log.warning("forecast_failed", at_s=now_s, error=str(error))
            problems.append(f"no forecast, the rule decides: {error}")
            return Forecasts()

    def _record_outcomes(self, tick_id: str, now_s: int, outcomes: Sequence[Outcome]) -> list[str]:
        try:
            self.recorder.outcomes(tick_id, now_s, outcomes)
        except RecordError as error:
            log.error("outcomes_not_recorded", at_s=now_s, error=str(error))
            return [f"applied, but what became of it is not recorded: {error}"]
        return []

    def run(self, step: Callable[[], bool], on_tick: Callable[[Tick], None] | None = None) -> int:
        """Tick until ``step`` says that it is over; return the number of ticks.

        ``step`` lets time pass until the next tick (sleeping, or advancing a simulation) and returns False to stop; a
        tick that has begun is always finished.
        """
        ticks = 0
        while True:
            done = self.tick()
            ticks += 1
            if on_tick is not None:
                on_tick(done)
            if not step():
                return ticks
