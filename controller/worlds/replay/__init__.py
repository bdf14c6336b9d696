"""Recorded history as a world: the loop decides anew on what was, and what it would have done is written down."""

from controller.worlds.replay.series import snapshots_of_demand
from controller.worlds.replay.world import ReplayWorld

__all__ = ["ReplayWorld", "snapshots_of_demand"]
