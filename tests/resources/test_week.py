"""The check of floors over the week, against counting every quarter of an hour."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.core.errors import InputError
from controller.resources.parse import parse_policy

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
WEEK = 7 * 1440
times = st.integers(0, 95).map(lambda quarter: quarter * 15)


@st.composite
def windows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Some windows of a team, with their minutes beside the words."""
    found = []
    for number in range(draw(st.integers(0, 3))):
        start, stop = draw(times), draw(times)
        days = draw(st.lists(st.sampled_from(DAYS), min_size=1, unique=True))
        found.append(
            {"name": f"w{number}", "days": days, "start": start, "stop": stop, "floor": draw(st.integers(0, 60))}
        )
    return found


def text_of(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def floor_at(base: int, schedule: list[dict[str, Any]], minute: int) -> int:
    """By the words of the reference: the later window wins; one that ends at or before its start ends the next day."""
    floor = base
    for window in schedule:
        length = window["stop"] - window["start"]
        length += 1440 if length <= 0 else 0
        starts = [DAYS.index(day) * 1440 + window["start"] for day in window["days"]]
        if any((minute - start) % WEEK < length for start in starts):
            floor = window["floor"]
    return floor


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 60), windows()), min_size=1, max_size=3))
def test_a_policy_passes_when_no_minute_of_the_week_is_over_full(teams: list[tuple[int, list[dict[str, Any]]]]) -> None:
    sums = {minute: sum(floor_at(base, schedule, minute) for base, schedule in teams) for minute in range(0, WEEK, 15)}
    over = {f"{DAYS[minute // 1440]} {text_of(minute % 1440)}": total for minute, total in sums.items() if total > 100}
    document = {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "GPUPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "pools": [{"name": "h100", "nodes": {"selector": {"a": "b"}}, "capacity": {"max": 8}}],
            "teams": [
                {
                    "name": f"t{number}",
                    "namespaces": [f"n{number}"],
                    "bounds": {"floor": f"{base}%"},
                    "schedule": [
                        {
                            "name": window["name"],
                            "days": window["days"],
                            "from": text_of(window["start"]),
                            "to": text_of(window["stop"]),
                            "bounds": {"floor": f"{window['floor']}%"},
                        }
                        for window in schedule
                    ],
                }
                for number, (base, schedule) in enumerate(teams)
            ],
        },
    }
    if not over:
        assert parse_policy(yaml.safe_dump(document)).name == "p"
        return
    with pytest.raises(InputError) as caught:
        parse_policy(yaml.safe_dump(document))
    for problem in caught.value.problems:
        first = problem.path.partition(" on ")[2].partition(",")[0]
        assert problem.value == f"floors sum to {over[first]} %"
    assert {int(p.value.split()[-2]) for p in caught.value.problems} == set(over.values())
