"""Ticks into the store: the record first, then what became of its actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from controller.core.actions import Decision
from controller.core.advice import Advice
from controller.core.forecast import Forecasts
from controller.core.policy import Policy
from controller.core.snapshot import Snapshot
from controller.loop.ports import RecordError
from controller.store import Store, TickRecord
from controller.store.errors import StoreError
from controller.worlds.base import Outcome


class StoreRecorder:
    """A ``Recorder`` over the store. ``clock`` is the wall clock in epoch seconds."""

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store, self._clock = store, clock

    def record(
        self, snapshot: Snapshot, forecasts: Forecasts, policy: Policy, advice: Advice, decision: Decision
    ) -> str:
        """Write the tick in one transaction; the same tick again adds nothing."""
        record = TickRecord.of(
            snapshot=snapshot,
            forecasts=forecasts,
            policy=policy,
            advice=advice,
            decision=decision,
            wall_at_s=self._clock(),
        )
        try:
            self._store.append(record, decision, forecasts)
        except StoreError as error:
            raise RecordError(str(error)) from error
        return record.id

    def outcomes(self, tick_id: str, at_s: int, outcomes: Sequence[Outcome]) -> None:
        """Add what became of each action."""
        try:
            self._store.outcomes(tick_id, [(one.action_id, one.status.value, one.detail) for one in outcomes], at_s)
        except StoreError as error:
            raise RecordError(str(error)) from error
