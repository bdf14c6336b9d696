"""The same days under another policy: the production loop on a simulated cluster, once under each.

Nothing here decides anything: ``controller.loop`` observes, forecasts, decides and applies as on a cluster. What is
measured is read off the decisions at each tick (by team) and off the simulated cluster's own books (totals).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import orjson
import pandas as pd

from controller.core.actions import Decision, Evict, action_id
from controller.core.errors import InputError
from controller.core.policy import Mode, Policy
from controller.core.quantities import HOUR_S, MILLI, ceil_div
from controller.learning.fleet import CHURN_GPU_H
from controller.loop import DemandRecorder, FixedPolicy, Loop, Tick
from controller.loop.demand import DemandColumn
from controller.store import DemandSeries
from controller.worlds.base import Status
from controller.worlds.simulated import Boot, PoolSetup, Provider, SimulatedWorld
from controller.worlds.simulated.trace import TraceInput, load_input
from dashboard.notebook.durations import seconds_of
from dashboard.notebook.history import History
from dashboard.notebook.policies import Draft
from dashboard.notebook.said import Note
from forecaster.history import origin_of, read_meta

TICK_S = 300
DEFAULT_WEIGHT = 9
Tell = Callable[[str], None]


@dataclass(slots=True)
class Run:
    """One replay. ``by_team`` and ``by_pool`` have one row a team and tick, and a pool and tick; amounts in GPUs."""

    label: str
    by_team: pd.DataFrame
    by_pool: pd.DataFrame
    totals: dict[str, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same days under two policies."""

    before: Run
    after: Run
    zone: str
    price: float

    def table(self) -> pd.DataFrame:
        """The whole cluster, before and after: the account's rows, and what changed."""
        frame = pd.DataFrame({"before": self.before.totals, "after": self.after.totals})
        frame["change"] = frame["after"] - frame["before"]
        return frame.round(1)

    def teams(self) -> pd.DataFrame:
        """By team, before and after: GPU-hours waited, longest wait, minutes below its floor, GPUs evicted."""
        sides = {"before": _by_team(self.before), "after": _by_team(self.after)}
        frame = pd.concat(sides, axis=1).swaplevel(axis=1)
        order = [(column, side) for column in sides["before"].columns for side in sides]
        return frame[order].round(1)

    def verdict(self) -> Note:
        """What changed, in a sentence, losers named like winners."""
        waited = _by_team(self.after)["waited GPU-h"] - _by_team(self.before)["waited GPU-h"]
        better = [f"{name} ({-value:,.0f} h less)" for name, value in waited.sort_values().items() if value < -0.5]
        worse = [f"{name} ({value:,.0f} h more)" for name, value in waited.sort_values().items() if value > 0.5]
        cost = self.after.totals["cost"] - self.before.totals["cost"]
        money = f" (about {abs(cost) * self.price:,.0f} at {self.price:g} a GPU-hour)" if self.price else ""
        word = "cheaper" if cost < 0 else "dearer"
        below = self.after.totals["minutes below floor"] - self.before.totals["minutes below floor"]
        return Note(
            f"The other policy is **{abs(cost):,.0f} GPU-hours {word}**{money}."
            f" Waits less: {', '.join(better) or 'nobody'}. Waits more: {', '.join(worse) or 'nobody'}."
            f" Minutes below a floor: {below:+,.0f}."
        )


def what_if(
    history: History,
    before: Draft,
    after: Draft,
    *,
    lead: str = "10m",
    days: float = 2,
    price: float = 0,
    tell: Tell = lambda _: None,
) -> Comparison:
    """Replay the last ``days`` of a history under two policies; what was before them is known to both.

    cost (GPU-hours) = idle + booting + lost to evictions + w · waiting + 2 for each node added, the benchmark's account
    with what evictions threw away.

    Both are applied (``mode: enforce``) whatever their mode says. ``lead``: from asking for a node to a pod on it;
    ``price`` of a GPU-hour. Both are judged by the wait weight of ``before``, so that the yardstick stays the same.
    """
    lead_s = seconds_of(lead, "LEAD", least=1)
    if not 0 < days <= history.days:
        raise InputError.one("DAYS", days, f"more than 0 and at most the {history.days:.1f} days there are")
    weights = {pool.name: pool.wait_weight for pool in before.policy.pools}
    runs = []
    for label, draft in (("before", before), ("after", after)):
        tell(f"replaying {days:g} days: {label}")
        policy = replace(draft.policy, mode=Mode.ENFORCE)
        runs.append(_run(history.name, policy, _input(history, policy, days), lead_s).run(label, weights))
    return Comparison(runs[0], runs[1], history.zone, price)


def _run(name: str, policy: Policy, given: TraceInput, lead_s: int) -> _Books:
    from controller.loop.feeds import RecordedForecasts
    from controller.loop.learned import LearnedAdvice
    from forecaster.service import CHEAP

    world = SimulatedWorld(name, given.begin_s, _pools(policy, given, lead_s), given.jobs, given.services)
    demand = DemandRecorder(policy.timezone)
    demand.load(_columns(given))
    policies = FixedPolicy(policy)
    forecasts = RecordedForecasts(demand, world.lead_s, experts=CHEAP)
    advisor = LearnedAdvice(name, demand, policies, world.lead_s, forecasts.walked)
    loop = Loop(world, policies, forecaster=forecasts, advisor=advisor, demand=demand)
    books = _Books(world)

    def step() -> bool:
        if world.now_s + TICK_S > given.end_s:
            return False
        world.advance(world.now_s + TICK_S)
        return True

    loop.run(step, books.add)
    world.check()
    return books


def _input(history: History, policy: Policy, days: float) -> TraceInput:
    """What happens in the replayed days: jobs where the source has them, else demand as replicas that come and go."""
    begin = history.panel.time(history.panel.rows - round(days * history.panel.rows_a_day))
    if history.folder is not None:
        after = begin - origin_of(read_meta(history.folder))
        return load_input(history.folder, policy, begin_after_s=after)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        t0 = datetime.fromtimestamp(history.panel.origin_s, UTC).isoformat()
        (path / "trace.json").write_bytes(orjson.dumps({"t0": t0}))
        _long(history).to_parquet(path / "demand_5min.parquet")
        return load_input(path, policy, begin_after_s=begin - history.panel.origin_s)


def _long(history: History) -> pd.DataFrame:
    seconds = np.arange(history.panel.rows) * history.panel.step_s
    frames = [
        pd.DataFrame(
            {"t_s": seconds, "team": name, "wanted_mean": history.team(name), "wanted_max": history.team(name)}
        )
        for name in history.teams
    ]
    return pd.concat(frames, ignore_index=True)


def _columns(given: TraceInput) -> list[DemandColumn]:
    """Demand before the replayed days, as the loop keeps it."""
    found: dict[tuple[str, str], tuple[list[int], list[int], list[int]]] = {}
    for at, pool, team, mean, peak in given.history:
        for column, value in zip(found.setdefault((pool, team), ([], [], [])), (at, mean, peak), strict=True):
            column.append(value)
    return [DemandSeries(pool, team, *columns) for (pool, team), columns in found.items()]


def _pools(policy: Policy, given: TraceInput, lead_s: int) -> list[PoolSetup]:
    """Each pool with the nodes that its demand at the beginning needs: the cluster was running before."""
    demand = dict.fromkeys((pool.name for pool in policy.pools), 0)
    for pool, job in given.jobs:
        if job.submit_s <= given.begin_s:
            demand[pool] += job.milli_gpus
    for service in given.services:
        replicas = next((count for at, count in service.steps if at >= given.begin_s), 0)
        demand[service.pool] += replicas * service.milli_gpus_per_replica
    return [
        PoolSetup(
            Provider(pool.name, Boot(lead_s)),
            pool.gpus_per_node,
            nodes=min(
                pool.limits.max_gpus // pool.gpus_per_node,
                ceil_div(max(demand[pool.name], pool.limits.min_gpus * MILLI), pool.gpus_per_node * MILLI),
            ),
            max_nodes=pool.limits.max_gpus // pool.gpus_per_node,
        )
        for pool in policy.pools
    ]


@dataclass(slots=True)
class _Books:
    """What each tick saw and did."""

    world: SimulatedWorld
    teams: list[tuple[object, ...]] = field(default_factory=list)
    pools: list[tuple[object, ...]] = field(default_factory=list)

    def add(self, tick: Tick) -> None:
        """Take in one tick."""
        if tick.decision is None:
            return
        evicted = _evicted(tick)
        for one in tick.decision.teams:
            below = self._below_floor(tick.decision, one.pool, one.team, one.floor, one.held)
            amounts = (one.demand, one.held, one.pending, one.share, one.floor, one.lent, one.borrowed)
            gone = evicted.get((one.pool, one.team), 0)
            row = (tick.at_s, one.pool, one.team, *(value / MILLI for value in (*amounts, gone)))
            self.teams.append((*row, one.longest_wait_s / 60, below))
        for pool in tick.decision.pools:
            seen = (pool.supply_milli_gpus, pool.held_milli_gpus, pool.demand_milli_gpus)
            self.pools.append((tick.at_s, pool.pool, *(value / MILLI for value in seen), pool.target_nodes))

    def _below_floor(self, decision: Decision, pool: str, team: str, floor: int, held: int) -> float:
        """Minutes until the next tick in which the team lacks what its floor promises: waiting work that would fit."""
        room = floor - held
        if room <= 0:
            return 0.0
        gangs = self.world.pools[pool].gangs.values()
        fits = any(not g.running and g.job.owner == team and g.job.milli_gpus <= room for g in gangs)
        return TICK_S / 60 if fits else 0.0

    def run(self, label: str, weights: dict[str, int]) -> Run:
        """The replay as tables and totals (GPU-hours, counts, minutes); waiting costs ``weights`` by pool."""
        accounts = {name: cluster.account for name, cluster in self.world.pools.items()}
        hours = {
            part: {name: getattr(account, part) / (MILLI * HOUR_S) for name, account in accounts.items()}
            for part in ("up", "busy", "booting", "waiting", "lost")
        }
        total = {part: sum(by_pool.values()) for part, by_pool in hours.items()}
        adds = sum(account.node_adds for account in accounts.values())
        idle = total["up"] - total["busy"]
        waited = sum(weights.get(name, DEFAULT_WEIGHT) * value for name, value in hours["waiting"].items())
        by_team = pd.DataFrame(self.teams, columns=TEAM_COLUMNS)
        totals = {
            "waiting GPU-h": total["waiting"],
            "idle GPU-h": idle,
            "booting GPU-h": total["booting"],
            "nodes added": float(adds),
            "evictions": float(sum(account.evictions for account in accounts.values())),
            "lost GPU-h": total["lost"],
            "minutes below floor": float(by_team["below_floor_min"].sum()),
            "cost": idle + total["booting"] + total["lost"] + waited + CHURN_GPU_H * adds,
        }
        return Run(label, by_team, pd.DataFrame(self.pools, columns=POOL_COLUMNS), totals)


TEAM_COLUMNS = [
    *("at_s", "pool", "team", "demand", "held", "waiting", "share", "floor", "lent", "borrowed", "evicted"),
    *("longest_wait_min", "below_floor_min"),
]
POOL_COLUMNS = ["at_s", "pool", "ready", "held", "demand", "target_nodes"]


def _evicted(tick: Tick) -> dict[tuple[str, str], int]:
    """Milli-GPUs by pool and team that this tick took from running work."""
    done = {one.action_id for one in tick.outcomes if one.status is Status.APPLIED}
    found: dict[tuple[str, str], int] = {}
    for action in tick.decision.actions if tick.decision else ():
        if isinstance(action, Evict) and action_id(action) in done:
            key = (action.pool, action.team)
            found[key] = found.get(key, 0) + action.milli_gpus
    return found


def _by_team(run: Run) -> pd.DataFrame:
    """Sums by team; a tick's state stands for the five minutes after it."""
    hours = TICK_S / HOUR_S
    grouped = run.by_team.groupby("team")
    return pd.DataFrame(
        {
            "wanted GPU-h": grouped["demand"].sum() * hours,
            "waited GPU-h": grouped["waiting"].sum() * hours,
            "longest wait, min": grouped["longest_wait_min"].max(),
            "min below floor": grouped["below_floor_min"].sum(),
            "GPUs evicted": grouped["evicted"].sum(),
            "lent GPU-h": grouped["lent"].sum() * hours,
            "borrowed GPU-h": grouped["borrowed"].sum() * hours,
        }
    )
