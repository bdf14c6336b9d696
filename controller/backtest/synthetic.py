"""Made demand for the benchmark: a daily and a weekly shape, noise that lasts, bursts, and shifts of level.

Real traces are few, and whoever tunes on them knows them. A seed stands for a cluster that nobody has looked at; each
draws how strong its rhythm is, down to hardly any, so that a controller which needs a rhythm is found out. The ranges
are ours: wide enough to hold the public traces' autocorrelations and peaks, fitted to none of them.

    demand(t) = mean · day(t) · week(t) · shifts(t) · noise(t) + bursts(t)      GPUs, never below 0
    day    1 + a · cos(2π (hour − peak hour) / 24)
    week   1, and ``weekend`` on Saturdays and Sundays
    shifts the product of the factors of all shifts that have happened
    noise  exp(AR(1)) with a half-life of two hours
    bursts each at its full size at once, then halved every ``half_life_s``
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from controller.learning.fleet import Array
from forecaster.series import DAY_S, Panel

STEP_S = 300
DAYS = 28
ORIGIN_S = 4 * DAY_S
"""1970-01-05, a Monday, as everywhere where a trace names no date."""
NOISE_HALF_LIFE_S = 7200


@dataclass(frozen=True, slots=True)
class Burst:
    """Extra work: ``gpus`` at once at ``at_s`` (seconds after the origin), halved every ``half_life_s``."""

    at_s: int
    gpus: float
    half_life_s: int


@dataclass(frozen=True, slots=True)
class Shift:
    """From ``at_s`` (seconds after the origin) on, the level times ``factor``."""

    at_s: int
    factor: float


@dataclass(frozen=True, slots=True)
class Shape:
    """All that makes one demand. ``noise``: standard deviation of log demand around its shape."""

    mean_gpus: float
    daily: float
    peak_hour: float
    weekend: float
    noise: float
    bursts: tuple[Burst, ...] = ()
    shifts: tuple[Shift, ...] = ()


def draw(seed: int, days: int = DAYS) -> Shape:
    """The shape of a seed; the same on every machine (numpy's PCG64)."""
    rng = np.random.default_rng([seed, 1])
    span, mean = days * DAY_S, float(np.exp(rng.uniform(np.log(40), np.log(400))))
    daily, peak, weekend, noise = rng.uniform([0.0, 8.0, 0.4, 0.03], [0.7, 20.0, 1.0, 0.15])
    bursts = [
        Burst(int(rng.uniform(0, span)), float(mean * rng.uniform(0.1, 0.8)), int(rng.uniform(900, 10_800)))
        for _ in range(rng.poisson(days * rng.uniform(0.1, 1.0)))
    ]
    shifts = [
        Shift(int(rng.uniform(0, span)), float(np.exp(rng.normal(0.0, 0.25)))) for _ in range(rng.poisson(days / 10))
    ]
    return Shape(mean, float(daily), float(peak), float(weekend), float(noise), tuple(bursts), tuple(shifts))


def demand(shape: Shape, days: int = DAYS, seed: int = 0) -> Array:
    """Mean GPUs wanted in each of ``days`` · 288 steps; ``seed`` draws the noise and nothing else."""
    at = np.arange(days * DAY_S // STEP_S) * STEP_S
    hours, weekday = at % DAY_S / 3600, at // DAY_S % 7
    level = shape.mean_gpus * (1 + shape.daily * np.cos(2 * np.pi * (hours - shape.peak_hour) / 24))
    level = level * np.where(weekday >= 5, shape.weekend, 1.0) * np.exp(shape.noise * _lasting(len(at), seed))
    for shift in shape.shifts:
        level = np.where(at >= shift.at_s, level * shift.factor, level)
    for burst in shape.bursts:
        since = at - burst.at_s
        level = level + np.where(since >= 0, burst.gpus * 0.5 ** (np.maximum(since, 0) / burst.half_life_s), 0.0)
    return np.asarray(np.maximum(level, 0.0))


def _lasting(rows: int, seed: int) -> Array:
    """AR(1) of variance 1."""
    keep = 0.5 ** (STEP_S / NOISE_HALF_LIFE_S)
    shocks = np.random.default_rng([seed, 2]).standard_normal(rows)
    out = np.empty(rows)
    now = shocks[0] if rows else 0.0
    for t in range(rows):
        now = out[t] = now if t == 0 else keep * now + np.sqrt(1 - keep * keep) * shocks[t]
    return out


def panel(seed: int, days: int = DAYS) -> Panel:
    """A seed's demand as the total of a pool: one column, from a Monday on."""
    values = demand(draw(seed, days), days, seed)
    return Panel(("",), ORIGIN_S, STEP_S, "UTC", values[:, None])
