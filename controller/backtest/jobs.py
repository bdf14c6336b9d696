"""The job view: the same targets, but every job by itself, on nodes, as a gang, in a queue.

A job that waits starts and ends later, so demand follows capacity; GPU-seconds are conserved (the cluster asserts it).
Targets come from the policies as in the demand view; on top of them every policy asks for what is pending and finds no
place, as Karpenter does. They are tuned on the nodes that packing takes when every job starts at once; the optimum is
solved on them; replayed job by job it is a reference that no policy is likely to beat, not a proven bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from controller.backtest.baselines import Plans
from controller.backtest.score import Days, daily
from controller.backtest.traces import Trace
from controller.core.placement import Packing
from controller.core.policy import Bounds, Mode, Policy, Pool, PoolLimits, Team
from controller.core.quantities import MILLI
from controller.learning.fleet import Array, Terms
from controller.learning.limits import Limits
from controller.worlds.simulated.cluster import Cluster
from controller.worlds.simulated.jobs import Job
from controller.worlds.simulated.trace import load_input
from forecaster.series import Panel

STARVED_AFTER_S = 900
POOL = "pool"
BLIND = "static_peak"
"""Holds to its number whatever it sees."""
LIMITS = Limits(follows=True)
"""What a replay makes of any target but the static one: never fewer nodes than work takes or waits for."""
INSTANT = frozenset({"optimum", "ideal"})
"""Have their nodes when they want them: the one asked a lead before, the other measures what packing takes."""


def one_team(trace: Trace, gpus_per_node: int) -> Policy:
    """A policy under which all selected teams are one: the fleet is judged, not its division."""
    limits = PoolLimits(min_gpus=0, max_gpus=1_000_000)
    pool = Pool(POOL, (), limits, gpus_per_node=gpus_per_node)
    return Policy(trace.name, Mode.ENFORCE, "UTC", (pool,), (Team("all", trace.panel.names, bounds=Bounds()),))


def nodes_taken(trace: Trace, gpus_per_node: int) -> Panel:
    """GPUs of the nodes that packing takes, by step, if every job starts at once: the demand that a fleet must meet.

    Free places on nodes that are needed anyway cost nothing; rule and forecast must know of them, so both are tuned on
    this and not on the jobs' own GPUs. Known as it unfolds: a step's value depends on what came before its end.
    """
    jobs = _jobs(trace, gpus_per_node, 0)
    terms = Terms(gpus_per_node, 0, 1.0, trace.panel.step_s)
    ideal = _Replay(terms, "ideal", np.zeros(trace.panel.rows), jobs, trace.panel.time(0), 0)
    ideal.run(trace.panel.rows, trace.panel.rows_a_day)
    taken = np.array(ideal.nodes_taken, dtype=np.float64)[:, None] * gpus_per_node
    return Panel(("",), trace.panel.origin_s, trace.panel.step_s, trace.panel.timezone, taken)


def costs_by_step(trace: Trace, terms: Terms, targets: Array, name: str) -> Array:
    """GPU-hours of cost in each step of the whole trace under these targets (rows,), job by job.

    What the learner and the rule would have cost on days that are over; a step's cost rests on nothing after it.
    """
    jobs = _jobs(trace, terms.gpus_per_node, 0)
    replay = _Replay(terms, name, targets, jobs, trace.panel.time(0), int(targets[0]))
    return replay.run(trace.panel.rows, 1).cost(terms)


def replay_jobs(
    trace: Trace, terms: Terms, plans: Plans, names: Sequence[str], tell: Callable[[str], None]
) -> dict[str, Days]:
    """Run each policy's fleet through the judged part, job by job."""
    start, day = trace.judge_from, trace.panel.rows_a_day
    jobs = _jobs(trace, terms.gpus_per_node, start)
    days = {}
    for name in names:
        tell(f"replaying jobs under {name}")
        plan = plans.optimum.plan.astype(np.float64) if name == "optimum" else plans.targets[name][start:]
        replay = _Replay(terms, name, plan, jobs, trace.panel.time(start), plans.first_nodes)
        days[name] = replay.run(trace.panel.rows - start, day)
    return days


def _jobs(trace: Trace, gpus_per_node: int, row: int) -> list[Job]:
    """The jobs of the selected teams that are there at a row or come later, the former with what is left of them."""
    after = _after(trace, trace.panel.time(row))
    work = load_input(trace.folder, one_team(trace, gpus_per_node), begin_after_s=after)
    wanted = set(trace.panel.names)
    return [job for _, job in work.jobs if job.team in wanted]


def _after(trace: Trace, start_s: int) -> int:
    from forecaster.history import origin_of, read_meta

    return start_s - origin_of(read_meta(trace.folder))


class _Replay:
    """One fleet through one list of jobs (ascending by submission); ``plan`` has its target nodes by step."""

    def __init__(
        self, terms: Terms, name: str, plan: Array, jobs: Sequence[Job], start_s: int, first_nodes: int
    ) -> None:
        self.terms, self.name, self.jobs, self.plan = terms, name, jobs, plan
        self.cluster = Cluster(terms.gpus_per_node, start_s)
        self.lead_s = 0 if name in INSTANT else terms.lead_s
        self.started: dict[str, int] = {}
        self.nodes_taken: list[int] = []
        self.next_node = 0
        self._ask(first_nodes, 0)
        self.cluster.account.node_adds = 0

    def run(self, steps: int, day: int) -> Days:
        """Step through the judged part; what happens inside a step happens at its own second."""
        cluster, account, begin = self.cluster, self.cluster.account, self.cluster.now_s
        rows, at, starved = [], 0, 0
        before = (0, 0, 0, 0)
        while at < len(self.jobs) and self.jobs[at].submit_s <= begin:
            cluster.submit(self.jobs[at])
            at += 1
        cluster.admit()
        for t in range(steps):
            self._fit_fleet(int(self.plan[t]))
            until = begin + (t + 1) * self.terms.step_s
            while at < len(self.jobs) and self.jobs[at].submit_s < until:
                moment = max(cluster.now_s, self.jobs[at].submit_s)
                cluster.advance(moment)
                while at < len(self.jobs) and self.jobs[at].submit_s <= moment:
                    cluster.submit(self.jobs[at])
                    at += 1
                if self.name in INSTANT:
                    cluster.admit()
                    self._ask(self._missing(), 0)
            cluster.advance(until)
            cluster.admit()
            self.nodes_taken.append(len(cluster.nodes))
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

    def _fit_fleet(self, planned: int) -> None:
        """Ask for what is missing; give back idle nodes beyond the target."""
        nodes = planned
        if self.name != BLIND:
            nodes = max(planned, self._taken() + self._missing())
        counted = len(self.cluster.nodes)
        self._ask(nodes - counted, self.lead_s)
        surplus = counted - nodes
        if surplus > 0:
            idle = [node for node in self.cluster.nodes.values() if node.up and not node.used]
            idle.sort(key=lambda node: (node.idle_since_s or 0, node.name))
            for node in idle[:surplus]:
                self.cluster.remove_node(node.name)

    def _taken(self) -> int:
        """Nodes that work is on, and those that are coming: none of them can be given back."""
        return sum(1 for node in self.cluster.nodes.values() if node.used or not node.up)

    def _missing(self) -> int:
        """Nodes that waiting gangs need beyond those that are free, idle or coming."""
        waiting = [gang for gang in self.cluster.gangs.values() if not gang.running]
        if not waiting:
            return 0
        full = self.terms.gpus_per_node * MILLI
        free = [full - node.used for node in self.cluster.nodes.values() if node.used or not node.up]
        packing = Packing(free)
        return sum(
            packing.extend(gang.job.pods, gang.job.milli_gpus_per_pod, full)
            for gang in sorted(waiting, key=lambda gang: gang.seq)
        )

    def _ask(self, count: int, lead_s: int) -> None:
        for _ in range(count):
            self.next_node += 1
            self.cluster.add_node(f"node-{self.next_node:06}", self.cluster.now_s + lead_s)
