"""One decision costs less than parsing the objects that it is about (docs: bounds are ratios, in ``bounds.toml``)."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import orjson
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import large_cluster

from controller.core.decide import decide

BOUNDS = tomllib.loads((Path(__file__).parent / "bounds.toml").read_text(encoding="utf-8"))


def _timed(work: Callable[[], object]) -> float:
    """CPU time, so that what else runs on the machine counts as little as possible."""
    start = process_time()
    work()
    return process_time() - start


@pytest.mark.slow
def test_a_decision_costs_less_than_parsing_the_list_of_its_pods() -> None:
    bound = BOUNDS["decide_over_parsing"]
    policy, snapshot, foreseen = large_cluster.a_policy(), large_cluster.a_snapshot(), large_cluster.forecasts()
    listed = large_cluster.pod_list()
    size = len(listed) // large_cluster.PODS
    assert 3_500 < size < 6_500, "the pods are no longer of a realistic size"
    decision = decide(snapshot, foreseen, policy, large_cluster.NOW_S)
    assert len(decision.teams) == 200
    assert decision.actions
    deciding, parsing = [], []
    for _ in range(bound["rounds"]):
        deciding.append(_timed(lambda: decide(snapshot, foreseen, policy, large_cluster.NOW_S)))
        parsing.append(_timed(lambda: orjson.loads(listed)))
    ratio = median(deciding) / median(parsing)
    print(f"decide {median(deciding):.3f} s, parsing {median(parsing):.3f} s of {size} bytes a pod, ratio {ratio:.2f}")
    assert ratio < bound["ratio"]
