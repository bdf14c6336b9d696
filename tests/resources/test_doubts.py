"""Policies that are fine and hardly meant: each is told once, at its field; and those that are meant stay quiet."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from controller.resources.parse import review_policy

TEMPLATES = sorted((Path(__file__).resolve().parents[2] / "controller" / "resources" / "templates").glob("*.yaml"))
DEMO = Path(__file__).resolve().parents[2] / "controller" / "data" / "traces" / "demo" / "policy.yaml"


def told(text: str) -> list[tuple[str, str, str]]:
    return [(doubt.path, doubt.value, doubt.allowed) for doubt in review_policy(text)[1]]


def of_teams(**namespaces: list[str]) -> str:
    teams = [{"name": name, "namespaces": found} for name, found in namespaces.items()]
    pools = [{"name": "h100", "nodes": {"selector": {"a": "b"}}, "capacity": {"max": 8}}]
    head = {"apiVersion": "tidegate.dev/v1alpha1", "kind": "GPUPolicy", "metadata": {"name": "p"}}
    return yaml.safe_dump(head | {"spec": {"pools": pools, "teams": teams}}, sort_keys=False)


@pytest.mark.parametrize("path", [*TEMPLATES, DEMO], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_we_ship_gives_no_doubt(path: Path) -> None:
    assert told(path.read_text("utf-8")) == []


def test_the_example_of_the_design_gives_no_doubt(good: str) -> None:
    assert told(good) == []


def test_a_maximum_that_whole_nodes_do_not_reach(good: str) -> None:
    # 100 GPUs are 12 nodes of 8, which are 96, and 4 that no node has.
    assert told(good.replace("max: 128", "max: 100")) == [
        ("spec.pools[0].capacity.max (line 10)", "100", "whole nodes of 8 GPUs make 96; percentages are of 100")
    ]


def test_a_window_that_later_ones_cover_wholly(good: str) -> None:
    covered = good.replace("days: [Sat, Sun], bounds", "days: daily, bounds")
    assert told(covered) == [
        (
            "spec.teams[0].schedule[0] (line 19)",
            "nights",
            "never decides anything: later windows of the list always win",
        )
    ]


def test_a_window_that_still_decides_one_field_at_one_hour_is_meant(good: str) -> None:
    kept = good.replace("days: [Sat, Sun], bounds", 'days: daily, to: "23:45", bounds')
    assert told(kept) == []


def test_a_notice_that_outlasts_the_patience(good: str) -> None:
    ((path, value, said),) = told(good.replace("notice: 10m", "notice: 1h30m"))
    assert (path, value) == ("spec.lending.notice (line 26)", "1h30m")
    assert said == "longer than starvation.maxWait (15m): owners starve while a notice still runs"
    assert told(good.replace("notice: 10m", "notice: 15m")) == []


def test_lending_without_recall(good: str) -> None:
    ((path, value, _),) = told(good.replace("[preemptible, lower-priority]", "[]"))
    assert (path, value) == ("spec.lending.reclaim (line 26)", "[]")
    assert (
        told(good.replace("{enabled: true, notice: 10m, reclaim: [preemptible, lower-priority]", "{enabled: false"))
        == []
    )


@pytest.mark.parametrize(
    ("first", "second", "doubted"),
    [
        (["*"], ["train-*"], True),
        (["train-*"], ["train-*-gpu"], True),
        (["a-?"], ["a-[xy]"], False),
        (["a-*"], ["a-[xy]"], True),
        (["train-?"], ["train-*"], False),
        (["train-*"], ["*"], False),
        (["train-*"], ["train-x"], False),
        (["train-*"], ["dev-*"], False),
        (["a-*", "b-*"], ["?-c"], False),
    ],
)
def test_patterns_that_belong_to_another_team(first: list[str], second: list[str], doubted: bool) -> None:
    for teams in ({"alpha": first, "beta": second}, {"beta": second, "alpha": first}):  # wherever it stands in the file
        found = [(value, said.partition(" ")[0]) for _, value, said in told(of_teams(**teams))]
        assert found == [(second[0], "alpha")] * doubted


def test_a_guard_of_a_team_that_is_not_there_guards_nobody(good: str) -> None:
    ((path, value, said),) = told(good.replace("{team: dev, max", "{team: batch, max"))
    assert (path, value) == ("spec.guards.gpuFraction.team (line 32)", "batch")
    assert said.startswith("no team of this policy")
    listed = good.replace("{team: dev, max: 40%, action: evict}", "[{team: dev, max: 1%}, {team: x, max: 2%}]")
    assert [path for path, _, _ in told(listed)] == ["spec.guards.gpuFraction[1].team (line 32)"]
