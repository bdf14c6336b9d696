"""Ticks for the store's tests: everything has a default, a test names what it is about."""

from __future__ import annotations

from controller.core.actions import Decision, PoolStanding, TeamStanding, Violation
from controller.core.advice import Advice, PoolAdvice
from controller.core.forecast import Forecasts, SeriesForecast, WindowForecast
from controller.core.policy import GuardAction, Mode, Policy, Pool, PoolLimits, Team
from controller.core.reasons import ReasonCode, reason
from controller.core.snapshot import PoolObservation, Snapshot
from controller.store import Store, TickRecord

T0 = 1_790_812_800
"""2026-10-01 00:00 UTC: a whole day, hour and 5-minute bin."""
DAY = 86_400
EVICT = reason(ReasonCode.RECLAIM_FOR_FLOOR, pool="h100", team="dev", subject="job-1", asked_milli_gpus=2000, for_s=60)


def a_pool(name: str = "h100", **given: object) -> PoolStanding:
    values: dict[str, object] = dict.fromkeys(PoolStanding.__dataclass_fields__, 0)
    values |= {"pool": name, "source": "rule", "advised_nodes": None, "quantile_permille": None, **given}
    return PoolStanding(**values)


def a_team(name: str = "dev", pool: str = "h100", **given: object) -> TeamStanding:
    values: dict[str, object] = dict.fromkeys(TeamStanding.__dataclass_fields__, 0)
    values |= {"pool": pool, "team": name, "starved": False, "bounds_from": "bounds", **given}
    return TeamStanding(**values)


def a_violation(team: str = "dev", measured: int = 1, **given: object) -> Violation:
    values: dict[str, object] = {
        "rule": "idle_gpus",
        "pool": "h100",
        "team": team,
        "subjects": ("pod-a", "pod-b"),
        "since_s": T0,
        "measured": measured,
        "allowed": 10,
        "unit": "ppm",
        "severity": "warning",
        "action": GuardAction.ALERT,
        "reason": reason(ReasonCode.IDLE_GPUS, pool="h100", team=team, busy_ppm=measured),
    }
    return Violation(**(values | given))


def a_decision(at_s: int = T0, cluster: str = "east", **given: object) -> Decision:
    values: dict[str, object] = {
        "at_s": at_s,
        "cluster": cluster,
        "policy": "production",
        "mode": Mode.ENFORCE,
        "pools": (a_pool(),),
        "teams": (a_team(),),
        "actions": (),
        "notes": (),
        "violations": (),
        "ignored_nodes": (),
    }
    return Decision(**(values | given))


def a_forecast(issued_at_s: int, team: str = "dev", *windows: tuple[int, int, tuple[int, ...]]) -> SeriesForecast:
    built = tuple(WindowForecast(start, end, (500, 900), values) for start, end, values in windows)
    return SeriesForecast("h100", team, issued_at_s, built or (WindowForecast(900, 1800, (500, 900), (1, 2)),), "mix")


def a_record(decision: Decision, *forecasts: SeriesForecast, maximum: int = 64) -> TickRecord:
    return TickRecord.of(
        snapshot=Snapshot(decision.cluster, decision.at_s, (PoolObservation("h100", 8, 600),)),
        forecasts=Forecasts(forecasts),
        policy=Policy(
            "production",
            decision.mode,
            "UTC",
            (Pool("h100", (), PoolLimits(0, maximum)),),
            (Team("dev", ("dév-*",)),),
        ),
        advice=Advice((PoolAdvice("h100"),)),
        decision=decision,
        wall_at_s=1_800_000_000,
    )


def put(store: Store, decision: Decision, *forecasts: SeriesForecast, maximum: int = 64) -> TickRecord:
    """Append a tick and hand back its record."""
    record = a_record(decision, *forecasts, maximum=maximum)
    assert store.append(record, decision, Forecasts(forecasts))
    return record
