"""Laws of dividing a pool, on random small clusters: stages 1 to 4 alone, without the rest of a decision."""

from __future__ import annotations

from dataclasses import replace

from core_builders import NOW_S
from core_worlds import forecasts, policies, snapshots
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.core.demand import Demand, measure
from controller.core.forecast import Forecasts, SeriesForecast, WindowForecast
from controller.core.lending import Division, divide
from controller.core.policy import Bounds, Lending, Policy
from controller.core.quantities import Amount
from controller.core.schedule import limits_in_force
from controller.core.snapshot import PastEviction, Snapshot, Workload, WorkloadState

LAWS = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def pools_in_gpus(draw: st.DrawFn) -> tuple[Policy, Snapshot, Forecasts, int]:
    """A policy whose bounds are whole GPUs, work, forecasts, and how many GPUs of its first pool can be had."""
    policy = draw(policies())
    most = policy.pools[0].limits.max_gpus
    floors = [draw(st.integers(0, most // len(policy.teams))) for _ in policy.teams]
    bounds = [Bounds(gpus(low), gpus(draw(st.integers(low, most)))) for low in floors]
    teams = tuple(replace(team, bounds=b) for team, b in zip(policy.teams, bounds, strict=True))
    policy = replace(policy, teams=teams)
    snapshot = draw(snapshots(policy))
    queued = tuple(
        pending(policy, team.name, draw(st.integers(1, most)), preemptible=draw(st.booleans()))
        for team in policy.teams
        if draw(st.booleans())
    )
    pool = policy.pools[0].name
    freed = tuple(
        PastEviction("gone", pool, "a", draw(st.sampled_from("abc")), draw(st.integers(1, 12)) * 500, NOW_S - ago)
        for ago in draw(st.lists(st.integers(0, 400), max_size=2))
    )
    snapshot = replace(snapshot, workloads=(*snapshot.workloads, *queued), evictions=freed)
    return policy, snapshot, draw(forecasts()), draw(st.integers(sum(floors), most))


def gpus(whole: int) -> Amount:
    return Amount(milli_gpus=whole * 1000)


def divided(
    policy: Policy, snapshot: Snapshot, foreseen: Forecasts, can_have: int, demand: Demand | None = None
) -> Division:
    pool = policy.pools[0]
    limits = limits_in_force(policy, pool, can_have * 1000, NOW_S)
    wanted = demand or measure(snapshot, policy, NOW_S)
    return divide(pool, policy, limits, limits, wanted, foreseen, can_have * 1000, snapshot, NOW_S, 600)


def pending(policy: Policy, team: str, whole: int, *, preemptible: bool, name: str = "queued") -> Workload:
    return Workload(
        name=f"{name}-{team}",
        namespace=team,
        pool=policy.pools[0].name,
        pods=1,
        milli_gpus_per_pod=whole * 1000,
        state=WorkloadState.PENDING,
        submitted_at_s=NOW_S - 60,
        preemptible=preemptible,
    )


@LAWS
@given(pools_in_gpus())
def test_a_floor_is_met_whenever_its_team_wants_it_and_it_exists(
    case: tuple[Policy, Snapshot, Forecasts, int],
) -> None:
    policy, snapshot, foreseen, can_have = case
    # GPUs in the hands of nobody's work cannot serve a floor.
    owned = replace(snapshot, workloads=tuple(w for w in snapshot.workloads if w.namespace != "stray"))
    demand = measure(owned, policy, NOW_S)
    division = divided(policy, owned, foreseen, can_have, demand)
    for team in policy.teams:
        share = division.of(team.name)
        assert share is not None
        wanted = -(-demand.of(division.pool, team.name).total // 1000) * 1000
        assert share.share >= min(team.bounds.floor.milli_gpus or 0, wanted)
        assert share.entitlement >= (team.bounds.floor.milli_gpus or 0)


@LAWS
@given(pools_in_gpus())
def test_shares_stay_under_ceilings_and_together_under_what_can_be_had(
    case: tuple[Policy, Snapshot, Forecasts, int],
) -> None:
    division = divided(*case)
    assert sum(share.share for share in division.shares) <= case[3] * 1000
    for share, team in zip(division.shares, case[0].teams, strict=True):
        assert share.share <= (team.bounds.ceiling.milli_gpus or 0)
        assert 0 <= share.preemptible_share <= share.share
        assert share.share % 1000 == 0


@LAWS
@given(pools_in_gpus())
def test_without_lending_nobody_gets_more_than_its_entitlement(case: tuple[Policy, Snapshot, Forecasts, int]) -> None:
    policy, snapshot, foreseen, can_have = case
    closed = replace(policy, lending=replace(policy.lending, enabled=False))
    for share in divided(closed, snapshot, foreseen, can_have).shares:
        assert share.share <= share.entitlement
        assert share.preemptible_share == 0


@LAWS
@given(pools_in_gpus(), st.sampled_from("abc"), st.integers(1, 6), st.booleans())
def test_wanting_more_never_lowers_ones_own_share(
    case: tuple[Policy, Snapshot, Forecasts, int], team: str, more: int, preemptible: bool
) -> None:
    policy, snapshot, foreseen, can_have = case
    extra = pending(policy, team, more, preemptible=preemptible, name="one-more")
    wanting = replace(snapshot, workloads=(*snapshot.workloads, extra))
    before, after = divided(*case).of(team), divided(policy, wanting, foreseen, can_have).of(team)
    assert before is not None
    assert after is not None
    assert after.share >= before.share


@LAWS
@given(pools_in_gpus(), st.integers(1, 8))
def test_nobody_gains_entitlement_from_a_shortage(case: tuple[Policy, Snapshot, Forecasts, int], fewer: int) -> None:
    policy, snapshot, foreseen, can_have = case
    short = divided(policy, snapshot, foreseen, max(0, can_have - fewer))
    for before, after in zip(divided(*case).shares, short.shares, strict=True):
        assert after.entitlement <= before.entitlement


@st.composite
def reserved_pools(draw: st.DrawFn) -> tuple[Policy, Snapshot, Forecasts, int]:
    """A pool of which owners that want little now are forecast to want more, and borrowers wait for it."""
    policy, seen, _, can_have = draw(pools_in_gpus())
    policy = replace(policy, lending=Lending(notice_s=600))
    most = policy.pools[0].limits.max_gpus
    works = tuple(
        pending(policy, team.name, draw(st.integers(1, most)), preemptible=draw(st.booleans()))
        for team in policy.teams
        if draw(st.booleans())
    )
    series = []
    for team in policy.teams:
        low, more = draw(st.integers(0, most // 2)) * 1000, draw(st.integers(0, most // 2)) * 1000
        windows = (WindowForecast(0, 7200, (500, 900), (low, low + more)),)
        series.append(SeriesForecast(policy.pools[0].name, team.name, NOW_S, windows))
    return policy, Snapshot("c1", NOW_S, seen.pools, workloads=works), Forecasts(tuple(series)), can_have


@settings(LAWS, max_examples=150)
@given(pools_in_gpus() | reserved_pools(), st.integers(1, 8))
def test_nobody_gets_more_of_what_it_wants_from_a_shortage(
    case: tuple[Policy, Snapshot, Forecasts, int], fewer: int
) -> None:
    """Of any priority. GPUs that nobody wants may rest with another owner then; they serve nobody either way."""
    policy, snapshot, foreseen, can_have = case
    wanting = replace(snapshot, shares=())
    demand = measure(wanting, policy, NOW_S)
    whole = divided(policy, wanting, foreseen, can_have)
    short = divided(policy, wanting, foreseen, max(0, can_have - fewer))
    for before, after in zip(whole.shares, short.shares, strict=True):
        wants = demand.of(whole.pool, before.team).whole
        assert min(after.share, wants) <= min(before.share, wants)
