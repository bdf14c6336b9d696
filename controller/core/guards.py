"""Stage 9: which rules are broken now. A violation says who, since when, how much, and what is done about it.

What was not measured is unknown, and nothing is held against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from controller.core.actions import Evict, Violation
from controller.core.demand import Demand
from controller.core.lending import Division
from controller.core.nodes import SERVING, Phase, Supply
from controller.core.policy import CpuOnlyPods, GpuFraction, GuardAction, Guards, IdleGpus, Policy, Starvation
from controller.core.quantities import PPM
from controller.core.reasons import ReasonCode, reason
from controller.core.snapshot import Node, Snapshot, Workload

COVERED_PPM = 950_000
"""Below this share of GPUs held by teams the policy knows, figures by team mislead."""


def check(
    snapshot: Snapshot,
    policy: Policy,
    supplies: dict[str, Supply],
    divisions: Sequence[Division],
    demand: Demand,
    now_s: int,
) -> tuple[Violation, ...]:
    """All violations of a snapshot, sorted by rule, pool and team."""
    found = [
        *_cpu_only(snapshot, policy.guards, supplies, demand, now_s),
        *_idle(snapshot, policy.guards.idle_gpus, demand, now_s),
        *(v for rule in policy.guards.gpu_fraction for v in _fraction(snapshot, rule, demand, now_s)),
        *_gpu_missing(supplies.values(), now_s),
        *_coverage(divisions, demand, now_s),
    ]
    for division in divisions:
        found += _below_floor(division, demand, policy.starvation, now_s)
    return tuple(sorted(found, key=lambda v: (v.rule, v.pool, v.team)))


def evictions(violations: Iterable[Violation], snapshot: Snapshot, demand: Demand) -> tuple[Evict, ...]:
    """The evictions that violated guards ask for; disruption budgets and refusals are respected."""
    by_name = {work.name: work for work in snapshot.workloads}
    out = []
    for violation in violations:
        if violation.action is not GuardAction.EVICT:
            continue
        for name in violation.subjects:
            work = by_name.get(name)
            if work and work.running and work.disruptions_allowed != 0 and work.evict_refused_since_s is None:
                out.append(Evict(violation.pool, demand.owner(work), name, "", work.milli_gpus, violation.reason))
    return tuple(out)


def _cpu_only(
    snapshot: Snapshot, guards: Guards, supplies: dict[str, Supply], demand: Demand, now_s: int
) -> Iterator[Violation]:
    rule = guards.cpu_only_pods
    if rule is None:
        return
    broken: dict[tuple[str, str], list[tuple[Workload, int]]] = {}
    for pool, work, share in _squatters(snapshot, rule, supplies, now_s):
        broken.setdefault((pool, demand.owner(work)), []).append((work, share))
    for (pool, team), found in sorted(broken.items(), key=lambda item: item[0]):
        names = tuple(sorted({work.name for work, _ in found}))
        most = max(share for _, share in found)
        since = min(work.started_at_s or now_s for work, _ in found)
        why = reason(
            ReasonCode.CPU_SQUATTER, pool=pool, team=team, pods=len(names), held_ppm=most, allowed_ppm=rule.allow_ppm
        )
        yield Violation(
            "cpu_squatter", pool, team, names, since, most, rule.allow_ppm, "ppm", "warning", rule.action, why
        )


def _squatters(
    snapshot: Snapshot, rule: CpuOnlyPods, supplies: dict[str, Supply], now_s: int
) -> Iterator[tuple[str, Workload, int]]:
    """Work without a GPU on nodes where such work together holds too much: pool, work, share held of the node."""
    by_node: dict[str, list[Workload]] = {}
    for work in snapshot.workloads:
        settled = now_s - (work.started_at_s or now_s) >= rule.grace_s
        if work.milli_gpus_per_pod == 0 and work.running and settled and not _exempt(work, rule):
            for name in set(work.nodes):
                by_node.setdefault(name, []).append(work)
    for pool, supply in supplies.items():
        for node, at in supply.nodes:
            here = by_node.get(node.name, [])
            share = _share_of(node, here) if at in SERVING and here else 0
            if share > rule.allow_ppm:
                yield from ((pool, work, share) for work in here)


def _exempt(work: Workload, rule: CpuOnlyPods) -> bool:
    return work.daemon or any(fnmatchcase(work.namespace, pattern) for pattern in rule.exempt_namespaces)


def _share_of(node: Node, works: Sequence[Workload]) -> int:
    """The larger of the CPU and the memory share of a node that the works hold, in ppm."""
    cpu = sum(w.cpu_milli_per_pod * w.nodes.count(node.name) for w in works)
    memory = sum(w.memory_mib_per_pod * w.nodes.count(node.name) for w in works)
    shares = [
        cpu * PPM // node.cpu_milli if node.cpu_milli else 0,
        memory * PPM // node.memory_mib if node.memory_mib else 0,
    ]
    return max(shares)


def _idle(snapshot: Snapshot, rule: IdleGpus | None, demand: Demand, now_s: int) -> Iterator[Violation]:
    if rule is None:
        return
    groups: dict[tuple[str, str], list[Workload]] = {}
    for work in snapshot.workloads:
        known = work.gpu_busy_ppm is not None and work.idle_since_s is not None
        if work.running and work.milli_gpus_per_pod and known and _is_idle(work, rule, now_s):
            groups.setdefault((work.pool, demand.owner(work)), []).append(work)
    for (pool, team), works in sorted(groups.items()):
        busiest = max(w.gpu_busy_ppm or 0 for w in works)
        why = reason(
            ReasonCode.IDLE_GPUS,
            pool=pool,
            team=team,
            gangs=len(works),
            held_milli_gpus=sum(w.milli_gpus for w in works),
            busy_ppm=busiest,
            allowed_ppm=rule.below_ppm,
        )
        since = min(w.idle_since_s or now_s for w in works)
        names = tuple(sorted(w.name for w in works))
        yield Violation(
            "idle_gpus", pool, team, names, since, busiest, rule.below_ppm, "ppm", "warning", rule.action, why
        )


def _is_idle(work: Workload, rule: IdleGpus, now_s: int) -> bool:
    idle_for = now_s - (work.idle_since_s if work.idle_since_s is not None else now_s)
    return (work.gpu_busy_ppm or 0) < rule.below_ppm and idle_for >= rule.for_s


def _fraction(snapshot: Snapshot, rule: GpuFraction, demand: Demand, now_s: int) -> Iterator[Violation]:
    over: dict[str, list[Workload]] = {}
    for work in snapshot.workloads:
        measured = work.running and work.shared_gpu and work.gpu_busy_ppm is not None
        if measured and demand.owner(work) == rule.team and (work.gpu_busy_ppm or 0) > rule.max_ppm:
            over.setdefault(work.pool, []).append(work)
    for pool, works in sorted(over.items()):
        most = max(w.gpu_busy_ppm or 0 for w in works)
        why = reason(
            ReasonCode.GPU_FRACTION_EXCEEDED, pool=pool, team=rule.team, busy_ppm=most, allowed_ppm=rule.max_ppm
        )
        names = tuple(sorted(w.name for w in works))
        since = min(w.started_at_s or now_s for w in works)
        yield Violation(
            "gpu_fraction", pool, rule.team, names, since, most, rule.max_ppm, "ppm", "warning", rule.action, why
        )


def _gpu_missing(supplies: Iterable[Supply], now_s: int) -> Iterator[Violation]:
    for supply in supplies:
        nodes = [node for node, at in supply.nodes if at is Phase.GPU_MISSING]
        if nodes:
            why = reason(ReasonCode.NODE_GPU_MISSING, pool=supply.pool, nodes=len(nodes))
            since = min(node.joined_at_s or now_s for node in nodes)
            names = tuple(node.name for node in nodes)
            yield Violation(
                "gpu_missing", supply.pool, "", names, since, len(nodes), 0, "nodes", "critical", GuardAction.ALERT, why
            )


def _coverage(divisions: Sequence[Division], demand: Demand, now_s: int) -> Iterator[Violation]:
    for division in divisions:
        stranger = demand.unowned.get(division.pool)
        owned = sum(demand.of(division.pool, share.team).held for share in division.shares)
        if stranger is None or not stranger.held:
            continue
        covered = owned * PPM // (owned + stranger.held)
        if covered < COVERED_PPM:
            why = reason(ReasonCode.OWNER_COVERAGE_LOW, pool=division.pool, covered_ppm=covered, wanted_ppm=COVERED_PPM)
            names = tuple(sorted(w.name for w in stranger.running))
            since = min(w.started_at_s or now_s for w in stranger.running)
            yield Violation(
                "owner_coverage",
                division.pool,
                "",
                names,
                since,
                covered,
                COVERED_PPM,
                "ppm",
                "warning",
                GuardAction.ALERT,
                why,
            )


def _below_floor(division: Division, demand: Demand, starvation: Starvation, now_s: int) -> Iterator[Violation]:
    for share in division.shares:
        d = demand.of(division.pool, share.team)
        due = min(share.floor, d.whole)
        names = tuple(w.name for w in d.waiting)
        if d.held < due and d.longest_wait_s:
            why = reason(
                ReasonCode.BELOW_FLOOR,
                pool=share.pool,
                team=share.team,
                held_milli_gpus=d.held,
                floor_milli_gpus=share.floor,
            )
            since = now_s - d.longest_wait_s
            yield Violation(
                "below_floor",
                share.pool,
                share.team,
                names,
                since,
                d.held,
                due,
                "milli_gpus",
                "critical",
                GuardAction.ALERT,
                why,
            )
        waited = d.wait_within_s(share.entitlement, now_s)
        if waited > starvation.max_wait_s:
            why = reason(
                ReasonCode.STARVED, pool=share.pool, team=share.team, waited_s=waited, allowed_s=starvation.max_wait_s
            )
            yield Violation(
                "starved",
                share.pool,
                share.team,
                names,
                now_s - waited,
                waited,
                starvation.max_wait_s,
                "s",
                "critical",
                GuardAction.ALERT,
                why,
            )
