"""The live learner takes exactly the steps of the replay, and its advice is derived again from bytes alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from controller.core.advice import HeadroomSource, RuleParameters
from controller.core.errors import InputError
from controller.learning import advise, shadows
from controller.learning.candidates import LEVELS_PERMILLE, NAMES, Reach, whole_milli
from controller.learning.fleet import Terms, replay
from controller.learning.learner import Learner
from controller.learning.limits import Limits
from controller.learning.rule import GRID
from controller.learning.rule import targets as rule_targets

DAY = 288
TERMS = Terms(8, 1500, 9.0)
RULE = RuleParameters(100, 1800)
BOUND = Limits(least=1, most=14, follows=True, headroom=6, low_permille=500, high_permille=980)


def a_world(days: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Demand in whole GPUs with gaps, forecasts of it with errors, and the targets of one rule."""
    random = np.random.default_rng(5)
    slots = np.arange(days * DAY) % DAY / DAY * 24
    demand = np.round(np.where((slots >= 9) & (slots < 17), 70.0, 12.0) + random.integers(0, 9, days * DAY))
    demand[DAY + 40 : DAY + 47] = np.nan
    spread = np.linspace(0.6, 1.4, len(LEVELS_PERMILLE))
    ahead = np.nan_to_num(demand, nan=20.0)
    base = np.stack([np.roll(ahead, -k) for k in (4, 5, 8, 3, 6)], axis=1)[:, : len(Reach)]
    made = whole_milli(base[:, :, None] * spread)

    rules = GRID.index(RuleParameters(100, 1800))
    return demand, made, rule_targets(demand, TERMS)[:, rules]


@pytest.mark.parametrize("limits", [Limits(), BOUND], ids=["free", "bound"])
def test_step_by_step_is_the_replay_to_the_last_digit(limits: Limits) -> None:
    demand, made, ruled = a_world(4)
    whole = shadows.shadows(made, demand, TERMS, ruled, limits)
    at = 2 * DAY + 17
    past = shadows.shadows(made[:at], demand[:at], TERMS, ruled[:at], limits)
    live = Learner("h", past, made[:at], 0, RULE, limits)
    costs, nodes = [], []
    for row in range(at, len(demand)):
        costs += [(one.hedge, one.rule) for one in live.settle(demand[:row], row)]
        known = demand[:row][~np.isnan(demand[:row])]
        forecast = tuple(tuple(int(v) for v in one) for one in made[row])
        inputs = live.inputs(demand[:row], int(known[-1] * 1000), forecast, acts=True, raise_only=False)
        weights = advise.read_model(live.model[1], "model")
        assert np.array_equal(weights, whole.weights[row])
        found = advise.wanted(advise.read_inputs(inputs.to_bytes(), "inputs"), weights)
        assert np.array_equal(found.asked, whole.asked[row])
        live.decided(row, inputs, found)
        live.decided(row, inputs, replace(found, nodes=10**6))  # a later answer in the same row changes nothing
        nodes.append(found.nodes)
    assert nodes == whole.agreed[at:].tolist()
    assert np.allclose(costs, whole.account.cost[at:-1][:, [len(NAMES), len(NAMES) - 1]], atol=0, rtol=0)


def test_rows_without_a_tick_keep_the_last_target_and_count_what_was_recorded() -> None:
    demand, made, ruled = a_world(3)
    at = 2 * DAY
    live = Learner("h", shadows.shadows(made[:at], demand[:at], TERMS, ruled[:at]), made[:at], 0, RULE, Limits())
    settled = list(live.settle(demand[: at + 5], at + 7))
    assert [one.row for one in settled] == list(range(at, at + 7))
    assert [one.known for one in settled] == [True] * 5 + [False] * 2
    assert [one.hedge for one in settled[5:]] == [0.0, 0.0]


def test_a_forecast_is_due_once_its_window_is_over() -> None:
    """Lead 1500 s and a quarter of an hour: rows 5 to 8 after the decision's (seconds 1500 to 2400, ends included)."""
    demand, made, ruled = a_world(3)
    at = 2 * DAY
    live = Learner("h", shadows.shadows(made[:at], demand[:at], TERMS, ruled[:at]), made[:at], 0, RULE, Limits())
    first, last = Reach.QUARTER.window(TERMS.lead_s).rows(300)
    assert list(live.due(demand)) == []
    list(live.settle(demand, at + 1))
    [due] = live.due(demand)
    assert due.at_row == at
    issued = at - last
    assert due.actual == max(demand[issued + first : at + 1])
    assert due.quantile == made[issued, 0, LEVELS_PERMILLE.index(900)]


def some_inputs(**changes: object) -> advise.Inputs:
    forecast = tuple(tuple(range(1000, 1000 + 11 * 9000, 9000)) for _ in Reach)
    given = advise.Inputs("h", 8, 20_000, forecast, (), RULE, 3, Limits(), True, False, "f00d")
    return replace(given, **changes)


def test_who_does_not_act_hands_the_rule_on() -> None:
    weights = np.ones(len(NAMES), dtype=np.int64)
    quiet = advise.advice(some_inputs(acts=False), weights)
    assert (quiet.source, quiet.rule, quiet.target_milli_gpus) == (HeadroomSource.RULE, RULE, None)


def test_all_weight_on_the_rule_is_the_rules_target_and_raise_only_is_never_below_it() -> None:
    alone = np.array([0] * (len(NAMES) - 1) + [1], dtype=np.int64)
    made = advise.advice(some_inputs(rule_nodes=7), alone)
    assert (made.source, made.target_milli_gpus, made.model) == (HeadroomSource.LEARNER, 56_000, "f00d")
    first = np.array([1] + [0] * (len(NAMES) - 1), dtype=np.int64)
    low = advise.advice(some_inputs(rule_nodes=90), first)
    assert low.target_milli_gpus is not None
    assert low.target_milli_gpus < 90 * 8000
    raised = advise.advice(some_inputs(rule_nodes=90, raise_only=True), first)
    assert (raised.target_milli_gpus, raised.raise_only) == (90 * 8000, True)


def test_the_implied_quantile_is_read_off_the_forecast() -> None:
    """Quantiles .1, .2, … are 1, 10, 19, 28 GPUs …: three nodes hold 24, so the .3 quantile and not the .4."""
    assert advise.implied_permille(some_inputs(), 3) == 300
    assert advise.implied_permille(some_inputs(), 0) == 0
    assert advise.implied_permille(some_inputs(), 100) == 980


def test_damaged_bytes_are_refused_in_one_line() -> None:
    good = some_inputs().to_bytes()
    for bad in (b"", b"[]", good.replace(b'"pool"', b'"poool"'), good.replace(b"[1000,", b"[")):
        with pytest.raises(InputError):
            advise.read_inputs(bad, "inputs")
    body = advise.model_body(np.ones(len(NAMES), dtype=np.int64), "d")
    for bad in (b"", b"{}", body.replace(b'"hedge"', b'"other"'), body.replace(b'"rule"', b'"rules"')):
        with pytest.raises(InputError):
            advise.read_model(bad, "model")


@pytest.mark.parametrize("raise_only", [False, True])
def test_what_was_paid_is_the_account_of_the_targets_that_were_advised(raise_only: bool) -> None:
    """First the rule acts, then the learner, then the rule again: one fleet, replayed with those targets."""
    demand, made, ruled = a_world(4)
    at, first, last = 2 * DAY + 17, 2 * DAY + 90, 2 * DAY + 200
    past = shadows.shadows(made[:at], demand[:at], TERMS, ruled[:at])
    live, paid, advised = Learner("h", past, made[:at], 0, RULE, Limits()), [], []
    for row in range(at, len(demand)):
        paid += [one.acted for one in live.settle(demand[:row], row)]
        known = demand[:row][~np.isnan(demand[:row])]
        forecast = tuple(tuple(int(v) for v in one) for one in made[row])
        acts = first <= row < last
        inputs = live.inputs(demand[:row], int(known[-1] * 1000), forecast, acts=acts, raise_only=raise_only)
        found = advise.wanted(inputs, live.weights)
        live.decided(row, inputs, found)
        target = advise.advice(inputs, live.weights).target_milli_gpus
        advised.append(float(found.asked[-1] if target is None else target / 8000))
    targets = np.concatenate([past.ruled, advised])[:, None].astype(float)
    whole = replay(demand, targets, TERMS, int(past.ruled[0]))
    assert np.array_equal(paid, whole.cost[at:-1, 0])
    rules = replay(demand, np.concatenate([past.ruled, ruled[at:]])[:, None].astype(float), TERMS, int(past.ruled[0]))
    assert not np.array_equal(paid, rules.cost[at:-1, 0])
