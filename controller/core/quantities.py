"""Exact amounts: GPUs as integers of milli-GPU, shares of a whole as parts per million.

Floats would make two runs differ in the last bit and let rounding leak GPUs; every amount here is an int with its
unit in the name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

MILLI = 1000
"""Milli-GPU in one GPU."""
PPM = 1_000_000
"""Parts per million in a whole."""
DAY_S = 86_400
HOUR_S = 3_600


@dataclass(frozen=True, slots=True)
class Amount:
    """A bound as the policy wrote it: either absolute or a share of the pool; exactly one of the two is set."""

    milli_gpus: int | None = None
    ppm: int | None = None

    def __post_init__(self) -> None:
        if (self.milli_gpus is None) == (self.ppm is None):
            raise ValueError("an amount is either milli_gpus or ppm")
        if (self.milli_gpus or 0) < 0 or not 0 <= (self.ppm or 0) <= PPM:
            raise ValueError("an amount is never negative and a share never above 100 %")

    def exact(self, of_milli_gpus: int) -> Fraction:
        """Milli-GPUs this amount stands for in a pool of ``of_milli_gpus``, before rounding to whole GPUs."""
        if self.milli_gpus is not None:
            return Fraction(self.milli_gpus)
        assert self.ppm is not None
        return Fraction(of_milli_gpus * self.ppm, PPM)

    def __str__(self) -> str:
        """Render as the policy would write it."""
        if self.ppm is not None:
            return f"{trimmed(Fraction(self.ppm, 10_000))}%"
        return trimmed(Fraction(self.milli_gpus or 0, MILLI))


def trimmed(value: Fraction) -> str:
    """Decimal text of an exact value with at most three places and no trailing zeros."""
    text = f"{float(value):.3f}".rstrip("0").rstrip(".")
    return text or "0"


def gpus_text(milli_gpus: int) -> str:
    """Render milli-GPUs as people read them: ``2.125`` or ``8``."""
    return trimmed(Fraction(milli_gpus, MILLI))


def ceil_div(value: int, by: int) -> int:
    """Integer division rounded up."""
    return -(-value // by)


def whole_gpus_up(milli_gpus: int) -> int:
    """Round milli-GPUs up to whole GPUs, still in milli-GPUs."""
    return ceil_div(milli_gpus, MILLI) * MILLI


def whole_gpus_down(milli_gpus: int) -> int:
    """Round milli-GPUs down to whole GPUs, still in milli-GPUs."""
    return milli_gpus // MILLI * MILLI


def largest_remainder(exact: Sequence[Fraction], total: int, rank: Sequence[tuple[int, str]]) -> tuple[int, ...]:
    """Round exact amounts to integers that sum to ``total`` (Hamilton's method).

    ``exact`` sums to at least ``total`` and less than ``total + len(exact)``. Every value gets its floor; the units
    that are left go to the largest remainders, ties to the higher ``rank[0]`` (priority) and then the smaller
    ``rank[1]`` (name).
    """
    floors = [int(value // 1) for value in exact]
    left = total - sum(floors)
    if not 0 <= left <= len(exact):
        raise ValueError("total is not a rounding of the exact amounts")
    order = sorted(range(len(exact)), key=lambda i: (-(exact[i] - floors[i]), -rank[i][0], rank[i][1]))
    for i in order[:left]:
        floors[i] += 1
    return tuple(floors)
