"""The same days under two policies: what must be equal is, what a policy forbids does not happen."""

from __future__ import annotations

import pytest
from notebook_sources import a_history, office

from controller.core.errors import InputError
from dashboard import notebook as tg
from dashboard.notebook.whatif import Comparison

DAYS = 0.5
HISTORY = a_history({"dev": office(2, 8, 24, 14, 20), "vision": office(2, 16, 8, 14, 20)})
"""The replayed half day begins at noon: dev wants 24 GPUs from 14 to 20 h, and vision gives up what dev takes more."""


@pytest.fixture(scope="module")
def draft() -> tg.Draft:
    return tg.policy(HISTORY).change({"spec.pools[gpus].capacity.max": 32, "spec.mode": "observe"})


@pytest.fixture(scope="module")
def halved(draft: tg.Draft) -> Comparison:
    small = {"spec.pools[gpus].capacity.max": 24, "spec.pools[gpus].waitWeight": 1} | draft.floors(0.5)
    return tg.what_if(HISTORY, draft, draft.change(small), days=DAYS, price=2.0)


def test_the_same_policy_twice_changes_nothing(draft: tg.Draft) -> None:
    told: list[str] = []
    same = tg.what_if(HISTORY, draft, draft, days=0.25, tell=told.append)
    assert same.table()["change"].abs().max() == 0
    assert same.before.by_team.equals(same.after.by_team)
    assert "**0 GPU-hours dearer**. Waits less: nobody. Waits more: nobody." in same.verdict()
    assert told == ["replaying 0.25 days: before", "replaying 0.25 days: after"]


def test_what_was_wanted_is_the_history(halved: Comparison) -> None:
    wanted = halved.before.by_team.groupby("at_s")["demand"].sum()
    assert len(wanted) == DAYS * 288 + 1  # both ends are looked at
    assert set(wanted) <= {24.0, 32.0}
    assert (wanted == 32.0).sum() == pytest.approx(6 * 12, abs=2)


def test_no_policy_gives_more_than_its_pool_has(halved: Comparison) -> None:
    for run, most in ((halved.before, 32), (halved.after, 24)):
        assert run.by_team.groupby("at_s")["held"].sum().max() <= most
        assert run.by_pool["ready"].max() <= most


def test_too_small_a_pool_makes_work_wait_and_the_account_says_what_that_cost(halved: Comparison) -> None:
    table = halved.table()
    assert table.loc["waiting GPU-h", "after"] > 30 > table.loc["waiting GPU-h", "before"]
    for run in (halved.before, halved.after):
        t = run.totals
        parts = t["idle GPU-h"] + t["booting GPU-h"] + t["lost GPU-h"] + 2 * t["nodes added"]
        # Both by the weight of the policy in force, 9, though the other one says 1.
        assert t["cost"] == pytest.approx(parts + 9 * t["waiting GPU-h"])
    cost = table.loc["cost", "change"]
    said = halved.verdict()
    assert f"**{abs(cost):,.0f} GPU-hours dearer** (about {2 * cost:,.0f} at 2 a GPU-hour)" in said
    assert "Waits less: nobody" in said


def test_teams_add_up_to_their_ticks(halved: Comparison) -> None:
    teams = halved.teams()
    assert teams.index.tolist() == ["dev", "vision"]
    by_team = halved.after.by_team
    waited = by_team[by_team["team"] == "dev"]["waiting"].sum() / 12
    assert teams.loc["dev", ("waited GPU-h", "after")] == pytest.approx(waited, abs=0.05)


def test_the_bundled_trace_is_replayed_with_its_jobs() -> None:
    history = tg.open("builtin:demo")
    policy = tg.policy(history)
    made = tg.what_if(history, policy, policy, days=0.1)
    assert set(made.before.by_team["team"]) == {"inference", "language", "speech", "vision"}
    assert made.before.by_team["held"].max() > 0


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"days": 0}, "DAYS: 0: more than 0 and at most the 2.0 days there are"),
        ({"days": 3}, "DAYS: 3: more than 0 and at most the 2.0 days there are"),
        ({"lead": "soon"}, "LEAD: soon: a duration"),
        ({"lead": "0s"}, "LEAD: 0s: from 1 s to 7 d"),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_one_line(given: dict[str, object], word: str, draft: tg.Draft) -> None:
    with pytest.raises(InputError) as caught:
        tg.what_if(HISTORY, draft, draft, **given)  # type: ignore[arg-type]
    assert str(caught.value) == word or str(caught.value).startswith(word)
    assert "\n" not in str(caught.value)


def test_teams_that_the_policy_does_not_know_are_named(draft: tg.Draft) -> None:
    stranger = a_history({"nobody": office(2, 8, 24)})
    with pytest.raises(InputError) as caught:
        tg.what_if(stranger, draft, draft, days=0.25)
    assert "nobody" in str(caught.value)
    assert "\n" not in str(caught.value)
