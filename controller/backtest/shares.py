"""What dividing a fixed fleet is worth: the same demand under four ways of sharing it, down to the same packing code.

- ``static_partition``: every team on its own nodes, as traces of today's clusters show them.
- ``quota_borrowing``: one fleet, quotas in a cohort as Kueue does out of the box: nominal quotas are the floors,
  borrowing is unlimited, nothing is ever reclaimed, so a lent GPU comes back when its borrower's work drains.
- ``tidegate``: the production loop and decide, tick by tick.
- ``pooled_bound``: one fleet without any quota, the least waiting there can be without knowing the future.

A trace with jobs is run job by job. A demand series becomes units of one GPU that come and go with it: nothing is known
of jobs that end and are replaced at once, so a lent unit drains only when its team's demand falls (which is pessimistic
for quota_borrowing); a unit that is recalled is one eviction and loses the GPU-time since it began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from controller.core.policy import Bounds, Lending, Mode, Policy, Pool, PoolLimits, Team
from controller.core.quantities import HOUR_S, MILLI, PPM, Amount
from controller.core.schedule import limits_in_force
from controller.core.shares import entitlements
from controller.loop import FixedPolicy, Loop
from controller.worlds.simulated import Boot, Cluster, Job, PoolSetup, Provider, SimulatedWorld
from controller.worlds.simulated.cohort import CohortCluster
from controller.worlds.simulated.fleet import Fleet, read_fleet
from controller.worlds.simulated.trace import SeriesInput, load_jobs, load_series, read_gaps

POOL = "fleet"
MINUTE_S = 60
TICK_S = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way of sharing, judged. GPU-hours and minutes, gaps left out.

    ``avoidable_wait_removed``: part of the waiting beyond the pooled bound's that static partitions suffer and this
    does not; None where static partitions suffer none. ``jain``: Jain's index over the teams' served part of demand.
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


@dataclass(slots=True)
class _Tally:
    """Sums by team, milli-GPU-seconds."""

    held: dict[str, int] = field(default_factory=dict)
    waited: dict[str, int] = field(default_factory=dict)
    below_s: int = 0
    above_s: int = 0
    evictions: int = 0
    lost: int = 0

    def outcome(self) -> Outcome:
        teams = [team for team in self.held if self.held[team] + self.waited[team]]
        served = [self.held[team] / (self.held[team] + self.waited[team]) for team in teams]
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


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is common to the four: fleet, policy, demand (jobs or series), the judged span and the gaps in it."""

    fleet: Fleet
    policy: Policy
    teams: tuple[str, ...]
    begin_s: int
    end_s: int
    gaps: tuple[tuple[int, int], ...]
    jobs: tuple[Job, ...] = ()
    series: SeriesInput | None = None

    @property
    def grid_s(self) -> int:
        """How often is looked: each minute where jobs come and go at any second, else each step of the series."""
        return MINUTE_S if self.series is None else TICK_S

    def in_gap(self, at_s: int) -> bool:
        """Whether a moment lies in a gap of the trace."""
        return any(start <= at_s < stop for start, stop in self.gaps)


def compare(path: Path, policy: Policy | None = None) -> dict[str, Outcome]:
    """Run all four on a trace folder; without a policy the partitions of nodes.csv are the floors."""
    scene = load_scene(path, policy)
    tallies = {
        "static_partition": run_static(scene),
        "quota_borrowing": run_borrowing(scene),
        "tidegate": run_tidegate(scene),
        "pooled_bound": run_pooled(scene),
    }
    found = {name: tally.outcome() for name, tally in tallies.items()}
    static, bound = found["static_partition"].wait_gpu_h, found["pooled_bound"].wait_gpu_h
    avoidable = static - bound
    if avoidable <= 0:
        return found
    return {
        name: replace(outcome, avoidable_wait_removed=(static - outcome.wait_gpu_h) / avoidable)
        for name, outcome in found.items()
    }


def load_scene(path: Path, policy: Policy | None = None) -> Scene:
    """Read fleet and demand; bad input is an ``InputError``."""
    folder = path if path.is_dir() else path.parent
    fleet = read_fleet(folder)
    origin, gaps = read_gaps(folder)
    rules = policy_of_partitions(fleet, str(folder)) if policy is None else _on_fleet(policy, fleet)
    series = None
    jobs = load_jobs(folder, rules, origin)
    if jobs is None:
        series = load_series(folder, origin)
        teams, span = series.teams, (series.times[0], series.times[-1] + TICK_S)
    else:
        teams = tuple(sorted({job.team for job in jobs}))
        span = (origin, max(job.submit_s for job in jobs) + TICK_S)
    owned = tuple(team for team in teams if rules.team_of(team) is not None)
    return Scene(fleet, rules, owned, span[0], span[1], gaps, tuple(jobs or ()), series)


def policy_of_partitions(fleet: Fleet, source: str) -> Policy:
    """Partitions as floors, all the rest open: ceiling 100 %, no notice, everything may be recalled."""
    fleet.need_partitions(source)
    teams = tuple(
        Team(name, (name,), bounds=Bounds(Amount(milli_gpus=gpus * MILLI), Amount(ppm=PPM)), preemptible=True)
        for name, gpus in fleet.partitions
    )
    pool = Pool(POOL, (), PoolLimits(fleet.gpus, fleet.gpus), gpus_per_node=fleet.gpus_per_node)
    return Policy("partitions", Mode.ENFORCE, "UTC", (pool,), teams, Lending(notice_s=0))


def _on_fleet(policy: Policy, fleet: Fleet) -> Policy:
    """The policy over this fleet: one pool, of the fleet's size, applied for real."""
    pool = replace(policy.pools[0], name=POOL, limits=PoolLimits(fleet.gpus, fleet.gpus), gpus_per_node=fleet.gpus_per_node)
    teams = tuple(replace(team, pools=()) for team in policy.teams)
    return replace(policy, mode=Mode.ENFORCE, pools=(pool,), teams=teams)


def partitions(scene: Scene) -> dict[str, int]:
    """GPUs of each team's static partition: of nodes.csv, else what the policy entitles it to."""
    if scene.fleet.partitions:
        return {name: gpus for name, gpus in scene.fleet.partitions if name in scene.teams}
    return {team: amount // MILLI for team, amount in _nominal(scene).items()}


def _nominal(scene: Scene) -> dict[str, int]:
    """Milli-GPUs by trace team: entitlements of the policy at the beginning."""
    total = scene.fleet.gpus * MILLI
    limits = limits_in_force(scene.policy, scene.policy.pools[0], total, scene.begin_s)
    due = entitlements(limits, scene.policy, total)
    found = {}
    for name in scene.teams:
        team = scene.policy.team_of(name)
        assert team is not None
        found[name] = due[team.name]
    return found


# the four


def run_static(scene: Scene) -> _Tally:
    """Each team alone on the nodes of its partition."""
    clusters = {}
    for team, gpus in partitions(scene).items():
        clusters[team] = Cluster(scene.fleet.gpus_per_node, scene.begin_s)
        _fill(clusters[team], gpus, team)
    tally = _Tally()
    for team in scene.teams:
        alone = clusters.get(team) or Cluster(scene.fleet.gpus_per_node, scene.begin_s)
        _run(replace(scene, teams=(team,)), alone, tally)
    return tally


def run_borrowing(scene: Scene) -> _Tally:
    """Kueue's defaults: nominal quotas in one cohort, borrowing unlimited, ``reclaimWithinCohort: Never``."""
    nominal = {team: gpus * MILLI for team, gpus in partitions(scene).items()}
    cluster = CohortCluster(scene.fleet.gpus_per_node, scene.begin_s, nominal=nominal)
    _fill(cluster, scene.fleet.gpus, POOL)
    tally = _Tally()
    _run(scene, cluster, tally)
    return tally


def run_pooled(scene: Scene) -> _Tally:
    """One fleet, first come, first served, no quota."""
    cluster = Cluster(scene.fleet.gpus_per_node, scene.begin_s)
    _fill(cluster, scene.fleet.gpus, POOL)
    tally = _Tally()
    _run(scene, cluster, tally)
    return tally


def run_tidegate(scene: Scene, loop_of: Callable[[SimulatedWorld, FixedPolicy], Loop] = Loop) -> _Tally:
    """The production loop, a tick every five minutes."""
    nodes = scene.fleet.gpus // scene.fleet.gpus_per_node
    setup = PoolSetup(Provider(POOL, Boot(600)), scene.fleet.gpus_per_node, nodes=nodes, max_nodes=nodes)
    world = SimulatedWorld("shares", scene.begin_s, [setup])
    loop = loop_of(world, FixedPolicy(scene.policy))
    tally = _Tally()
    _run(scene, world.pools[POOL], tally, world, loop)
    return tally


def _fill(cluster: Cluster, gpus: int, name: str) -> None:
    """Whole nodes, and one smaller for what is left over."""
    full, rest = divmod(gpus, cluster.gpus_per_node)
    for number in range(full):
        cluster.add_node(f"{name}-{number:05}", cluster.now_s)
    if rest:
        cluster.add_node(f"{name}-{full:05}", cluster.now_s, gpus=rest)


def _run(
    scene: Scene, cluster: Cluster, tally: _Tally, world: SimulatedWorld | None = None, loop: Loop | None = None
) -> None:
    """Walk through the span: what happens, what is decided, what each team then has."""
    arrivals = _Units(scene) if scene.series is not None else _Arrivals(scene)
    judge = _Judge(scene, tally)
    for at in range(scene.begin_s, scene.end_s, scene.grid_s):
        arrivals.until(at, cluster)
        if world is not None and loop is not None and (at - scene.begin_s) % TICK_S == 0:
            world.advance(at)
            loop.tick()
        cluster.admit()
        judge.look(at, cluster)
    arrivals.until(scene.end_s, cluster)
    judge.close(cluster)
    cluster.check()


class _Arrivals:
    """Jobs, each at its second."""

    def __init__(self, scene: Scene) -> None:
        self._jobs = [job for job in scene.jobs if job.team in scene.teams]
        self._next = 0

    def until(self, at_s: int, cluster: Cluster) -> None:
        """Let time pass until ``at_s`` with what arrives in it."""
        while self._next < len(self._jobs) and self._jobs[self._next].submit_s <= at_s:
            job = self._jobs[self._next]
            cluster.advance(max(job.submit_s, cluster.now_s))
            cluster.submit(job)
            self._next += 1
        cluster.advance(at_s)


class _Units:
    """A demand series as units of one GPU: more are submitted, fewer withdrawn, those that wait first."""

    def __init__(self, scene: Scene) -> None:
        assert scene.series is not None
        self._scene, self._series = scene, scene.series
        self._units: dict[str, list[str]] = {team: [] for team in scene.teams}
        self._count = 0
        self._row = 0

    def until(self, at_s: int, cluster: Cluster) -> None:
        """Let time pass until ``at_s`` and take over the demand of the step that begins there; a gap changes nothing."""
        cluster.advance(at_s)
        while self._row < len(self._series.times) and self._series.times[self._row] <= at_s:
            if not self._scene.in_gap(self._series.times[self._row]):
                for team in self._scene.teams:
                    wanted = self._series.gpus[team][self._row]
                    if wanted is not None:
                        self._scale(team, wanted, cluster)
            self._row += 1

    def _scale(self, team: str, wanted: int, cluster: Cluster) -> None:
        units = self._units[team]
        if wanted > len(units):
            owner = self._scene.policy.team_of(team)
            for _ in range(wanted - len(units)):
                self._count += 1
                name = f"{team}-{self._count:07}"
                preemptible = bool(owner and owner.preemptible)
                cluster.submit(Job(name, team, cluster.now_s, None, 1, MILLI, 0, preemptible))
                units.append(name)
        elif wanted < len(units):
            # Work that still waits is given up before work that runs; among equals the oldest is done first.
            ranked = sorted(units, key=lambda name: (cluster.gangs[name].running, name))
            for name in ranked[: len(units) - wanted]:
                cluster.withdraw(name)
                units.remove(name)


class _Judge:
    """What each team has and waits for, minute by minute or step by step, gaps left out."""

    def __init__(self, scene: Scene, tally: _Tally) -> None:
        self._scene, self._tally = scene, tally
        self._policy_of = {team: scene.policy.team_of(team) for team in scene.teams}
        self._bounds: dict[str, tuple[int, int]] = {}
        self._bounds_at: int | None = None
        self._before = (0, 0)

    def look(self, at_s: int, cluster: Cluster) -> None:
        """Count the stretch that begins now."""
        if self._scene.in_gap(at_s):
            return
        tally, step = self._tally, self._scene.grid_s
        bounds = self._bounds_now(at_s)
        held_of: dict[str, int] = {}
        for team in self._scene.teams:
            held, waiting = cluster.held.get(team, 0), cluster.waiting.get(team, 0)
            tally.held[team] = tally.held.get(team, 0) + held * step
            tally.waited[team] = tally.waited.get(team, 0) + waiting * step
            owner = self._policy_of[team]
            if owner is not None:
                held_of[owner.name] = held_of.get(owner.name, 0) + held
        below, above = set(), set()
        for gang in self._waiting(cluster):
            owner = self._policy_of[gang.job.team]
            if owner is not None and held_of[owner.name] + gang.job.milli_gpus <= bounds[owner.name][0]:
                below.add(owner.name)
        above = {name for name, held in held_of.items() if held > bounds[name][1]}
        tally.below_s += len(below) * step
        tally.above_s += len(above) * step

    def close(self, cluster: Cluster) -> None:
        """Take over what the cluster counted itself."""
        self._tally.evictions += cluster.account.evictions
        self._tally.lost += cluster.account.lost


def _placeholder() -> Iterator[Sequence[int]]:
    yield ()
