"""The parts of a simulated pool that carry state: its nodes, and the account of GPU-seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Node:
    """A node that was asked for. ``ready_at_s`` is when its GPUs are allocatable (None: never will be)."""

    name: str
    gpus: int
    requested_at_s: int
    joined_at_s: int
    ready_at_s: int | None
    up: bool = False
    cordoned: bool = False
    interrupted_at_s: int | None = None
    idle_since_s: int | None = None
    used: int = 0

    @property
    def serving(self) -> bool:
        """Whether pods may be placed on it."""
        return self.up and not self.cordoned and self.interrupted_at_s is None


@dataclass(slots=True)
class Account:
    """Milli-GPU-seconds since the start. ``work`` is done and kept, ``lost`` was taken by evictions."""

    up: int = 0
    busy: int = 0
    booting: int = 0
    waiting: int = 0
    work: int = 0
    lost: int = 0
    evictions: int = 0
    node_adds: int = 0
    done: int = 0
