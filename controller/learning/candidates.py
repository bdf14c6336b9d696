"""Forecast policies that may stand in for the rule: a quantile of a window, held for a while. Chosen by their own past.

A high quantile of a window's maximum that is then held as well insures twice; the grid therefore goes down to the
median, and what a pool's past says decides. The rule is always among the choices, and a forecast must have beaten it by
a margin on the past to replace it, so that noise does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from controller.core.advice import RuleParameters
from controller.learning import rule
from controller.learning.fleet import Array, Terms, held, nodes_for, replay, seen
from forecaster.service import CHEAP, Rolling, rolling
from forecaster.series import Panel
from forecaster.windows import Window, standard_windows

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)
HOLDS_S = (0, 300, 600, 900, 1800, 3600)
MARGIN = 0.05
"""By how much of the rule's cost a forecast must have been better on the past."""
LEAST_DAYS = 1.5
"""Less past than this says nothing about a forecast: the first day it had none of its own to learn from."""


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
    """The targets of every forecast policy, by step: (steps, policies). Demand now is always covered."""
    now = nodes_for(seen(panel.values[:, 0]), terms.gpus_per_node)
    columns, names = [], []
    for w, window in enumerate(made.windows):
        for i, level in enumerate(made.levels):
            wanted = np.zeros(panel.rows)
            wanted[made.start :] = nodes_for(made.values[:, 0, w, i], terms.gpus_per_node)
            for hold in HOLDS_S:
                columns.append(np.maximum(held(wanted, hold // terms.step_s), now))
                names.append((level, window, hold))
    return np.stack(columns, axis=1), names


def chosen_nightly(total: Panel, terms: Terms, start: int, experts: tuple[str, ...] = CHEAP) -> Chosen:
    """From step ``start`` on, each night the policy that would have cost least on the weeks before it.

    ``total``: a panel of one column. Every forecast was made with what was known when it was made.
    """
    demand, day = total.values[:, 0], total.rows_a_day
    made = rolling(total, windows=standard_windows(terms.lead_s), levels=LEVELS, experts=experts)
    theirs, names = forecast_targets(total, terms, made)
    ours, nights = rule.tuned_nightly(demand, terms, start, day)
    grid = rule.targets(demand, terms)
    first = int(grid[0, 0])
    rule_costs = replay(demand, grid, terms, first).cost
    costs = replay(demand, theirs, terms, first).cost
    targets, choices = ours.copy(), []
    for k, night in enumerate(range(start, total.rows, day)):
        since = max(0, night - rule.HISTORY_DAYS * day, min(day, night - int(LEAST_DAYS * day)))
        best = int(np.argmin(costs[since:night].sum(axis=0)))
        bar = rule_costs[since:night].sum(axis=0).min() * (1 - MARGIN)
        if night - since < int(0.5 * day) or costs[since:night, best].sum() >= bar:
            choices.append(Choice(nights[k]))
            continue
        targets[night : night + day] = theirs[night : night + day, best]
        choices.append(Choice(nights[k], *names[best]))
    return Chosen(targets, tuple(choices))
