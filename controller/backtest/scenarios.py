"""What may happen to a controller after it was tuned: each scenario bends the judged part of a demand, nothing else.

A scenario is a pure function from a total and the row from which it is judged to a ``Stage``: what the policies are
told, what there truly was, and when no node could be had. Costs are always those of what there truly was; where rows
are missing from the input, a policy that takes missing for zero pays for it.

All of it is in the demand view: jobs cannot be doubled or shifted without inventing jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from controller.backtest import baselines
from controller.backtest.baselines import Plans
from controller.backtest.score import Days, Row, daily, score
from controller.core.errors import InputError
from controller.core.quantities import HOUR_S
from controller.learning.fleet import Array, Terms, replay
from forecaster.series import DAY_S, Panel

Mask = NDArray[np.bool_]
LEVEL = 2.0
LATER_H = 3
WEEK_DAYS = 7
MISSING_H = (10, 13)
"""Local hours of each judged day in which no input arrives: in most demand the busy ones."""
STOCK_OUT_H = (8, 12)
"""Local hours of each judged day in which no node arrives: the morning's rise."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A demand made ready. ``told``: panel of one column, what policies see; ``truth``: (rows,) GPUs, what is paid.

    ``judge_from``: the first judged row. ``stock_out``: (rows,), True where no node arrives.
    """

    told: Panel
    truth: Array
    judge_from: int
    stock_out: Mask


@dataclass(frozen=True, slots=True)
class Scenario:
    """A name for options and files, a sentence for people, and what it does (a donor only where it ``needs_other``)."""

    name: str
    sentence: str
    stage: Callable[[Panel, int], Stage]
    least_days: float = 1.0
    needs_other: bool = False


def staged(total: Panel, judge_from: int) -> Stage:
    """Nothing happens."""
    return Stage(total, total.values[:, 0], judge_from, np.zeros(total.rows, dtype=np.bool_))


def level_doubled(total: Panel, judge_from: int) -> Stage:
    """From the middle of the judged part on there is twice the demand."""
    values = total.values.copy()
    values[_middle(total, judge_from) :] *= LEVEL
    return staged(replace(total, values=values), judge_from)


def phase_shifted(total: Panel, judge_from: int) -> Stage:
    """From the middle of the judged part on everything comes three hours later than it did.

    The three hours before the middle therefore come twice.
    """
    values, middle, later = total.values.copy(), _middle(total, judge_from), LATER_H * HOUR_S // total.step_s
    values[middle:] = total.values[middle - later : total.rows - later]
    return staged(replace(total, values=values), judge_from)


def day_of_outage(total: Panel, judge_from: int) -> Stage:
    """For 24 hours in the middle of the judged part demand is zero, and known to be."""
    values = total.values.copy()
    begin = judge_from + (total.rows - judge_from - total.rows_a_day) // 2
    values[begin : begin + total.rows_a_day] = 0.0
    return staged(replace(total, values=values), judge_from)


def week_of_zero(total: Panel, judge_from: int) -> Stage:
    """In the middle of the judged part a week without demand is put in; what followed follows a week later."""
    middle, empty = _middle(total, judge_from), np.zeros((WEEK_DAYS * total.rows_a_day, 1))
    values = np.concatenate([total.values[:middle], empty, total.values[middle:]])
    return staged(replace(total, values=values), judge_from)


def missing_hours(total: Panel, judge_from: int) -> Stage:
    """In each judged day policies are told nothing between 10:00 and 13:00; demand goes on and is paid for."""
    values = total.values.copy()
    values[_daily(total, judge_from, MISSING_H)] = np.nan
    return replace(staged(total, judge_from), told=replace(total, values=values))


def stock_outs(total: Panel, judge_from: int) -> Stage:
    """In each judged day no node arrives between 08:00 and 12:00; what was asked for comes afterwards."""
    return replace(staged(total, judge_from), stock_out=_daily(total, judge_from, STOCK_OUT_H))


def others_past(total: Panel, judge_from: int, other: Panel, other_from: int) -> Stage:
    """The past is another's: what ``other`` was before its judged part, at this demand's level and time of day.

    It is rescaled to the mean of the past that it stands for, so the shape is foreign and the level is not.
    """
    if other.step_s != total.step_s:
        raise InputError.one("step_s", other.step_s, f"the step of the judged trace, {total.step_s}")
    end = other_from - (_time_of_day(other, other_from) - _time_of_day(total, judge_from)) % total.rows_a_day
    past = other.values[: max(end, 0)]
    means = [float(np.nanmean(part)) if np.isfinite(part).any() else 0.0 for part in (total.values[:judge_from], past)]
    if not min(means) > 0:
        raise InputError.one("--trace", "", "traces with demand in the part before the judged one")
    values = np.concatenate([past * (means[0] / means[1]), total.values[judge_from:]])
    return staged(replace(total, origin_s=total.time(judge_from - len(past)), values=values), len(past))


def _middle(total: Panel, judge_from: int) -> int:
    return judge_from + (total.rows - judge_from) // 2


def _time_of_day(total: Panel, row: int) -> int:
    """Rows since local midnight."""
    return total.time(row) % DAY_S // total.step_s


def _daily(total: Panel, judge_from: int, hours: tuple[int, int]) -> Mask:
    at = (total.origin_s + np.arange(total.rows) * total.step_s) % DAY_S
    inside = (at >= hours[0] * HOUR_S) & (at < hours[1] * HOUR_S)
    return np.asarray(inside & (np.arange(total.rows) >= judge_from))


OTHERS_PAST = "others_past"
SCENARIOS = (
    Scenario("level_doubled", "twice the demand from the middle on", level_doubled),
    Scenario("phase_shifted", "everything 3 h later from the middle on", phase_shifted),
    Scenario("day_of_outage", "24 h without demand in the middle", day_of_outage, least_days=1.5),
    Scenario("week_of_zero", "a week without demand put in in the middle", week_of_zero),
    Scenario("missing_hours", "no input between 10:00 and 13:00, demand goes on", missing_hours),
    Scenario("stock_outs", "no node arrives between 08:00 and 12:00", stock_outs),
    Scenario(OTHERS_PAST, "the past is another trace's", staged, needs_other=True),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def prepare(name: str, total: Panel, judge_from: int, other: tuple[Panel, int] | None = None) -> Stage:
    """The stage of a scenario by name. ``other``: the donor's total and its first judged row.

    Raises ``InputError`` where the judged part is too short for what is to happen in it.
    """
    scenario = BY_NAME[name]
    days = (total.rows - judge_from) / total.rows_a_day
    if days < scenario.least_days:
        raise InputError.one(name, f"{days:.1f} judged days", f"at least {scenario.least_days:g}")
    if scenario.needs_other:
        if other is None:
            raise InputError.one(name, "", "a second trace, whose past is taken")
        return others_past(total, judge_from, *other)
    return scenario.stage(total, judge_from)


def planned(
    stage: Stage, terms: Terms, tell: Callable[[str], None] = lambda _: None, made: NDArray[np.int64] | None = None
) -> Plans:
    """All policies' targets, on what they were told; the optimum's nodes, on what there was."""
    return baselines.plan(
        stage.told, terms, stage.judge_from, tell, made=made, truth=stage.truth, stock_out=stage.stock_out
    )


def judge(
    stage: Stage, terms: Terms, tell: Callable[[str], None] = lambda _: None, made: NDArray[np.int64] | None = None
) -> dict[str, Row]:
    """All policies of the benchmark on a stage: planned on what they were told, paid on what there was."""
    return score(flow(stage, planned(stage, terms, tell, made), terms), terms)


def flow(stage: Stage, plans: Plans, terms: Terms) -> dict[str, Days]:
    """Each policy's account by judged day, the optimum's last; nothing waits longer for having waited."""
    day, start = stage.told.rows_a_day, stage.judge_from
    names = list(plans.targets)
    targets = np.stack([plans.targets[name] for name in names], axis=1)
    account = replay(stage.truth, targets, terms, int(targets[0, 0]), stage.stock_out)
    parts = [part[start:] for part in (account.provisioned, account.idle, account.wait, account.adds)]
    days = {
        name: daily(parts[0][:, i], parts[1][:, i], parts[2][:, i], parts[3][:, i], day) for i, name in enumerate(names)
    }
    return days | {"optimum": _optimum(stage, plans, terms)}


def _optimum(stage: Stage, plans: Plans, terms: Terms) -> Days:
    """The optimum of the truth. Its plan names nodes that serve, so nothing arrives late."""
    demand, nodes = stage.truth[stage.judge_from :], plans.optimum.plan.astype(np.float64)
    known, hours = ~np.isnan(demand), terms.step_s / 3600
    supply = np.where(known, nodes * terms.gpus_per_node, 0.0)
    spare = np.where(known, supply - np.nan_to_num(demand), 0.0)
    adds = np.maximum(np.diff(nodes, prepend=float(plans.first_nodes)), 0.0)
    idle, wait = np.maximum(spare, 0.0) * hours, np.maximum(-spare, 0.0) * hours
    return daily(supply * hours, idle, wait, adds, stage.told.rows_a_day)
