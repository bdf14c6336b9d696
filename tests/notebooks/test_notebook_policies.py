"""A policy in a notebook: where it comes from, how it is changed, and that nobody's file is written over."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from notebook_sources import a_history, office, write_store

from controller.core.errors import InputError
from controller.core.policy import Mode
from controller.resources.parse import load_policy
from dashboard import notebook as tg

TEXT = """\
# The platform team's policy.
apiVersion: tidegate.dev/v1alpha1
kind: GPUPolicy
metadata: {name: ours}
spec:
  mode: enforce
  pools:
  - {name: h100, nodes: {selector: {gpu: h100}}, capacity: {min: 0, max: 64}}
  teams:
  - name: dev           # never below this
    namespaces: [dev]
    bounds: {floor: 25%, ceiling: 100%}
    schedule:
    - {name: nights, days: daily, from: "20:00", to: "07:00", bounds: {floor: 10%}}
  - name: vision
    namespaces: [vision]
    bounds: {floor: 9, ceiling: 50%}
"""


@pytest.fixture
def draft(tmp_path: Path) -> tg.Draft:
    (tmp_path / "ours.yaml").write_text(TEXT)
    return tg.policy(a_history({"dev": office(1, 1, 2)}), str(tmp_path / "ours.yaml"))


def test_a_file_comes_first(draft: tg.Draft) -> None:
    assert draft.text == TEXT
    assert draft.policy.name == "ours"


def test_a_bundled_policy_by_its_name() -> None:
    assert tg.policy(a_history({"dev": office(1, 1, 2)}), "builtin:demo").policy.name == "demo"


def test_a_store_gives_the_policy_of_its_newest_decision(tmp_path: Path) -> None:
    found = tg.policy(tg.open(str(write_store(tmp_path / "s.sqlite", {"dev": office(1, 1, 2)}))))
    assert found.policy.name == "production"
    assert found.origin.startswith("decision ")


def test_one_to_begin_with_only_reads_and_has_medians_as_floors() -> None:
    history = a_history({"Dev Team": office(2, 4, 16), "dev-team": office(2, 3, 3), "???": office(2, 0, 2)})
    policy = tg.policy(history).policy
    assert policy.mode is Mode.OBSERVE
    assert policy.pools[0].limits.max_gpus == 24  # 16 + 3 + 2 GPUs in nodes of 8
    assert [team.name for team in policy.teams] == ["dev-team", "dev-team-2", "team"]
    assert [team.namespaces for team in policy.teams] == [("Dev Team",), ("dev-team",), ("???",)]
    assert [team.bounds.floor.milli_gpus for team in policy.teams] == [4000, 3000, 0]


def test_one_to_begin_with_for_demand_with_gaps() -> None:
    values = office(2, 4, 16)
    values[:300] = np.nan
    assert tg.policy(a_history({"dev": values, "late": np.full(576, 0.0)})).policy.teams[1].name == "late"


def test_a_change_is_one_line_and_comments_stay(draft: tg.Draft) -> None:
    after = draft.change({"spec.teams[dev].bounds.floor": "30%", "spec.lending": {"notice": "5m"}})
    assert after.text == TEXT.replace("floor: 25%", "floor: 30%").replace(
        "  mode: enforce\n", "  mode: enforce\n  lending: {notice: 5m}\n"
    )
    assert after.policy.lending.notice_s == 300
    assert draft.text == TEXT
    said = draft.diff(after)
    assert "-    bounds: {floor: 25%, ceiling: 100%}\n+    bounds: {floor: 30%, ceiling: 100%}" in said
    assert draft.diff(draft) == "```diff\nno difference\n```"


def test_floors_of_teams_and_windows_are_multiplied_in_their_own_unit(draft: tg.Draft) -> None:
    assert draft.floors(0.5) == {
        "spec.teams[dev].bounds.floor": "12.5%",
        "spec.teams[dev].schedule[nights].bounds.floor": "5%",
        "spec.teams[vision].bounds.floor": 4,
    }
    assert draft.change(draft.floors(0.5)).policy.teams[1].bounds.floor.milli_gpus == 4000


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"spec.teams[dev].bounds.floor": "130%"}, "floor"),
        ({"spec.teams[nobody].bounds.floor": "1%"}, "an item that is there: dev, vision"),
        ({"spec.color": "red"}, "color"),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(changes: dict[str, object], word: str, draft: tg.Draft) -> None:
    with pytest.raises(InputError, match=word):
        draft.change(changes)


def test_it_is_written_beside_the_file_it_came_from_and_never_over_it(draft: tg.Draft, tmp_path: Path) -> None:
    out = tmp_path / "tuned.yaml"
    after = draft.change({"spec.mode": "observe"})
    assert f"tidegate policy check {out}" in after.save(str(out))
    assert load_policy(out).mode is Mode.OBSERVE
    after.save(str(out))
    with pytest.raises(InputError, match="another file than the policy it came from"):
        after.save(str(tmp_path / "ours.yaml"))
    assert (tmp_path / "ours.yaml").read_text() == TEXT


def test_a_file_that_cannot_be_read_or_written_is_refused_in_one_line(draft: tg.Draft, tmp_path: Path) -> None:
    history = a_history({"dev": office(1, 1, 2)})
    for act in (
        lambda: tg.policy(history, str(tmp_path / "none.yaml")),
        lambda: tg.policy(history, str(tmp_path)),
        lambda: tg.policy(history, "builtin:nothing"),
        lambda: draft.save(str(tmp_path / "no" / "such" / "folder.yaml")),
        lambda: draft.save(str(tmp_path)),
    ):
        with pytest.raises(InputError) as caught:
            act()
        assert "\n" not in str(caught.value)


def test_it_is_shown_as_yaml(draft: tg.Draft) -> None:
    assert draft._repr_markdown_() == f"```yaml\n{TEXT.rstrip()}\n```"
