"""What pages say: numbers and times as people read them. Pure; no page formats for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
from zoneinfo import ZoneInfo

from controller.core.actions import TeamStanding
from controller.core.quantities import gpus_text
from controller.core.reasons import Reason, duration_text, fact_text
from controller.store import ActionRow, ForecastPoint, ForecastWindow, ViolationRow

KINDS = {
    "set_capacity": "nodes wanted",
    "remove_node": "node given back",
    "set_share": "share",
    "give_notice": "notice",
    "withdraw_notice": "notice withdrawn",
    "evict": "eviction",
    "repartition": "partition",
}
"""Kinds of action in people's words."""
RULES = {
    "starved": "waits for what is due to it",
    "below_floor": "below its floor",
    "cpu_squatter": "pods without a GPU on GPU nodes",
    "idle_gpus": "idle GPUs",
    "gpu_fraction": "more than its part of a GPU",
    "gpu_missing": "nodes without their GPUs",
    "owner_coverage": "work of no team",
}
"""Rules that can be broken, in people's words."""
RANGES = {"1h": 3600, "6h": 21_600, "1d": 86_400, "7d": 604_800, "30d": 2_592_000, "all": 0}


Window = TypeVar("Window", ForecastPoint, ForecastWindow)


def shortest(windows: Sequence[Window]) -> Window | None:
    """The window that is shown where none is asked for: the shortest, which is the one after a node's start."""
    return min(windows, key=lambda one: one.end_s - one.start_s, default=None)


def gpus(milli: int) -> str:
    """Milli-GPUs as GPUs with thousands separated."""
    text = gpus_text(milli)
    whole, _, part = text.partition(".")
    return f"{int(whole):,}" + (f".{part}" if part else "")


def local(at_s: int, zone: str, form: str = "%a %d %b %Y %H:%M") -> str:
    """An instant in the policy's zone."""
    return datetime.fromtimestamp(at_s, UTC).astimezone(ZoneInfo(zone)).strftime(form)


def iso(at_s: int) -> str:
    """An instant in UTC for machines."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def duration(seconds: int) -> str:
    """Seconds as people say them."""
    return duration_text(seconds)


def sentence(why: Reason) -> str:
    """A reason as a sentence. A name at its beginning stays as the cluster spells it."""
    from controller.core.explain import sentence as words

    text = words(why)
    named = text.startswith(tuple(name for name in (why.pool, why.team, why.subject) if name))
    return (text if named else text[:1].upper() + text[1:]) + "."


def why(row: ActionRow) -> str:
    """What an action does and why, as one sentence."""
    text = sentence(row.reason)
    if row.kind != "set_capacity":
        return text
    spare = row.detail["headroom_milli_gpus"]
    warm = f", {gpus(spare)} GPUs beyond demand" if spare else ""
    return f"{row.detail['nodes']} nodes{warm}. {text}"


def measured(row: ViolationRow) -> str:
    """What was measured against what is allowed, with units."""
    unit = {"milli_gpus": "_milli_gpus", "ppm": "_ppm", "s": "_s"}.get(row.unit, "")
    word = {"milli_gpus": " GPUs", "nodes": " nodes"}.get(row.unit, "")
    limit = "due" if row.rule == "below_floor" else "expected" if row.rule in _AT_LEAST else "allowed"
    return f"{fact_text(unit, row.measured)}{word} ({fact_text(unit, row.allowed)}{word} {limit})"


_AT_LEAST = ("idle_gpus", "owner_coverage")


def beside_starved(broken: Sequence[ViolationRow], starved: Sequence[TeamStanding]) -> list[Reason]:
    """Reasons of critical violations that naming the starved teams does not already tell."""
    told = {(team.pool, team.team) for team in starved}
    return [
        one.reason
        for one in broken
        if one.severity == "critical"
        and one.rule != "starved"
        and not (one.rule == "below_floor" and (one.pool, one.team) in told)
    ]


def worst_first(teams: Sequence[TeamStanding]) -> list[TeamStanding]:
    """Starved teams first, then those that wait longest."""
    return sorted(teams, key=lambda team: (not team.starved, -team.longest_wait_s, -team.pending, team.team))


def widest(teams: Sequence[TeamStanding]) -> dict[str, int]:
    """How many milli-GPUs the full width of a pool's bars stands for: the most that any of the teams holds, wants or
    may hold. With two hundred teams the whole pool would leave each bar a hair's breadth."""
    found: dict[str, int] = {}
    for team in teams:
        most = max(team.held + team.pending, team.share, team.ceiling, team.floor)
        found[team.pool] = max(found.get(team.pool, 0), most)
    return found


@dataclass(frozen=True, slots=True)
class Bar:
    """A team's share as parts of a bar, in percent of the bar's full width."""

    held: float
    pending: float
    share: float
    floor: float
    ceiling: float
    text: str


def bar(team: TeamStanding, of_milli_gpus: int) -> Bar:
    """Place a team's standing on a bar whose full width is ``of_milli_gpus``."""
    whole = max(of_milli_gpus, 1)

    def part(value: int) -> float:
        return round(100 * min(value, whole) / whole, 2)

    held = part(team.held)
    text = (
        f"{team.team} holds {gpus(team.held)} GPUs, may hold {gpus(team.share)}, floor {gpus(team.floor)}, "
        f"ceiling {gpus(team.ceiling)}, waits for {gpus(team.pending)}"
    )
    return Bar(held, min(part(team.pending), 100 - held), part(team.share), part(team.floor), part(team.ceiling), text)
