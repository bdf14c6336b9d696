"""What teams submit, and the life of one gang: queued, running, put back, done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from controller.core.quantities import MILLI


@dataclass(frozen=True, slots=True)
class Job:
    """A gang and its work. ``duration_s`` None runs until it is withdrawn (a replica of a service).

    ``team`` is who submits it (its namespace), ``owner`` the team of the policy whose share it counts against ("": of
    the same name). ``checkpoint_s``: progress is kept in whole steps of so many seconds of running; None keeps none.
    """

    name: str
    team: str
    submit_s: int
    duration_s: int | None
    pods: int
    milli_gpus_per_pod: int
    priority: int = 0
    preemptible: bool = False
    checkpoint_s: int | None = None
    owner: str = ""

    @property
    def counts_for(self) -> str:
        """The name of the share it counts against."""
        return self.owner or self.team

    @property
    def milli_gpus(self) -> int:
        """Milli-GPUs of the whole gang."""
        return self.pods * self.milli_gpus_per_pod


def gang_shape(milli_gpus: int, gpus_per_node: int) -> tuple[int, int]:
    """Pods and milli-GPUs a pod of a job that asks for so many GPUs.

    Up to a node: one pod. Whole nodes where it divides: full pods. Else equal pods, as large as divide it.
    """
    full = gpus_per_node * MILLI
    if milli_gpus <= full:
        return 1, milli_gpus
    gpus = -(-milli_gpus // MILLI)
    size = next(size for size in range(gpus_per_node, 0, -1) if gpus % size == 0)
    return gpus // size, size * MILLI


@dataclass(slots=True)
class Gang:
    """One job in the cluster. ``kept_s`` is progress that an eviction cannot take, ``nodes`` one entry a pod."""

    job: Job
    seq: int
    queued_at_s: int
    kept_s: int = 0
    started_at_s: int | None = None
    nodes: tuple[str, ...] = ()
    evict_at_s: int | None = None
    evict_for: str = ""
    first_start_s: int | None = None
    waited_s: int = 0
    evictions: int = 0
    gone: bool = False
    epoch: int = 0

    @property
    def running(self) -> bool:
        """Whether it holds GPUs."""
        return self.started_at_s is not None

    @property
    def end_s(self) -> int | None:
        """When a running gang is done; None when it is not running or has no end."""
        if self.started_at_s is None or self.job.duration_s is None:
            return None
        return self.started_at_s + self.job.duration_s - self.kept_s

    def saved_at_s(self, now_s: int) -> int | None:
        """The moment of the last checkpoint of this run."""
        if self.started_at_s is None or self.job.checkpoint_s is None:
            return None
        steps = (now_s - self.started_at_s) // self.job.checkpoint_s
        return self.started_at_s + steps * self.job.checkpoint_s if steps else None

    def dump(self) -> dict[str, Any]:
        """The gang as plain JSON."""
        job = {name: getattr(self.job, name) for name in Job.__slots__}
        state = {name: getattr(self, name) for name in Gang.__slots__ if name not in ("job", "nodes")}
        return {"job": job, "nodes": list(self.nodes), **state}

    @classmethod
    def load(cls, data: dict[str, Any]) -> Gang:
        """The gang of ``dump``."""
        return cls(**{**data, "job": Job(**data["job"]), "nodes": tuple(data["nodes"])})
