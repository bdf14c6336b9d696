"""What dividing a fixed fleet is worth: the same demand under four ways of sharing it, down to the same packing code.

- ``static_partition``: every team on its own nodes, as traces of today's clusters show them.
- ``quota_borrowing``: one fleet, quotas in a cohort as Kueue does out of the box: nominal quotas are the floors,
  borrowing is unlimited, nothing is ever reclaimed, so a lent GPU comes back when its borrower's work drains.
- ``tidegate``: the production loop and decide, a tick every five minutes.
- ``pooled_bound``: one fleet without quotas, gangs or packing: every GPU of a job is a unit that starts by itself.

A unit of a demand series that is recalled is one eviction and loses the GPU-time since it began. The series does not
show jobs that end and are replaced at once, so a lent unit drains only when its team's demand falls: for
quota_borrowing that is the pessimistic reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from controller.backtest.scene import MINUTE_S, POOL, TICK_S, Arrivals, Scene, load_scene
from controller.core.policy import Policy
from controller.core.quantities import HOUR_S, MILLI
from controller.core.schedule import limits_in_force
from controller.core.shares import entitlements
from controller.loop import FixedPolicy, Loop
from controller.worlds.simulated import Boot, Cluster, Job, PoolSetup, Provider, SimulatedWorld
from controller.worlds.simulated.cohort import CohortCluster

LoopOf = Callable[[SimulatedWorld, Policy], Loop]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way of sharing, judged. GPU-hours and minutes, gaps left out.

    ``avoidable_wait_removed``: the part of the waiting beyond the pooled bound's that static partitions cause and this
    does not; None where they cause none. ``below_floor_min``: minutes in which a team had a gang waiting that fits
    what is left of its floor. ``jain``: Jain's index over the teams' served parts of demand.
    ``worst_team_wait_share``: the largest part of its own demanded GPU-hours that a team waited for.
    """

    wait_gpu_h: float
    avoidable_wait_removed: float | None
    evictions: int
    lost_gpu_h: float
    below_floor_min: int
    above_ceiling_min: int
    jain: float
    worst_team_wait_share: float


def compare(folder: Path, policy: Policy | None = None, tell: Tell = lambda _: None) -> dict[str, Outcome]:
    """Run all four on a trace; without a policy the partitions of nodes.csv are the floors."""
    return compare_scene(load_scene(folder, policy), tell)


def compare_scene(scene: Scene, tell: Tell = lambda _: None) -> dict[str, Outcome]:
    """Run all four on a scene."""
    ways = {
        "static_partition": run_static,
        "quota_borrowing": run_borrowing,
        "tidegate": run_tidegate,
        "pooled_bound": run_pooled,
    }
    found = {}
    for name, way in ways.items():
        tell(name)
        found[name] = way(scene).outcome()
    static, bound = found["static_partition"].wait_gpu_h, found["pooled_bound"].wait_gpu_h
    if static <= bound:
        return found
    return {
        name: replace(outcome, avoidable_wait_removed=(static - outcome.wait_gpu_h) / (static - bound))
        for name, outcome in found.items()
    }


def partitions(scene: Scene) -> dict[str, int]:
    """Milli-GPUs by team of the policy: its partitions in nodes.csv, else what the policy entitles it to at first."""
    owners = sorted({scene.owner(team).name for team in scene.teams})
    if scene.fleet.partitions:
        found = dict.fromkeys(owners, 0)
        for team in scene.teams:
            found[scene.owner(team).name] += scene.fleet.partitions.get(team, 0) * MILLI
        return found
    total = scene.fleet.gpus * MILLI
    limits = limits_in_force(scene.policy, scene.policy.pools[0], total, scene.begin_s)
    due = entitlements(limits, scene.policy, total)
    return {owner: due[owner] for owner in owners}


def run_static(scene: Scene) -> Tally:
    """Each team alone on the nodes of its partition."""
    tally = Tally()
    for owner, milli_gpus in partitions(scene).items():
        alone = Cluster(scene.fleet.gpus_per_node, scene.begin_s)
        teams = tuple(team for team in scene.teams if scene.owner(team).name == owner)
        if scene.fleet.partitions:
            for team in teams:
                scene.fleet.build(alone, team)
        else:
            _fill(alone, milli_gpus // MILLI)
        _run(replace(scene, teams=teams), alone, tally)
    return tally


def _fill(cluster: Cluster, gpus: int) -> None:
    """Whole nodes, and a smaller one for what is left over."""
    full, rest = divmod(gpus, cluster.gpus_per_node)
    for number, size in enumerate([cluster.gpus_per_node] * full + [rest] * bool(rest)):
        cluster.add_node(f"{POOL}-{number:05}", cluster.now_s, gpus=size)


def run_borrowing(scene: Scene) -> Tally:
    """Kueue's defaults: nominal quotas in one cohort, borrowing unlimited, ``reclaimWithinCohort: Never``."""
    cluster = CohortCluster(scene.fleet.gpus_per_node, scene.begin_s, nominal=partitions(scene))
    scene.fleet.build(cluster)
    return _run(scene, cluster, Tally())


def run_pooled(scene: Scene) -> Tally:
    """One fleet, first come, first served, no quota, and no gang that waits for the last of its GPUs."""
    scene = replace(scene, jobs=tuple(unit for job in scene.jobs for unit in _units(job)))
    return _run(scene, scene.fleet.build(Cluster(scene.fleet.gpus_per_node, scene.begin_s)), Tally())


def _units(job: Job) -> Iterator[Job]:
    if job.milli_gpus <= MILLI:
        yield job
        return
    for number in range(job.milli_gpus // MILLI):
        yield replace(job, name=f"{job.name}/{number}", pods=1, milli_gpus_per_pod=MILLI)


def plain_loop(world: SimulatedWorld, policy: Policy) -> Loop:
    """The production loop without forecasts."""
    return Loop(world, FixedPolicy(policy))


def run_tidegate(scene: Scene, loop_of: LoopOf = plain_loop) -> Tally:
    """The production loop over the fleet."""
    setup = PoolSetup(Provider(POOL, Boot(600)), scene.fleet.gpus_per_node)
    world = SimulatedWorld("shares", scene.begin_s, [setup])
    cluster = scene.fleet.build(world.pools[POOL])
    return _run(scene, cluster, Tally(), world, loop_of(world, scene.policy))


def _run(
    scene: Scene,
    cluster: Cluster,
    tally: Tally,
    world: SimulatedWorld | None = None,
    loop: Loop | None = None,
) -> Tally:
    """Walk through the span: what happens, what is decided, what each team then has."""
    arrivals = Arrivals(scene)
    for at in range(scene.begin_s, scene.end_s, scene.grid_s):
        arrivals.until(at, cluster)
        if world is not None and loop is not None and (at - scene.begin_s) % TICK_S == 0:
            if at > scene.begin_s:  # nothing is admitted before the first decision has set the quotas
                world.advance(at)
            loop.tick()
        cluster.admit()
        if not scene.in_gap(at):
            tally.look(scene, cluster, at)
    cluster.advance(scene.end_s)
    cluster.check()
    tally.evictions += cluster.account.evictions
    tally.lost += cluster.account.lost
    return tally


@dataclass(slots=True)
class Tally:
    """Sums by team of the trace, in milli-GPU-seconds; seconds below floors and above ceilings."""

    held: dict[str, int] = field(default_factory=dict)
    waited: dict[str, int] = field(default_factory=dict)
    below_s: int = 0
    above_s: int = 0
    evictions: int = 0
    lost: int = 0
    _bounds: tuple[int, dict[str, tuple[int, int]]] = (-1, {})

    def look(self, scene: Scene, cluster: Cluster, at_s: int) -> None:
        """Count the stretch of the grid that begins now."""
        held_of: dict[str, int] = {}
        waiting = set()
        for team in scene.teams:
            held, waits = cluster.held.get(team, 0), cluster.waiting.get(team, 0)
            self.held[team] = self.held.get(team, 0) + held * scene.grid_s
            self.waited[team] = self.waited.get(team, 0) + waits * scene.grid_s
            owner = scene.owner(team).name
            held_of[owner] = held_of.get(owner, 0) + held
            if waits:
                waiting.add(owner)
        bounds = self._bounds_at(scene, at_s)
        short = {name for name in waiting if held_of[name] < bounds[name][0]}
        if short:
            room = {name: bounds[name][0] - held_of[name] for name in short}
            self.below_s += scene.grid_s * len(_inside(scene, cluster, room))
        self.above_s += scene.grid_s * sum(held > bounds[name][1] for name, held in held_of.items())

    def _bounds_at(self, scene: Scene, at_s: int) -> dict[str, tuple[int, int]]:
        minute = at_s // MINUTE_S if any(team.schedule for team in scene.policy.teams) else 0
        if self._bounds[0] != minute:
            limits = limits_in_force(scene.policy, scene.policy.pools[0], scene.fleet.gpus * MILLI, at_s)
            self._bounds = (minute, {limit.team: (limit.floor, limit.ceiling) for limit in limits})
        return self._bounds[1]

    def outcome(self) -> Outcome:
        """The sums as they are reported."""
        wanted = {team: self.held[team] + self.waited[team] for team in self.held}
        served = [self.held[team] / total for team, total in wanted.items() if total]
        squares = sum(part * part for part in served)
        return Outcome(
            wait_gpu_h=sum(self.waited.values()) / (MILLI * HOUR_S),
            avoidable_wait_removed=None,
            evictions=self.evictions,
            lost_gpu_h=self.lost / (MILLI * HOUR_S),
            below_floor_min=self.below_s // MINUTE_S,
            above_ceiling_min=self.above_s // MINUTE_S,
            jain=sum(served) ** 2 / (len(served) * squares) if squares else 1.0,
            worst_team_wait_share=max((1 - part for part in served), default=0.0),
        )


def _inside(scene: Scene, cluster: Cluster, room: dict[str, int]) -> set[str]:
    """The teams of which a waiting gang fits into what is left of the floor."""
    found = set()
    for gang in cluster.gangs.values():
        if not gang.running and gang.job.team in scene.teams:
            owner = scene.owner(gang.job.team).name
            if gang.job.milli_gpus <= room.get(owner, 0):
                found.add(owner)
    return found
