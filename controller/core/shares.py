"""Stage 3: how a pool is divided when everybody wants everything: weighted max-min inside the bounds.

Weighted water-filling: raise one water level λ; a team gets λ·weight, but never less than its low and never more than
its high bound, until everything is given out. ``level`` does so on exact rationals. ``waterfill`` rounds to whole GPUs
by Webster's method inside the same bounds: unlike the largest remainder it is monotone, so neither a GPU more in the
pool nor a GPU more wanted can ever cost a team one (Balinski & Young, *Fair Representation*, 1982).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import count

from controller.core.policy import Policy
from controller.core.quantities import MILLI
from controller.core.schedule import Limits

Rank = tuple[int, str]
"""Priority and name: who gets the odd GPU when two have the same claim."""


def level(total: int, lows: Sequence[int], highs: Sequence[int], weights: Sequence[int]) -> list[Fraction]:
    """Exact weighted max-min amounts ``clamp(λ·w, low, high)`` that sum to ``min(total, Σ highs)``.

    Where the lows alone exceed the total they shrink in proportion: a shortage is shared out.
    """
    floor = sum(lows)
    if total <= floor:
        return [Fraction(low * total, floor) if floor else Fraction(0) for low in lows]
    water = _water(total, lows, highs, weights)
    if water is None:
        return [Fraction(high) for high in highs]
    return [
        min(max(water * w, Fraction(low)), Fraction(high)) for low, high, w in zip(lows, highs, weights, strict=True)
    ]


def _water(total: int, lows: Sequence[int], highs: Sequence[int], weights: Sequence[int]) -> Fraction | None:
    """The water level, walking the points at which a team starts or stops to rise; None: all are full."""
    if total >= sum(highs):
        return None
    rising = [(low, high, w) for low, high, w in zip(lows, highs, weights, strict=True) if high > low]
    events = sorted(
        [(Fraction(low, w), w) for low, _, w in rising] + [(Fraction(high, w), -w) for _, high, w in rising]
    )
    given, slope, at = Fraction(sum(lows)), 0, Fraction(0)
    for point, change in events:
        reached = given + slope * (point - at)
        if slope and reached >= total:
            break
        given, slope, at = reached, slope + change, point
    return at + (total - given) / slope if slope else at


def waterfill(
    total: int, lows: Sequence[int], highs: Sequence[int], weights: Sequence[int], rank: Sequence[Rank]
) -> tuple[int, ...]:
    """Divide ``total`` milli-GPUs in whole GPUs; bounds are whole GPUs in milli-GPUs, lows never above highs.

    Weights are at least 1. Ties go to the higher priority, then the smaller name.
    """
    return _whole(total, tuple(lows), tuple(highs), tuple(weights), tuple(rank))


@lru_cache(maxsize=1024)
def _whole(
    total: int, lows: tuple[int, ...], highs: tuple[int, ...], weights: Sequence[int], rank: tuple[Rank, ...]
) -> tuple[int, ...]:
    """Cached: from tick to tick a division mostly repeats, and exact rationals are dear."""
    gpus = total // MILLI
    low, high = [v // MILLI for v in lows], [v // MILLI for v in highs]
    if gpus < sum(low):
        low, high, weights = [0] * len(low), low, [max(v, 1) for v in low]
    if gpus >= sum(high):
        return tuple(v * MILLI for v in high)
    return tuple(v * MILLI for v in _webster(gpus, low, high, weights, rank))


def _webster(
    gpus: int, lows: Sequence[int], highs: Sequence[int], weights: Sequence[int], rank: Sequence[Rank]
) -> list[int]:
    water = _water(gpus, lows, highs, weights)
    assert water is not None
    step = Fraction(1, sum(weights))
    for back in count():
        # All GPUs whose claim lies at or below a level are given out before any other: start there, not at nothing.
        at = water - back * step
        given = [min(max(int(at * w + Fraction(1, 2)), lo), hi) for lo, hi, w in zip(lows, highs, weights, strict=True)]
        if sum(given) <= gpus or at < 0:
            break
    if sum(given) > gpus:
        given = list(lows)
    claims = [
        (_claim(given[i], weights[i]), -rank[i][0], rank[i][1], i) for i in range(len(given)) if given[i] < highs[i]
    ]
    heapify(claims)
    for _ in range(gpus - sum(given)):
        _, priority, name, i = heappop(claims)
        given[i] += 1
        if given[i] < highs[i]:
            heappush(claims, (_claim(given[i], weights[i]), priority, name, i))
    return given


def _claim(held: int, weight: int) -> Fraction:
    return Fraction(2 * held + 1, 2 * weight)


def entitlements(limits: Sequence[Limits], policy: Policy, total: int) -> dict[str, int]:
    """What each team of a pool is due if every team wanted everything; ``total`` in milli-GPUs."""
    by_name = {team.name: team for team in policy.teams}
    teams = [by_name[limit.team] for limit in limits]
    parts = waterfill(
        total,
        [limit.floor for limit in limits],
        [limit.ceiling for limit in limits],
        [team.weight for team in teams],
        [(team.priority, team.name) for team in teams],
    )
    return {limit.team: part for limit, part in zip(limits, parts, strict=True)}
