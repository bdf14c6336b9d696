"""What the core will make of a target: the same floors and caps, so that shadow fleets cost what real ones would.

``controller.core.headroom`` decides; a shadow that could do what the core forbids would promise what nobody can keep.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controller.core.policy import Learning, Pool
from controller.core.quantities import ceil_div
from controller.learning.candidates import LEVELS_PERMILLE, Nodes, Reach, nodes_of


@dataclass(frozen=True, slots=True)
class Limits:
    """Floors and caps in nodes; the default has none.

    ``follows``: never fewer nodes than are wanted now. ``headroom``: at most so many beyond those. ``low_permille`` and
    ``high_permille``: advice stays between these quantiles, of the quarter of an hour and of the hour from the lead on.
    ``least`` and ``most``: the pool's own. Envelope and headroom bind advice; the rest binds the rule as well.
    """

    least: int = 0
    most: int | None = None
    follows: bool = False
    headroom: int | None = None
    low_permille: int | None = None
    high_permille: int | None = None

    @classmethod
    def of(cls, pool: Pool, learning: Learning, gpus_per_node: int) -> Limits:
        """Those of a policy."""
        headroom = learning.max_headroom_gpus
        return cls(
            least=ceil_div(pool.limits.min_gpus, gpus_per_node),
            most=pool.limits.max_gpus // gpus_per_node,
            follows=True,
            headroom=None if headroom is None else ceil_div(headroom, gpus_per_node),
            low_permille=learning.low_permille,
            high_permille=learning.high_permille,
        )

    def advised(self, asked: Nodes, forecast: NDArray[np.int64], wanted: Nodes, gpus_per_node: int) -> Nodes:
        """Targets of candidates (rows, candidates) within the envelope.

        ``forecast``: milli-GPUs (rows, reaches, levels); ``wanted``: nodes wanted now (rows,).
        """
        out = asked
        if self.low_permille is not None:
            low = nodes_of(quantile(forecast[:, 0], self.low_permille), gpus_per_node)
            out = np.maximum(out, low[:, None])
        if self.high_permille is not None:
            high = nodes_of(quantile(forecast[:, list(Reach).index(Reach.HOUR)], self.high_permille), gpus_per_node)
            out = np.minimum(out, high[:, None])
        if self.headroom is not None:
            out = np.minimum(out, wanted[:, None] + self.headroom)
        return self.of_pool(out, wanted)

    def of_pool(self, asked: Nodes, wanted: Nodes) -> Nodes:
        """Targets of anyone (rows, fleets) within what the pool allows."""
        out = np.maximum(asked, wanted[:, None]) if self.follows else asked
        out = np.maximum(out, self.least)
        return out if self.most is None else np.minimum(out, self.most)


def quantile(forecast: NDArray[np.int64], permille: int) -> NDArray[np.int64]:
    """A level of a forecast (..., levels), as ``WindowForecast.at`` reads it: linear between levels, rounded up."""
    levels = LEVELS_PERMILLE
    if permille <= levels[0]:
        return forecast[..., 0]
    above = next((k for k, level in enumerate(levels) if permille <= level), None)
    if above is None:
        return forecast[..., -1]
    low, high = forecast[..., above - 1], forecast[..., above]
    part, whole = permille - levels[above - 1], levels[above] - levels[above - 1]
    between: NDArray[np.int64] = low - (-(high - low) * part // whole)
    return between
