"""Ticks into the store: the record first, then what became of its actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from controller.core.actions import Decision
from controller.core.advice import Advice
from controller.core.forecast import Forecasts
from controller.core.policy import Policy
from controller.core.snapshot import Snapshot
from controller.loop.learning_book import Kept
from controller.loop.ports import RecordError
from controller.store import Store, TickRecord, kill_key, learning_key
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


class StoreBook:
    """A ``Book`` over the store: what learning leaves behind in one cluster."""

    def __init__(self, store: Store, cluster: str) -> None:
        self._store, self._cluster = store, cluster

    def killed(self) -> bool:
        """The flag that ``tidegate learning kill`` sets; where it cannot be read, learning is off."""
        try:
            return bool(self._store.kv_get(kill_key(self._cluster), False))
        except StoreError:
            return True

    def state(self, pool: str) -> Mapping[str, Any] | None:
        """How learning stood in a pool."""
        kept = self._store.kv_get(learning_key(self._cluster, pool))
        return kept if isinstance(kept, dict) else None

    def keep(self, kept: Kept) -> None:
        """Model files first: no row may cite one that is not there."""
        try:
            for model in kept.models:
                self._store.add_model(model)
            self._store.append_learning(kept.ticks, kept.outcomes, kept.days, kept.events)
            for pool, state in kept.states.items():
                self._store.kv_set(learning_key(self._cluster, pool), state)
        except StoreError as error:
            raise RecordError(str(error)) from error
