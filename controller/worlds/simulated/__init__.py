"""A simulated cluster: discrete events, deterministic for a seed, fast enough to replay months."""

from controller.worlds.simulated.cluster import Cluster
from controller.worlds.simulated.jobs import Gang, Job, gang_shape
from controller.worlds.simulated.parts import Node
from controller.worlds.simulated.provider import Boot, Fault, FaultKind, Provider, Shortage
from controller.worlds.simulated.world import PoolSetup, Service, SimulatedWorld

__all__ = [
    "Boot",
    "Cluster",
    "Fault",
    "FaultKind",
    "Gang",
    "Job",
    "Node",
    "PoolSetup",
    "Provider",
    "Service",
    "Shortage",
    "SimulatedWorld",
    "gang_shape",
]
