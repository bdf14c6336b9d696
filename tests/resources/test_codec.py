"""Files of core values: what was written reads back the same to the bit, and what is wrong is refused by field."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
from core_builders import NOW_S
from core_worlds import forecasts, policies, snapshots
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.core.actions import Action, SetShare
from controller.core.advice import Advice, PoolAdvice
from controller.core.decide import decide
from controller.core.errors import InputError
from controller.core.forecast import Forecasts
from controller.core.policy import Policy
from controller.core.reasons import ReasonCode, reason
from controller.core.snapshot import Node, PoolObservation, Snapshot, Workload, WorkloadState
from controller.resources import codec
from controller.resources.parse import parse_policy

SNAPSHOT = Snapshot(
    "east",
    100,
    (PoolObservation("h100", 8, 600), PoolObservation("a100", 8, 600)),
    (Node("n1", "h100", 8, 8000, 0, 1, 2),),
    (Workload("job", "dév", "h100", 1, 1000, WorkloadState.RUNNING, 1, 2, nodes=("n1",)),),
)


def same(read: Callable[[bytes], Any], value: Any) -> None:
    data = codec.write(value)
    again = read(data)
    assert again == value
    assert codec.write(again) == data


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_tick_reads_back_and_decides_the_same(data: st.DataObject) -> None:
    policy = data.draw(policies())
    seen, ahead = data.draw(snapshots(policy)), data.draw(forecasts())
    made = decide(seen, ahead, policy, NOW_S, Advice())
    same(codec.read_policy, policy)
    same(codec.read_snapshot, seen)
    same(codec.read_forecasts, ahead)
    same(codec.read_decision, made)
    stored = [codec.write(value) for value in (seen, ahead, policy)]
    read = codec.read_snapshot(stored[0]), codec.read_forecasts(stored[1]), codec.read_policy(stored[2])
    assert codec.write(decide(*read, NOW_S, Advice())) == codec.write(made)


@settings(deadline=None)
@given(st.lists(st.builds(PoolAdvice), max_size=3, unique_by=lambda advice: advice.pool))
def test_advice_of_any_content_reads_back(pools: list[PoolAdvice]) -> None:
    same(codec.read_advice, Advice(tuple(pools)))


@settings(deadline=None)
@given(st.one_of([st.from_type(kind) for kind in get_args(Action)]), st.text())
def test_every_kind_of_action_reads_back(action: Action, name: str) -> None:
    why = reason(ReasonCode.FLOOR_MET, pool=name, asked_milli_gpus=3, of=name)
    made = replace(decide(SNAPSHOT, Forecasts(), POLICY, 100, Advice()), actions=(replace(action, reason=why),))
    same(codec.read_decision, made)


def test_a_policy_with_everything_in_it_reads_back(good: str) -> None:
    same(codec.read_policy, parse_policy(good))


POLICY = parse_policy(
    """
    apiVersion: tidegate.dev/v1alpha1
    kind: GPUPolicy
    metadata: {name: p}
    spec:
      pools: [{name: h100, nodes: {selector: {a: b}}, capacity: {max: 8}}]
      teams: [{name: dev, namespaces: ["dev"]}]
    """
)
NODE, WORK = ("nodes", 0), ("workloads", 0)
WRONG = [
    ((*NODE, "gpus"), 8.0, "nodes[0].gpus", "a whole number"),
    ((*NODE, "gpus"), "8", "nodes[0].gpus", "a whole number"),
    ((*NODE, "gpus"), True, "nodes[0].gpus", "a whole number"),
    ((*NODE, "gpus"), None, "nodes[0].gpus", "a whole number"),
    ((*NODE, "gpus"), -1, "nodes[n1].gpus", "0 or more"),
    ((*NODE, "cordoned"), 0, "nodes[0].cordoned", "true or false"),
    ((*NODE, "color"), "red", "nodes[0].color", "no such field"),
    (("color",), "red", "color", "no such field"),
    ((*NODE, "pool"), "b200", "nodes[n1].pool", "a pool of the snapshot, or empty"),
    ((*WORK, "state"), "asleep", "workloads[0].state", "one of pending or running"),
    ((*WORK, "nodes"), "n1", "workloads[0].nodes", "a list"),
    ((*WORK, "nodes"), ["n2"], "workloads[job].nodes", "nodes of the snapshot"),
    ((*WORK, "pods"), 0, "workloads[job].pods", "1 or more pods, 0 or more milli-GPUs"),
    (("nodes",), {"n1": {}}, "nodes", "a list"),
    (("pools", 0), "h100", "pools[0]", "a mapping of fields"),
    (("cluster",), 7, "cluster", "text"),
]


@pytest.mark.parametrize(("field", "value", "path", "allowed"), WRONG, ids=[f"{w[0][-1]}={w[1]!r}" for w in WRONG])
def test_a_snapshot_with_a_wrong_field_is_refused(field: tuple[Any, ...], value: Any, path: str, allowed: str) -> None:
    document = json.loads(codec.write(SNAPSHOT))
    within = document
    for part in field[:-1]:
        within = within[part]
    within[field[-1]] = value
    with pytest.raises(InputError) as caught:
        codec.read_snapshot(json.dumps(document).encode(), "s.json")
    found = {problem.path: problem.allowed for problem in caught.value.problems}
    assert allowed in found[path]
    assert all(line.startswith("s.json: ") for line in caught.value.lines())


def test_a_node_in_two_pools_is_refused_by_name() -> None:
    document = json.loads(codec.write(SNAPSHOT))
    document["nodes"].append(document["nodes"][0] | {"pool": "a100"})
    with pytest.raises(InputError) as caught:
        codec.read_snapshot(json.dumps(document).encode(), "s.json")
    assert caught.value.lines() == ["s.json: nodes[n1]: n1: a node is in one pool, not in both 'a100' and 'h100'"]


def test_a_field_left_out_is_named() -> None:
    with pytest.raises(InputError) as caught:
        codec.read_snapshot(b'{"cluster": "east", "pools": []}')
    assert [str(problem) for problem in caught.value.problems] == ["taken_at_s: missing: required"]


def test_the_checks_of_a_value_itself_are_told_plainly() -> None:
    window = {"start_s": 0, "end_s": 60, "levels_permille": [900, 500], "milli_gpus": [1, 2]}
    series = {"pool": "h100", "team": "", "issued_at_s": 0, "windows": [window], "model": "m"}
    with pytest.raises(InputError) as caught:
        codec.read_forecasts(json.dumps({"series": [series]}).encode())
    assert [(p.path, p.allowed) for p in caught.value.problems] == [("series[0].windows[0]", "forecast levels ascend")]


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 10_000, b'{"at_s": 01}'])
@pytest.mark.parametrize("read", [codec.read_snapshot, codec.read_advice, codec.read_decision])
def test_what_is_not_json_is_one_problem(read: Callable[[bytes], Any], data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        read(data)
    assert [(p.path, p.value) for p in caught.value.problems] == [("(file)", "not JSON")]


def test_an_action_of_no_known_kind_is_refused() -> None:
    why = reason(ReasonCode.FLOOR_MET, pool="h100")
    made = replace(
        decide(SNAPSHOT, Forecasts(), POLICY, 100, Advice()), actions=(SetShare("h100", "dev", 1000, 0, why),)
    )
    text = codec.write(made).decode()
    for wrong, path in (
        (text.replace('"kind":"set_share"', '"kind":"explode"'), "actions[0].kind"),
        (text.replace('"milli_gpus":1000', '"milli_gpus":"1"'), "actions[0].milli_gpus"),
        (text.replace('"actions":[', '"actions":["x",'), "actions[0].kind"),
    ):
        assert wrong != text
        with pytest.raises(InputError) as caught:
            codec.read_decision(wrong.encode())
        assert caught.value.problems[0].path == path


def test_a_policy_is_no_snapshot() -> None:
    assert isinstance(POLICY, Policy)
    with pytest.raises(InputError):
        codec.read_snapshot(codec.write(POLICY))
