"""The replay world: yields recorded observations one after another and changes nothing.

What the loop would have done is kept in ``decisions``; every outcome is ``deferred``, since history does not answer. A
replay is therefore exact for what is observed (demand, waits) and says nothing of what other actions would have caused:
for that there is the simulated world.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from controller.core.actions import Decision, action_id
from controller.core.snapshot import Snapshot
from controller.worlds.base import Outcome, Past, Status, WorldError

DETAIL = "recorded history: what would have been done is noted, nothing changes"


class ReplayWorld:
    """Snapshots in ascending time. ``advance`` moves on to the next, False at the end.

    ``remembered`` True hands the loop's own memory into the snapshots (a what-if under another policy); False leaves
    them byte for byte as they were recorded.
    """

    def __init__(self, snapshots: Iterable[Snapshot], *, remembered: bool = True) -> None:
        self._rest: Iterator[Snapshot] = iter(snapshots)
        first = next(self._rest, None)
        if first is None:
            raise WorldError("the recording is empty")
        self._at, self._remembered = first, remembered
        self.decisions: list[Decision] = []

    @property
    def now_s(self) -> int:
        """The moment of the snapshot that is observed."""
        return self._at.taken_at_s

    def observe(self, past: Past) -> Snapshot:
        """The recorded snapshot of this moment."""
        if not self._remembered:
            return self._at
        pools = tuple(replace(pool, recent_targets=past.targets_of(pool.name)) for pool in self._at.pools)
        return replace(self._at, pools=pools, recent=past.recent)

    def apply(self, decision: Decision) -> list[Outcome]:
        """Note what would have been done."""
        self.decisions.append(decision)
        return [Outcome(action_id(action), Status.DEFERRED, DETAIL) for action in decision.actions]

    def advance(self) -> bool:
        """Go on to the next snapshot; ``WorldError`` where time does not go forward."""
        following = next(self._rest, None)
        if following is None:
            return False
        if following.taken_at_s <= self._at.taken_at_s:
            raise WorldError(f"the recording goes back in time at {following.taken_at_s}")
        self._at = following
        return True
