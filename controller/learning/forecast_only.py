"""Forecast policies that may stand in for the rule: a quantile of a window, held for a while. Chosen by their own past.

A high quantile of a window's maximum that is then held as well insures twice; the grid therefore goes down below the
median, and what a pool's past says decides. Where forecasts have clearly lost against the rule, the rule stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from controller.core.advice import RuleParameters
from controller.learning import rule
from controller.learning.fleet import Array, Terms, held, nodes_for, replay
from forecaster.series import Panel
from forecaster.service import CHEAP, Rolling, rolling
from forecaster.windows import Window

LEVELS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LENGTHS_S = (300, 900, 1800, 3600)
HOLDS_S = (0, 300, 600, 900, 1800, 3600)
MARGIN = 0.05
"""By how much of the rule's cost a forecast may have been worse on the past and still act."""
WARM_UP_DAYS = 1
"""A forecast's first day is not held against it: it had nothing to learn from."""


@dataclass(frozen=True, slots=True, order=True)
class Choice:
    """What acts in a night: the rule, or (``level`` set) a forecast quantile of a window, held."""

    rule: RuleParameters
    level: float | None = None
    window: Window | None = None
    hold_s: int = 0


@dataclass(frozen=True, slots=True)
class Chosen:
    """Targets by step (nodes), and each night's choice."""

    targets: Array
    nights: tuple[Choice, ...]


def forecast_targets(panel: Panel, terms: Terms, made: Rolling) -> tuple[Array, list[tuple[float, Window, int]]]:
    """The targets of every forecast policy, by step: (steps, policies)."""
    columns, names = [], []
    for w, window in enumerate(made.windows):
        for i, level in enumerate(made.levels):
            wanted = np.zeros(panel.rows)
            wanted[made.start :] = nodes_for(made.values[:, 0, w, i], terms.gpus_per_node)
            for hold in HOLDS_S:
                columns.append(held(wanted, hold // terms.step_s))
                names.append((level, window, hold))
    return np.stack(columns, axis=1), names


def chosen_nightly(total: Panel, terms: Terms, start: int, experts: tuple[str, ...] = CHEAP) -> Chosen:
    """From step ``start`` on, each night the policy that would have cost least on the weeks before it.

    ``total``: a panel of one column. Every forecast was made with what was known when it was made.
    """
    demand, day = total.values[:, 0], total.rows_a_day
    windows = [Window(terms.lead_s, length) for length in LENGTHS_S]
    made = rolling(total, windows=windows, levels=LEVELS, experts=experts)
    theirs, names = forecast_targets(total, terms, made)
    ours, nights = rule.tuned_nightly(demand, terms, start, day)
    grid = rule.targets(demand, terms)
    first = int(grid[0, 0])
    rule_costs = replay(demand, grid, terms, first).cost
    costs = replay(demand, theirs, terms, first).cost
    targets, choices = ours.copy(), []
    for k, night in enumerate(range(start, total.rows, day)):
        since = max(WARM_UP_DAYS * day, night - rule.HISTORY_DAYS * day)
        past = costs[since:night].sum(axis=0)
        bar = rule_costs[since:night].sum(axis=0).min() * (1 + MARGIN)
        best = int(np.argmin(past))
        if night <= since or past[best] > bar:
            choices.append(Choice(nights[k]))
            continue
        targets[night : night + day] = theirs[night : night + day, best]
        choices.append(Choice(nights[k], *names[best]))
    return Chosen(targets, tuple(choices))
