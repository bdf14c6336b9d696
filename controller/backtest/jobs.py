"""The job view: the same targets, but every job by itself, on nodes, as a gang, in a queue.

A job that waits starts and ends later, so demand follows capacity; GPU-seconds are conserved (the cluster asserts it).
Targets come from the policies as in the demand view; on top of them every policy covers the demand it sees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from controller.backtest.baselines import Plans
from controller.backtest.score import Days, daily
from controller.backtest.traces import Trace
from controller.core.policy import Bounds, Mode, Policy, Pool, PoolLimits, Team
from controller.core.quantities import MILLI
from controller.learning.fleet import Terms
from controller.worlds.simulated.cluster import Cluster
from controller.worlds.simulated.jobs import Job
from controller.worlds.simulated.trace import load_input

STARVED_AFTER_S = 900
POOL = "pool"
FIXED = frozenset({"static_peak", "optimum"})
"""Policies that hold to their plan whatever they see: the one has no eyes, the other needs none."""


def one_team(trace: Trace, gpus_per_node: int) -> Policy:
    """A policy under which all selected teams are one: the fleet is judged, not its division."""
    limits = PoolLimits(min_gpus=0, max_gpus=1_000_000)
    pool = Pool(POOL, (), limits, gpus_per_node=gpus_per_node)
    return Policy(trace.name, Mode.ENFORCE, "UTC", (pool,), (Team("all", trace.panel.names, bounds=Bounds()),))


def replay_jobs(trace: Trace, terms: Terms, plans: Plans, name: str, tell: Callable[[str], None]) -> Days:
    """Run one policy's fleet through the judged part, job by job."""
    tell(f"replaying jobs under {name}")
    start_s = trace.panel.time(trace.judge_from)
    work = load_input(trace.folder, one_team(trace, terms.gpus_per_node), begin_after_s=_after(trace, start_s))
    wanted = set(trace.panel.names)
    replay = _Replay(terms, plans, name, [job for _, job in work.jobs if job.team in wanted], start_s, trace.judge_from)
    return replay.run(trace.panel.rows - trace.judge_from, trace.panel.rows_a_day)


def _after(trace: Trace, start_s: int) -> int:
    from forecaster.history import origin_of, read_meta

    return start_s - origin_of(read_meta(trace.folder))


class _Replay:
    def __init__(self, terms: Terms, plans: Plans, name: str, jobs: list[Job], start_s: int, row: int) -> None:
        self.terms, self.name, self.jobs, self.row = terms, name, jobs, row
        self.plan = plans.optimum.plan if name == "optimum" else plans.targets[name][row:]
        self.cluster = Cluster(terms.gpus_per_node, start_s)
        self.started: dict[str, int] = {}
        self.next_node = 0
        self.lead_steps = -(-terms.lead_s // terms.step_s)
        alive = sum(job.milli_gpus for job in jobs if job.submit_s <= start_s)
        self._ask(max(plans.first_nodes, -(-alive // (terms.gpus_per_node * MILLI))), 0)
        self.cluster.account.node_adds = 0

    def run(self, steps: int, day: int) -> Days:
        """Step through the judged part; what happens inside a step happens at its own second."""
        cluster, account, begin = self.cluster, self.cluster.account, self.cluster.now_s
        rows, at, starved = [], 0, 0
        before = (0, 0, 0, 0)
        for t in range(steps):
            self._fit_fleet(t)
            until = begin + (t + 1) * self.terms.step_s
            while at < len(self.jobs) and self.jobs[at].submit_s < until:
                cluster.advance(max(cluster.now_s, self.jobs[at].submit_s))
                cluster.submit(self.jobs[at])
                at += 1
            cluster.advance(until)
            cluster.admit()
            starved += self._anyone_starved()
            now = (account.up, account.busy, account.waiting, account.node_adds)
            rows.append([b - a for a, b in zip(before, now, strict=True)])
            before = now
        cluster.check()
        return self._days(np.array(rows, dtype=np.float64), day, starved)

    def _days(self, rows: np.ndarray[tuple[int, int], np.dtype[np.float64]], day: int, starved: int) -> Days:
        hours = MILLI * 3600
        up, busy, waiting, adds = rows[:, 0] / hours, rows[:, 1] / hours, rows[:, 2] / hours, rows[:, 3]
        days = daily(up, up - busy, waiting, adds, day)
        queue = np.array(self._waits(), dtype=np.float64)
        return replace(days, queue_s=queue, starved_min=starved * self.terms.step_s / 60)

    def _waits(self) -> list[int]:
        """How long each judged job queued; one that still waits has waited until the end."""
        end = self.cluster.now_s
        begin = self.jobs[0].submit_s if self.jobs else 0
        judged = [job for job in self.jobs if job.submit_s > begin and job.submit_s < end]
        return [self._start_of(job, end) - job.submit_s for job in judged]

    def _start_of(self, job: Job, end: int) -> int:
        gang = self.cluster.gangs.get(job.name)
        if gang is not None:
            return gang.first_start_s if gang.first_start_s is not None else end
        return self.started.get(job.name, job.submit_s)

    def _anyone_starved(self) -> bool:
        cluster = self.cluster
        for name in cluster.changed:
            gang = cluster.gangs.get(name)
            if gang is not None and gang.first_start_s is not None:
                self.started[name] = gang.first_start_s
        cluster.changed.clear()
        late = cluster.now_s - STARVED_AFTER_S
        return any(not gang.running and gang.queued_at_s < late for gang in cluster.gangs.values())

    def _fit_fleet(self, t: int) -> None:
        """Ask for what is missing; give back idle nodes beyond the target."""
        nodes = self._target(t)
        counted = len(self.cluster.nodes)
        if nodes > counted:
            late = 0 if self.name == "optimum" else self.terms.lead_s
            self._ask(nodes - counted, late)
        surplus = counted - nodes
        if surplus > 0:
            idle = [node for node in self.cluster.nodes.values() if node.up and not node.used]
            idle.sort(key=lambda node: (node.idle_since_s or 0, node.name))
            for node in idle[:surplus]:
                self.cluster.remove_node(node.name)

    def _target(self, t: int) -> int:
        planned = int(self.plan[t])
        if self.name in FIXED:
            return planned
        return max(planned, -(-self.cluster.demand // (self.terms.gpus_per_node * MILLI)))

    def _ask(self, count: int, lead_s: int) -> None:
        for _ in range(count):
            self.next_node += 1
            self.cluster.add_node(f"node-{self.next_node:06}", self.cluster.now_s + lead_s)
