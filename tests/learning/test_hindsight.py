"""The hindsight learner: labels against every possible plan, no look into the future, and what it can learn."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.learning import hindsight
from controller.learning.candidates import LEVELS_PERMILLE, Reach
from controller.learning.fleet import Terms, replay
from controller.learning.hindsight import INPUTS, Move, Past, States, ToGo
from controller.learning.trees import read

DAY = 288
TERMS = Terms(8, 900, 9.0)


def cheapest(demand: np.ndarray, terms: Terms, held: int, at: int, nodes: int, action: int, most: int) -> float:
    """The least that any plan costs that begins with an action: every plan is tried."""
    lead = math.ceil(terms.lead_s / terms.step_s)
    fixed = [min(nodes, action)] * lead + [action] * held
    rest = demand[at + len(fixed) :]
    best = math.inf
    for free in itertools.product(range(most + 1), repeat=len(rest)):
        cost, before = terms.per_add * max(0, action - nodes), action
        for serving, wanted in zip([*fixed, *free], demand[at:], strict=True):
            if not math.isnan(wanted):
                spare = serving * terms.gpus_per_node - wanted
                cost += (max(spare, 0) + terms.wait_weight * max(-spare, 0)) * terms.step_s / 3600
        for serving in free:
            cost += terms.per_add * max(0, serving - before)
            before = serving
        best = min(best, cost)
    return best


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.just(math.nan), st.integers(0, 24).map(float)), min_size=5, max_size=7),
    st.sampled_from([60, 300, 600]),
    st.sampled_from([1, 2]),
    st.sampled_from([1.0, 9.0, 30.0]),
)
def test_no_plan_that_begins_with_the_action_is_cheaper_than_its_label(
    demand: list[float], lead_s: int, held: int, weight: float
) -> None:
    terms, array = Terms(8, lead_s, weight), np.array(demand)
    to_go = ToGo.of(array, terms, 3, held * 300)
    assert to_go.rows == len(demand) - math.ceil(lead_s / 300) - held + 1
    at, every = to_go.rows - 1 if to_go.rows < 3 else 1, range(4)
    for nodes in every:
        labels = [to_go.cost(np.array([at]), np.array([nodes]), np.array([a]))[0] for a in every]
        tried = [cheapest(array, terms, held, at, nodes, a, 3) for a in every]
        assert labels == pytest.approx(tried)
        regrets = [to_go.regret(np.array([at]), np.array([nodes]), np.array([a]))[0] for a in every]
        assert regrets == pytest.approx([cost - min(tried) for cost in tried])


def test_a_label_by_hand() -> None:
    # Lead and hold of one step. 8 GPUs are wanted in the second and third step: a node more costs 8 · 300 / 3600 + 2.
    to_go = ToGo.of(np.array([0.0, 8, 8, 0]), Terms(8, 300, 9.0), 2, 300)
    now, none = np.array([0]), np.array([0])
    asked = to_go.cost(now, none, np.array([1]))[0]
    assert asked == pytest.approx(8 / 12 + 2)
    # Waiting in the second step costs 9 · 8 / 12 = 6, and the node is then asked for all the same.
    assert to_go.cost(now, none, none)[0] == pytest.approx(6 + 8 / 12 + 2)
    assert to_go.regret(now, none, none)[0] == pytest.approx(6)
    # Two nodes: the price of one more, and it idles for the step that it is held.
    assert to_go.regret(now, none, np.array([2]))[0] == pytest.approx(8 / 12 + 2 + 8 / 12)


def test_quantiles_of_nodes_by_hand() -> None:
    ahead = np.tile(np.arange(1.0, 12.0), (6, 1))  # .1 at 1 node, .2 at 2, … .9 at 9, .95 at 10, .98 at 11
    nodes = np.array([0.5, 1.0, 2.5, 9.0, 10.5, 11.0])
    assert hindsight.implied(ahead, nodes).tolist() == pytest.approx([0.0, 0.1, 0.25, 0.9, 0.965, 1.0])


def test_actions_are_nearer_the_reference_while_data_is_short() -> None:
    assert hindsight.offsets(90.0, 28.0).tolist() == [-9, -6, -3, 0, 3, 6, 9]
    assert hindsight.offsets(90.0, 56.0).tolist() == [-9, -6, -3, 0, 3, 6, 9]
    assert hindsight.offsets(90.0, 14.0).tolist() == [-4, -3, -2, 0, 2, 3, 4]
    assert hindsight.offsets(2.0, 14.0).tolist() == [-1, 0, 1]


def a_past(days: int, more: int = 0, seed: int = 1) -> Past:
    """A working day every day; forecasts that are right but for a tenth; a reference of the median and ``more``."""
    rng, steps = np.random.default_rng(seed), np.arange(days * DAY)
    hours = steps % DAY / 12
    demand = np.where((hours >= 9) & (hours < 17), 90.0, 40.0) + rng.uniform(-8, 8, len(steps))
    ahead = np.array([demand[t : t + 6].max() for t in steps])
    spread = np.linspace(0.9, 1.1, len(LEVELS_PERMILLE))
    forecast = np.ceil(1000 * ahead[:, None, None] * np.ones((len(Reach), 1)) * spread).astype(np.int64)
    reference = -(-forecast[:, 0, 4] // 8000) + more
    return Past(TERMS, demand, forecast, reference, steps * 300 % 86_400)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hindsight, "MOST_ROWS", 6000)
    monkeypatch.setattr(hindsight, "LEAST_DAYS", 3)
    monkeypatch.setattr(hindsight, "REACH_DAYS", 3)
    monkeypatch.setattr(hindsight, "REACH_SHARE", 0.4)


@pytest.mark.parametrize(("more", "moves"), [(3, Move.LOWER), (-3, Move.RAISE)])
def test_it_leaves_a_reference_that_is_too_high_or_too_low(small: None, more: int, moves: Move) -> None:
    past = a_past(6, more)
    asked = hindsight.advised(past, 4 * DAY)
    late = slice(4 * DAY, None)
    moved = np.sign(asked[late] - past.reference[late])
    assert (moved == math.copysign(1, -more)).mean() > 0.8
    both = np.column_stack([asked, past.reference]).astype(float)
    cost = replay(past.demand, both, TERMS, int(past.reference[0])).cost[late].sum(axis=0)
    assert cost[0] < 0.9 * cost[1]

    model = hindsight.fit([past.between(0, 5 * DAY)])
    assert model is not None
    advice = hindsight.advise(model.trees, States.of(past), 5 * DAY + 3, int(past.reference[5 * DAY + 2]), 5.0, 8)
    assert advice.move is moves
    assert advice.extra_gpu_h < 0


def test_where_nothing_is_clearly_better_the_reference_stays(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hindsight, "MARGIN_H", 1e6)
    past = a_past(5, 3)
    assert np.array_equal(hindsight.advised(past, 0), past.reference)


def test_below_two_weeks_there_is_no_model() -> None:
    past = a_past(14)
    assert hindsight.fit([past.between(0, 14 * DAY - 1)]) is None
    assert hindsight.fit([]) is None
    assert np.array_equal(hindsight.advised(past, 0), past.reference)


def test_days_of_which_nothing_is_known_are_no_data(small: None) -> None:
    past = a_past(5)
    gone = replace(past, demand=np.where(np.arange(5 * DAY) < 3 * DAY, np.nan, past.demand))
    assert gone.days == pytest.approx(2)
    assert hindsight.fit([gone]) is None
    assert hindsight.fit([past, replace(past, demand=np.full(5 * DAY, np.nan))]) is not None


def test_a_poisoned_future_changes_nothing_before_it(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hindsight, "MARGIN_H", 0.0)
    past, cut = a_past(6, 1), 4 * DAY + 50
    forecast, reference = past.forecast.copy(), past.reference.copy()
    forecast[cut + 1 :] *= 7
    reference[cut + 1 :] += 50
    demand = np.where(np.arange(6 * DAY) >= cut, 5000.0, past.demand)
    poisoned = replace(past, demand=demand, forecast=forecast, reference=reference)
    one, two = (hindsight.advised(each, 0, [other]) for each, other in ((past, past), (poisoned, poisoned)))
    assert np.array_equal(one[: cut + 1], two[: cut + 1])
    assert (one != past.reference)[4 * DAY : cut + 1].any()  # the model had a say there
    assert not np.array_equal(one[5 * DAY :], two[5 * DAY :])


def test_a_nights_model_is_fitted_on_what_was_over_by_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hindsight, "HISTORY_DAYS", 2)
    given: list[list[Past]] = []
    monkeypatch.setattr(hindsight, "fit", lambda pasts: given.append(list(pasts)))
    one, other = a_past(4), a_past(4, seed=2)
    hindsight.advised(one, 50, [other])
    assert len(given) == 4
    for nth, weeks in enumerate(given):
        night = slice(max(0, 50 + (nth - 2) * DAY), 50 + nth * DAY)
        for shown, whole in zip(weeks, (one, other), strict=True):
            for part in ("demand", "forecast", "reference", "second_of_day"):
                assert np.array_equal(getattr(shown, part), getattr(whole, part)[night])


def test_the_same_past_is_the_same_file_and_another_past_another(small: None) -> None:
    past = a_past(4)
    one, two, other = (hindsight.fit([each]) for each in (past, past, a_past(4, seed=2)))
    assert one is not None
    assert two is not None
    assert other is not None
    assert one.body() == two.body()
    assert one.data != other.data
    assert one.code == other.code
    states = States.of(past)
    asked = states.rows(np.arange(300, 400), past.reference[300:400], past.reference[300:400] + 1)
    assert np.array_equal(read(one.body()).trees.predict(asked), one.trees.predict(asked))


def test_pools_are_put_together_only_on_the_same_terms(small: None) -> None:
    past = a_past(4)
    both, alone = hindsight.fit([past, a_past(4, seed=2)]), hindsight.fit([past])
    assert both is not None
    assert alone is not None
    assert both.data != alone.data
    with pytest.raises(ValueError, match="same nodes, lead and prices"):
        hindsight.fit([past, replace(past, terms=Terms(8, 1800, 9.0))])


def test_a_larger_pool_looks_like_a_small_one_but_for_the_size_of_a_node() -> None:
    past = a_past(3)
    one, two = States.of(past), States.of(past.scaled(3.0))
    node = INPUTS.index("node")
    seen = slice(1, None)  # the first step has seen nothing: its level is half a node for everyone
    assert np.allclose(two.inputs[seen, node], one.inputs[seen, node] / 3)
    rest = [k for k in range(one.inputs.shape[1]) if k != node]
    assert np.allclose(one.inputs[seen, rest], two.inputs[seen, rest], atol=1e-3)


def test_turning_the_clock_of_inputs_is_turning_that_of_the_past() -> None:
    past, steps = a_past(2), np.arange(300, 310)
    later = replace(past, second_of_day=(past.second_of_day + 5400) % 86_400)
    rows, wanted = (States.of(each).rows(steps, past.reference[steps], past.reference[steps]) for each in (past, later))
    hindsight._shift(rows, np.full(10, 5400))
    assert np.allclose(rows, wanted)


def test_inputs_have_their_names() -> None:
    past, step = a_past(2), np.array([400])
    row = States.of(past).rows(step, np.array([12]), np.array([14]))[0]
    assert len(row) == len(INPUTS)
    named = dict(zip(INPUTS, row, strict=True))
    level = past.demand[:400].sum() / 401 / 8  # the first step has seen nothing and counts as zero
    assert named["node"] == pytest.approx(1 / level)
    assert named["demand - reference"] == pytest.approx((past.demand[399] / 8 - past.reference[400]) / level)
    assert named["demand - demand 15m ago"] == pytest.approx((past.demand[399] - past.demand[396]) / 8 / level)
    assert named["peak of 60m - demand"] == pytest.approx((past.demand[387:400].max() - past.demand[399]) / 8 / level)
    assert named["position - reference"] == pytest.approx((12 - past.reference[400]) / level)
    assert named["action - reference"] == pytest.approx((14 - past.reference[400]) / level)
    half = past.forecast[400, list(Reach).index(Reach.HOUR), LEVELS_PERMILLE.index(500)] / 8000
    assert named[".50 1h - reference"] == pytest.approx((half - past.reference[400]) / level)
