"""A serving team's morning peak on a full cluster, recalled ahead of it and at it: the production loop, worked by hand.

16 GPUs. ``serving`` (floor 12, priority) wants 4 until 08:00 and 12 from then on. ``training`` has more gangs of 4 GPUs
and 50 minutes than fit; three at a time run 05:00–05:50–06:40–07:30–08:20. Notice and lead are 10 minutes, a tick
every 5. The forecast knows the rhythm, over the windows that the forecaster gives: from the lead on, 15 and 60 minutes.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import pytest

from controller.core.forecast import Forecasts, SeriesForecast, WindowForecast
from controller.core.policy import Bounds, Lending, Mode, Policy, Pool, PoolLimits, Team
from controller.core.quantities import Amount
from controller.loop import FixedPolicy, Loop
from controller.worlds.simulated import Boot, Job, PoolSetup, Provider, Service, SimulatedWorld

MINUTE_S = 60
HOUR_S = 3600
PEAK_S = 8 * HOUR_S
GPU_H = 1000 * HOUR_S


@dataclass(frozen=True, slots=True)
class KnownRhythm:
    """A forecaster of a service whose rhythm is known: 4 GPUs, and 12 from the peak on."""

    def fit(self, now_s: int) -> None:
        """Nothing to learn."""

    def forecasts(self, now_s: int) -> Forecasts:
        """The maximum over each window, the same at every quantile."""
        windows = tuple(
            WindowForecast(600, end, (500,), (12_000 if now_s + end >= PEAK_S else 4_000,)) for end in (1500, 4200)
        )
        return Forecasts((SeriesForecast("p", "serving", now_s, windows),))


@dataclass(frozen=True, slots=True)
class Morning:
    """What a morning from 05:00 to 09:00 came to. GPU-hours, and the minutes that serving was below its floor."""

    evictions: int
    lost_gpu_h: float
    owner_wait_gpu_h: float
    below_floor_min: int
    idle_gpu_h: float


def a_morning(*, aware: bool, preemptible: bool) -> Morning:
    """Run it."""
    teams = (
        Team("serving", ("serving",), priority=100, bounds=Bounds(Amount(milli_gpus=12_000))),
        Team("training", ("training",)),
    )
    pool = Pool("p", (), PoolLimits(16, 16))
    policy = Policy("p", Mode.ENFORCE, "UTC", (pool,), teams, Lending(notice_s=600, forecast_aware=aware))
    serving = Service("serving", "p", 1000, ((0, 4), (PEAK_S, 12)))
    jobs = [
        ("p", Job(f"j{number:02}", "training", 5 * HOUR_S, 50 * MINUTE_S, 1, 4000, preemptible=preemptible))
        for number in range(40)
    ]
    begin_s = 5 * HOUR_S
    world = SimulatedWorld("c", begin_s - 300, [PoolSetup(Provider("p", Boot(600)), nodes=2)], jobs, [serving])
    loop = Loop(world, FixedPolicy(policy), forecaster=KnownRhythm())
    cluster, below = world.pools["p"], 0
    loop.tick()
    for at in range(begin_s, 9 * HOUR_S, 300):
        world.advance(at)
        loop.tick()
        world.advance(at)  # what the tick made room for starts at once
        below += 5 * (cluster.held.get("serving", 0) < 12_000 and cluster.waiting.get("serving", 0) > 0)
        if at == begin_s:
            up, busy = cluster.account.up, cluster.account.busy
    world.advance(9 * HOUR_S)
    world.check()
    account = cluster.account
    waited = sum(gang.waited_s * gang.job.milli_gpus for gang in cluster.gangs.values() if gang.job.team == "serving")
    idle = (account.up - up) - (account.busy - busy)
    return Morning(account.evictions, account.lost / GPU_H, waited / GPU_H, below, idle / GPU_H)


@pytest.mark.parametrize("preemptible", [False, True])
def test_recalled_at_the_peak_two_gangs_lose_their_work_and_the_owner_waits_for_the_notice(preemptible: bool) -> None:
    """Three gangs begin at 07:30. At 08:00 two have notice, at 08:10 they go.

    Lost 2 · 4 GPUs · 40 min, waited 8 GPUs · 10 min, nothing idle.
    """
    assert astuple(a_morning(aware=False, preemptible=preemptible)) == pytest.approx(
        (2, 8 * 40 / 60, 8 * 10 / 60, 10, 0)
    )


def test_work_that_must_run_to_its_end_is_not_begun_ahead_of_the_peak_and_nothing_is_evicted() -> None:
    """From 06:50 on the hour ahead holds the peak: 8 are reserved, so at 07:30 only one gang begins.

    Nothing lost, nobody waits; the price is 8 GPUs idle from 07:30 to 08:00.
    """
    assert astuple(a_morning(aware=True, preemptible=False)) == pytest.approx((0, 0, 0, 0, 8 * 30 / 60))


def test_preemptible_work_runs_on_what_is_reserved_and_is_recalled_before_its_owner_waits() -> None:
    """Three gangs begin at 07:30. At 07:35 the peak lies within notice and a quarter of an hour: two have notice.

    They go at 07:45: lost 2 · 4 GPUs · 15 min instead of 40, nobody waits; the price is 8 GPUs idle until 08:00.
    """
    assert astuple(a_morning(aware=True, preemptible=True)) == pytest.approx((2, 8 * 15 / 60, 0, 0, 8 * 15 / 60))
