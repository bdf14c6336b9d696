"""The composition of a simulation: world, loop, store, forecaster and policy put together, run, kept and continued."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import structlog

from controller.core.errors import InputError
from controller.core.policy import Policy
from controller.core.quantities import DAY_S, HOUR_S, MILLI
from controller.loop import DemandRecorder, Loop, Tick
from controller.loop.feeds import RecordedForecasts
from controller.loop.learned import LearnedAdvice
from controller.loop.recording import StoreBook, StoreRecorder
from controller.resources.source import PolicyFile
from controller.store import Store, open_store, problems_key
from controller.store.engine import parse_url
from controller.store.errors import shown
from controller.store.lock import exclusive
from controller.worlds.simulated import Boot, PoolSetup, Provider, SimulatedWorld
from controller.worlds.simulated.trace import BUILTIN, TraceInput, builtin_folder, load_input

Progress = Callable[[float, str], None]
log = structlog.get_logger()
MICRO_USD_PER_GPU_HOUR = 2_500_000
"""A round price for an H100 GPU-hour in the cloud, so that the demo shows money; real prices come with a provider."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line said; durations in seconds, ``begin_s`` and ``until_s`` from the trace's start."""

    trace: str
    policy: str
    store: str
    speed: float
    lead_s: int
    lead_p90_s: int | None
    tick_s: int
    begin_s: int | None
    until_s: int | None
    seed: int
    cluster: str


@dataclass(slots=True)
class Count:
    """What the ticks of this run amounted to."""

    ticks: int = 0
    problems: int = 0
    last_problem: str = ""

    def add(self, tick: Tick) -> None:
        """Take in one tick."""
        self.ticks += 1 if tick.decision else 0
        if tick.problems:
            self.problems += 1
            self.last_problem = tick.problems[-1]


def run(options: Options, stop: Event, progress: Progress) -> dict[str, Any]:
    """Run until the trace ends or ``stop`` is set; return the summary. Raises ``InputError`` on bad input."""
    policies = PolicyFile(_policy_path(options.policy))
    folder = builtin_folder(options.trace) if options.trace.startswith(BUILTIN) else Path(options.trace)
    given = load_input(folder, policies.current(), begin_after_s=options.begin_s)
    end_s = given.end_s if options.until_s is None else min(given.end_s, given.origin_s + options.until_s)
    if end_s <= given.begin_s:
        raise InputError.one("--until", options.until_s, "a moment after the beginning")
    cluster = options.cluster or given.name
    with exclusive(options.store, cluster), open_store(options.store, durable=False) as store:
        pools = _pools(policies.current(), given, options)
        world = SimulatedWorld(cluster, given.begin_s, pools, given.jobs, given.services)
        simulation = _Simulation(options, given, store, world, policies, end_s)
        return simulation.run(stop, progress)


def _policy_path(name: str) -> Path:
    return builtin_folder(name) / "policy.yaml" if name.startswith(BUILTIN) else Path(name)


def _pools(policy: Policy, given: TraceInput, options: Options) -> list[PoolSetup]:
    """Each pool with the nodes that the demand at the beginning needs: the cluster was running before."""
    demand: dict[str, int] = {}
    for pool, job in given.jobs:
        if job.submit_s <= given.begin_s:
            demand[pool] = demand.get(pool, 0) + job.milli_gpus
    for service in given.services:
        replicas = next((n for at, n in service.steps if at >= given.begin_s), 0)
        demand[service.pool] = demand.get(service.pool, 0) + replicas * service.milli_gpus_per_replica
    return [
        PoolSetup(
            Provider(pool.name, Boot(options.lead_s, options.lead_p90_s), options.seed),
            pool.gpus_per_node,
            nodes=min(
                pool.limits.max_gpus // pool.gpus_per_node,
                -(-max(demand.get(pool.name, 0), pool.limits.min_gpus * MILLI) // (pool.gpus_per_node * MILLI)),
            ),
            micro_usd_per_node_hour=pool.gpus_per_node * MICRO_USD_PER_GPU_HOUR,
            max_nodes=pool.limits.max_gpus // pool.gpus_per_node,
        )
        for pool in policy.pools
    ]


class _Simulation:
    def __init__(
        self, options: Options, given: TraceInput, store: Store, world: SimulatedWorld, policies: PolicyFile, end_s: int
    ) -> None:
        self.options, self.given, self.store, self.world, self.end_s = options, given, store, world, end_s
        self.key = f"simulation/{world.cluster}"
        self.count = Count()
        self.told: tuple[str, ...] = tuple(store.kv_get(problems_key(world.cluster), []))
        self._url = shown(parse_url(options.store))
        policy = policies.current()
        demand = DemandRecorder(policy.timezone)
        store.load_demand(world.cluster, given.history)
        demand.load(store.demand_history(world.cluster))
        feed = RecordedForecasts(demand, world.lead_s)
        book = StoreBook(store, world.cluster)
        self.loop = Loop(
            world,
            policies,
            forecaster=feed,
            advisor=LearnedAdvice(world.cluster, demand, policies, world.lead_s, feed.walked, book),
            recorder=StoreRecorder(store, lambda: int(time.time())),
            demand=demand,
        )
        self.continued = self._resume()

    def _resume(self) -> bool:
        """Take up the state that the store holds of this simulation; another simulation's is refused."""
        kept = self.store.kv_get(self.key)
        if kept is None:
            if self.store.resume(self.world.cluster) is not None:
                raise InputError.one(
                    "--store", shown(parse_url(self.options.store)), "holds this cluster from elsewhere: name another"
                )
            return False
        differs = [name for name, value in self._identity().items() if kept["identity"].get(name) != value]
        if differs:
            was = ", ".join(f"{name} {kept['identity'].get(name)}" for name in differs)
            allowed = f"holds a simulation with {was}: give the same options, or name another store"
            raise InputError.one("--store", self._url, allowed)
        self.world.load(kept["world"])
        last = self.store.resume(self.world.cluster)
        if last is not None:
            self.loop.resume(last.snapshot, last.decision)
        return True

    def _identity(self) -> dict[str, Any]:
        names = ("seed", "lead_s", "lead_p90_s", "tick_s")
        options = asdict(self.options)
        return {"trace": self.given.name, "begin_s": self.given.begin_s, **{name: options[name] for name in names}}

    def run(self, stop: Event, progress: Progress) -> dict[str, Any]:
        begun_at = self.world.now_s
        if self.continued and not self._advance():
            return self._summary(begun_at)
        pace = _Pace(self.options.speed, self.world.now_s, stop)

        def on_tick(tick: Tick) -> None:
            self.count.add(tick)
            self._tell(tick.problems)
            self._keep()
            span = max(1, self.end_s - self.given.begin_s)
            progress((tick.at_s - self.given.begin_s) / span, _text(tick.at_s))

        def step() -> bool:
            return not stop.is_set() and pace.wait(self.world.now_s + self.options.tick_s) and self._advance()

        self.loop.run(step, on_tick)
        return self._summary(begun_at)

    def _tell(self, problems: tuple[str, ...]) -> None:
        """Say what is wrong when it begins and when it is over: on standard error, and to the dashboard."""
        if problems == self.told:
            return
        for problem in problems:
            log.warning("problem", problem=problem)
        if not problems:
            log.info("problems_over")
        self.store.kv_set(problems_key(self.world.cluster), list(problems))
        self.told = problems

    def _advance(self) -> bool:
        if self.world.now_s + self.options.tick_s > self.end_s:
            return False
        self.world.advance(self.world.now_s + self.options.tick_s)
        return True

    def _keep(self) -> None:
        """The state after a tick was applied: a crash before this line repeats the tick's time, not its asking."""
        self.store.kv_set(self.key, {"identity": self._identity(), "world": self.world.dump()})
        if self.world.now_s % DAY_S < self.options.tick_s:
            self.store.prune(self.world.now_s)

    def _summary(self, begun_at: int) -> dict[str, Any]:
        self.world.check()
        accounts = [cluster.account for cluster in self.world.pools.values()]

        def hours(name: str) -> float:
            return float(sum(getattr(account, name) for account in accounts)) / (MILLI * HOUR_S)

        return {
            "cluster": self.world.cluster,
            "from": _text(begun_at),
            "to": _text(self.world.now_s),
            "ended": self.world.now_s + self.options.tick_s > self.end_s,
            "continued": self.continued,
            "ticks": self.count.ticks,
            "busy_gpu_h": hours("busy"),
            "idle_gpu_h": hours("up") - hours("busy"),
            "boot_gpu_h": hours("booting"),
            "wait_gpu_h": hours("waiting"),
            "lost_gpu_h": hours("lost"),
            "evictions": sum(account.evictions for account in accounts),
            "node_adds": sum(account.node_adds for account in accounts),
            "jobs_done": sum(account.done for account in accounts),
            "problems": self.count.problems,
            "last_problem": self.count.last_problem,
        }


class _Pace:
    """Simulated time against the clock on the wall; a tick that took too long is not made up for by a burst."""

    def __init__(self, speed: float, now_s: int, stop: Event) -> None:
        self._speed, self._stop = speed, stop
        self._at_s, self._wall = now_s, time.monotonic()

    def wait(self, to_s: int) -> bool:
        """Wait until ``to_s`` is due; False when it was stopped."""
        if self._speed <= 0:
            return not self._stop.is_set()
        due = self._wall + (to_s - self._at_s) / self._speed
        now = time.monotonic()
        self._at_s, self._wall = to_s, max(due, now)
        return not self._stop.wait(max(0.0, due - now))


def _text(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%a %Y-%m-%d %H:%M")
