"""The one door between the loop and whatever it controls, so that the loop is the same code everywhere.

A world tells facts and carries out actions; it never decides. What it needs of the past that it cannot observe by
itself (demand and targets of the last hours) the loop hands in as ``Past``, so that a world keeps no hidden state.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from controller.core.actions import Decision
from controller.core.snapshot import RecentDemand, Snapshot


class Status(StrEnum):
    """What became of an action; the words of the store's outcomes."""

    APPLIED = "applied"
    REFUSED = "refused"
    DEFERRED = "deferred"


class WorldError(Exception):
    """The world cannot be observed now (an API server that is away): this tick is left out, nothing is changed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one action. ``detail`` says what was given when less than asked, or why nothing was."""

    action_id: str
    status: Status
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Past:
    """What the loop remembers for a world: ``targets`` are a pool's node targets as advised, ascending by time."""

    recent: tuple[RecentDemand, ...] = ()
    targets: tuple[tuple[str, tuple[tuple[int, int], ...]], ...] = ()

    def targets_of(self, pool: str) -> tuple[tuple[int, int], ...]:
        """A pool's advised targets."""
        return dict(self.targets).get(pool, ())


class World(Protocol):
    """A cluster, real, simulated or recorded.

    - Actions are absolute (have N nodes, hold at most M GPUs), never differences: to apply one whose effect holds
      already does nothing and is ``applied``. A decision that is applied twice changes nothing the second time.
    - A world may give less than was asked (a stock-out, a busy node): the outcome says so, and the next observation
      shows what is. Nothing is retried inside a world; the loop derives everything anew from what it observes.
    - One action that fails never keeps the others from being carried out.
    - Deterministic worlds give the same observations and outcomes for the same calls.
    """

    @property
    def now_s(self) -> int:
        """The world's time, epoch seconds."""

    def observe(self, past: Past) -> Snapshot:
        """One consistent observation at ``now_s``; ``WorldError`` where there can be none."""

    def apply(self, decision: Decision) -> list[Outcome]:
        """Carry out a decision's actions in their order; one outcome for each."""
