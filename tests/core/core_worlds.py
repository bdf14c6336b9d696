"""Random small clusters for property tests, and a world that carries out a decision at once."""

from __future__ import annotations

import itertools
from dataclasses import replace

from core_builders import NOW_S
from hypothesis import strategies as st

from controller.core.actions import (
    Decision,
    Evict,
    GiveNotice,
    RemoveNode,
    Repartition,
    SetCapacity,
    SetShare,
    WithdrawNotice,
)
from controller.core.forecast import TOTAL, Forecasts, SeriesForecast, WindowForecast
from controller.core.policy import Bounds, Lending, Mode, Policy, Pool, PoolLimits, Reclaimable, Team
from controller.core.quantities import Amount
from controller.core.snapshot import (
    Node,
    PastEviction,
    PoolObservation,
    ShareInForce,
    Snapshot,
    Workload,
    WorkloadState,
)

POOLS = ("gpu", "other")
TEAMS = ("a", "b", "c")


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Policies of two pools and three teams, with floors that fit."""
    pools = []
    for name in POOLS:
        most = draw(st.integers(1, 6)) * 4
        limits = PoolLimits(
            min_gpus=draw(st.integers(0, most)),
            max_gpus=most,
            max_micro_usd_per_hour=draw(st.none() | st.integers(1, 40).map(lambda usd: usd * 1_000_000)),
            max_step_nodes=draw(st.none() | st.integers(1, 3)),
        )
        pools.append(Pool(name, (("pool", name),), limits, gpus_per_node=draw(st.sampled_from([1, 4]))))
    return Policy(
        name="test",
        mode=Mode.ENFORCE,
        timezone="UTC",
        pools=tuple(pools),
        teams=tuple(_team(draw, name) for name in TEAMS),
        lending=Lending(
            enabled=draw(st.booleans()),
            notice_s=draw(st.sampled_from([0, 600])),
            reclaim=draw(st.sampled_from([(), (Reclaimable.PREEMPTIBLE,), tuple(Reclaimable)])),
        ),
    )


def _team(draw: st.DrawFn, name: str) -> Team:
    floor = draw(st.integers(0, 33))
    ceiling = draw(st.integers(floor, 100))
    return Team(
        name,
        (name,),
        priority=draw(st.integers(0, 2)),
        weight=draw(st.integers(1, 3)),
        bounds=Bounds(Amount(ppm=floor * 10_000), Amount(ppm=ceiling * 10_000)),
        preemptible=draw(st.booleans()),
    )


@st.composite
def snapshots(draw: st.DrawFn, policy: Policy) -> Snapshot:
    """Snapshots in which running gangs stand on nodes that hold them."""
    nodes: list[Node] = []
    workloads: list[Workload] = []
    for pool in policy.pools:
        size = pool.gpus_per_node
        here = [_node(draw, pool.name, i, size) for i in range(draw(st.integers(0, 5)))]
        nodes += here
        room = {node.name: node.allocatable_milli_gpus for node in here}
        workloads += [_work(draw, pool.name, i, size, room) for i in range(draw(st.integers(0, 7)))]
    busy = {name for work in workloads for name in work.nodes}
    nodes = [replace(node, idle_since_s=None if node.name in busy else node.idle_since_s) for node in nodes]
    shares = [
        ShareInForce(pool, team, draw(st.integers(0, 20)) * 1000)
        for pool in POOLS
        for team in TEAMS
        if draw(st.booleans())
    ]
    pools = tuple(
        PoolObservation(
            pool.name,
            pool.gpus_per_node,
            lead_s=600,
            obtainable_gpus=draw(st.none() | st.integers(0, 24)),
            target_nodes=draw(st.none() | st.integers(0, 6)),
            micro_usd_per_node_hour=draw(st.integers(0, 12)) * 1_000_000,
        )
        for pool in policy.pools
    )
    return Snapshot("c1", NOW_S, pools, tuple(nodes), tuple(workloads), tuple(shares))


def _node(draw: st.DrawFn, pool: str, number: int, size: int) -> Node:
    state = draw(st.sampled_from(["ready", "ready", "ready", "requested", "booting", "missing", "cordoned"]))
    age = draw(st.integers(0, 3600))
    at = NOW_S - age
    serves = state in ("ready", "cordoned")
    joined = None if state == "requested" else at
    if state == "missing":
        joined = NOW_S - 1000 - age
    elif state == "booting":
        joined = NOW_S - age % 900
    return Node(
        name=f"{pool}-{number}",
        pool=pool,
        gpus=size,
        allocatable_milli_gpus=size * 1000 if serves else 0,
        requested_at_s=min(at, joined if joined is not None else at),
        joined_at_s=joined,
        ready_at_s=at if serves else None,
        cordoned=state == "cordoned",
        idle_since_s=at if serves else None,
    )


def _work(draw: st.DrawFn, pool: str, number: int, size: int, room: dict[str, int]) -> Workload:
    amount = draw(st.sampled_from([500, 1000, 2000, size * 1000]))
    amount = min(amount, size * 1000)
    pods = draw(st.integers(1, 3))
    places: list[str] = []
    left = dict(room)
    for _ in range(pods):
        name = next((name for name, free in sorted(left.items()) if free >= amount), None)
        if name is not None:
            places.append(name)
            left[name] -= amount
    runs = len(places) == pods and draw(st.integers(0, 3)) > 0
    if runs:
        room.update(left)
    since = NOW_S - draw(st.integers(0, 7200))
    return Workload(
        name=f"{pool}-job-{number}",
        namespace=draw(st.sampled_from([*TEAMS, "stray"])),
        pool=pool,
        pods=pods,
        milli_gpus_per_pod=amount,
        state=WorkloadState.RUNNING if runs else WorkloadState.PENDING,
        submitted_at_s=since,
        started_at_s=since if runs else None,
        preemptible=draw(st.booleans()),
        nodes=tuple(places) if runs else (),
        disruptions_allowed=draw(st.sampled_from([None, None, 0, 1])),
        evict_at_s=draw(st.sampled_from([None, None, NOW_S - 5, NOW_S + 300])) if runs else None,
    )


@st.composite
def forecasts(draw: st.DrawFn) -> Forecasts:
    """Forecasts of some totals and teams."""
    series = []
    for pool in POOLS:
        for team in (TOTAL, *TEAMS):
            if draw(st.booleans()):
                low = draw(st.integers(0, 30)) * 1000
                high = low + draw(st.integers(0, 30)) * 1000
                window = WindowForecast(0, 7200, (500, 900), (low, high))
                series.append(SeriesForecast(pool, team, NOW_S - draw(st.sampled_from([0, 600, 1200])), (window,)))
    return Forecasts(tuple(series))


def apply(snapshot: Snapshot, decision: Decision) -> Snapshot:
    """The snapshot after every action took effect at once: quotas, notices, evictions, nodes asked for and given back.

    An evicted gang waits again; its past eviction is on record. Nothing else happens and no time passes.
    """
    nodes = {node.name: node for node in snapshot.nodes}
    works = {work.name: work for work in snapshot.workloads}
    shares = {(share.pool, share.team): share for share in snapshot.shares}
    pools = {pool.name: pool for pool in snapshot.pools}
    past = list(snapshot.evictions)
    for action in decision.actions:
        match action:
            case SetShare(pool, team, amount, preemptible):
                shares[pool, team] = ShareInForce(pool, team, amount, preemptible, decision.at_s)
            case SetCapacity(pool, count):
                pools[pool] = replace(pools[pool], target_nodes=count, target_changed_at_s=decision.at_s)
                _launch(nodes, pools[pool], count, decision.at_s)
            case RemoveNode(_, node):
                del nodes[node]
            case GiveNotice(workload=name, for_team=team, evict_at_s=at):
                works[name] = replace(works[name], evict_at_s=at, evict_for=team)
            case WithdrawNotice(workload=name):
                works[name] = replace(works[name], evict_at_s=None, evict_for="")
            case Evict(pool, team, name, for_team, amount):
                works[name] = replace(
                    works[name],
                    state=WorkloadState.PENDING,
                    started_at_s=None,
                    nodes=(),
                    evict_at_s=None,
                    evict_for="",
                    submitted_at_s=decision.at_s,
                )
                past.append(PastEviction(name, pool, team, for_team, amount, decision.at_s))
            case Repartition():
                pass
    return replace(
        snapshot,
        pools=tuple(pools.values()),
        nodes=tuple(nodes.values()),
        workloads=tuple(works.values()),
        shares=tuple(shares.values()),
        evictions=tuple(past),
    )


def _launch(nodes: dict[str, Node], pool: PoolObservation, count: int, now_s: int) -> None:
    """Ask for as many nodes as are missing; those whose GPUs never came are not counted on."""

    def counted(node: Node) -> bool:
        late = node.joined_at_s is not None and now_s - node.joined_at_s >= 900
        serves = node.allocatable_milli_gpus > 0
        return not node.cordoned and node.interrupted_at_s is None and (serves or not late)

    have = sum(1 for node in nodes.values() if node.pool == pool.name and counted(node))
    free = (name for name in (f"{pool.name}-new-{number}" for number in itertools.count()) if name not in nodes)
    for name in list(itertools.islice(free, max(0, count - have))):
        nodes[name] = Node(name, pool.name, pool.gpus_per_node, 0, now_s)
