"""The Learning page: who acts and why, what it would have saved, in words and for programs; sums are by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import learning_seed as seed
import pytest
from dashboard_seed import append, fill
from dashboard_server import Served
from fastapi.testclient import TestClient
from learning_seed import CLUSTER, POOL, day, events, learn, midnight, ticks, verdict
from playwright.sync_api import Browser

from controller.core.policy import LearningMode
from controller.learning.candidates import CANDIDATES, NAMES
from controller.learning.demotions import Code
from controller.learning.gate import Standing, Why
from controller.learning.ladder import Hold, LadderState
from controller.learning.monitors import Monitors
from controller.store import LearningEvent, Store, kill_key, learning_key, open_store
from dashboard.app import create_app
from dashboard.candidate_words import WORDS
from dashboard.learning import chosen_for, climb, savings, standings
from dashboard.monitor_words import readings

HTML = {"accept": "text/html"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A learner that acts on the rung raise-only."""
    path = tmp_path_factory.mktemp("learning") / "store.sqlite"
    fill(path, teams=3, ticks=12)
    learn(path, 12)
    with open_store(str(path)) as store, TestClient(create_app(store)) as client:
        yield client


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[tuple[Store, TestClient]]:
    """Ticks, and nothing of learning yet."""
    path = tmp_path / "fresh.sqlite"
    fill(path, teams=3, ticks=2)
    with open_store(str(path)) as store, TestClient(create_app(store)) as client:
        yield store, client


def test_the_standing_for_programs(client: TestClient) -> None:
    (pool,) = client.get("/api/v1/learning").json()
    assert (pool["pool"], pool["phase"], pool["ceiling"], pool["rung"]) == (POOL, "judged", "full", "raise-only")
    assert (pool["acting"], pool["learner"]) == ("hedge", "hedge")
    assert pool["saving"] == {"name": "hedge", "mean_milli": 12_000, "standard_error_milli": 976, "days": 7}
    # $32 an hour for a node of 8 GPUs.
    assert pool["gpu_hour_micro_usd"] == 4_000_000
    assert pool["climb"] == "1 more good day on this rung (2 of 3 in a row so far)."
    assert (pool["last"]["kind"], pool["last"]["code"]) == ("recovery", "INPUTS")
    assert (pool["verdict"]["at_s"], pool["verdict"]["facts"]["mean_milli"]) == (midnight(0) + 60, 12_000)
    assert [(one["name"], one["percent"]) for one in pool["weights"][:2]] == [(NAMES[0], 60.0), (NAMES[1], 25.0)]
    assert {one["code"]: (one["value"], one["state"]) for one in pool["readings"]} == {
        "INPUTS": ("4 min", "fine"),
        "COVERAGE": ("95.0 %", "fine"),
        "COST": ("0.5", "fine"),
        "LOSS": ("12.5 %", "fine"),
        "CLIPPING": ("0.5 %", "fine"),
        "INFIDELITY": ("3.0 %", "fine"),
    }


def test_the_page_says_who_acts_and_why_and_how_to_stop_it(client: TestClient) -> None:
    page = client.get("/learning", headers=HTML).text
    for said in (
        "The hedge over all candidates sets the target of h100.",
        "it may raise the target, never lower it below the rule&#39;s",
        "+12.0 ± 1.0",
        "+$48",
        "No longer held at shadow",
        seed.SAVES,
        "1 more good day",
        "tidegate learning kill",
        "learning.mode: off",
        WORDS[NAMES[0]].replace("'", "&#39;"),
    ):
        assert said in page, said
    assert page.count('aria-current="step"') == 1


def test_a_learner_that_is_held_says_by_what(tmp_path: Path) -> None:
    path = tmp_path / "held.sqlite"
    fill(path, teams=3, ticks=3)
    learn(path, 3, held=True)
    with open_store(str(path)) as store, TestClient(create_app(store)) as client:
        page = client.get("/learning", headers=HTML).text
        (pool,) = client.get("/api/v1/learning").json()
    assert "The rule sets the target of h100." in page
    assert '<p class="answer bad">' in page
    assert pool["climb"] == "It is held at shadow or below: its inputs are stale or not numbers."
    assert (pool["rung"], pool["acting"]) == ("shadow", "rule")
    age = next(one for one in pool["readings"] if one["code"] == "INPUTS")
    assert (age["value"], age["limit"], age["state"]) == ("67 min", "at most 15 min", "over")


def test_days_events_and_targets_are_given_as_stored(client: TestClient) -> None:
    days = client.get(f"/api/v1/learning/{POOL}/days?from=2025-12-20&to=2026-01-06").json()
    assert [one["saving_milli"] for one in days if one["name"] == "hedge"] == [1000 * s for s in seed.SAVINGS]
    span = "from=2025-12-20&to=2026-01-06"
    told = client.get(f"/api/v1/learning/{POOL}/events?{span}&kind=promotion").json()
    assert [one["sentence"] for one in told] == ["Up to raise-only: a good day.", "Up to advise: a good day."]
    assert len(client.get(f"/api/v1/learning/{POOL}/events?{span}&limit=3").json()) == 3
    wanted = client.get(f"/api/v1/learning/{POOL}/targets?range=all").json()
    assert (len(wanted["at_s"]), set(wanted["learner_milli_nodes"]), set(wanted["rule_milli_nodes"])) == (
        12,
        {4000},
        {3000},
    )


def test_the_chart_of_savings_has_the_learner_and_what_the_gate_made_of_it(client: TestClient) -> None:
    """The gate chose the rule until the midnight five days ago, and the hedge from then on."""
    figure = client.get(f"/api/v1/figures/learning/{POOL}/saving").json()
    hedge, gated = figure["data"]
    assert hedge["y"] == list(seed.SAVINGS)
    assert gated["y"] == [0, 0, 0, 0, 12, 8, 16, 12, 12]
    assert (hedge["x"][0], hedge["x"][-1]) == ("2025-12-27", "2026-01-04")
    assert hedge["customdata"][:2] == [12.0, -8.0]
    assert figure["layout"]["yaxis"]["title"]["text"] == "GPU-hours saved over the rule"
    assert figure["layout"]["yaxis"]["zeroline"] is True


def test_the_chart_of_targets_is_in_gpus(client: TestClient) -> None:
    """Four nodes of eight GPUs for the learner, which acts; three for the rule."""
    figure = client.get(f"/api/v1/figures/learning/{POOL}/targets?range=all").json()
    assert {trace["name"]: set(trace["y"]) for trace in figure["data"]} == {
        "aimed at": {32},
        "what the rule wants": {24},
        "what the learner wants": {32},
        "demand": {20},
    }


@pytest.mark.parametrize(
    "path", ["/learning?pool=b200", "/api/v1/learning/b200/days", f"/api/v1/figures/learning/{POOL}/pie"]
)
def test_what_is_not_there_is_refused(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "there are" in answer.json()["detail"] or "b200" in answer.json()["detail"]


def test_on_but_nothing_known(fresh: tuple[Store, TestClient]) -> None:
    _, client = fresh
    assert client.get("/api/v1/learning").json()[0]["phase"] == "new"
    page = client.get("/learning", headers=HTML).text
    assert "nothing is known of h100 yet" in page
    assert "the first verdict at the midnight after two full days" in page
    assert "data-figure" not in page


def test_on_without_two_full_days(fresh: tuple[Store, TestClient]) -> None:
    store, client = fresh
    store.append_learning(ticks(2, rung="shadow", acting="rule"), days=[day(1, "hedge", 5)])
    (pool,) = client.get("/api/v1/learning").json()
    assert (pool["phase"], pool["rung"], pool["acting"]) == ("young", "shadow", "rule")
    assert pool["climb"] == "The first verdict comes at the midnight after two full days; 1 of 2 known so far."
    assert pool["saving"] == {"name": "hedge", "mean_milli": 5000, "standard_error_milli": None, "days": 1}
    page = client.get("/learning", headers=HTML).text
    assert "The rule sets the target of h100." in page
    assert "nan" not in page


def test_off(tmp_path: Path) -> None:
    """What was recorded before stays to be seen; the rule acts whatever the newest row says."""
    path = tmp_path / "off.sqlite"
    append(path, 0, 3, learning="off")
    with open_store(str(path)) as store, TestClient(create_app(store)) as client:
        page = client.get("/learning", headers=HTML).text
        assert "Learning is off:" in page
        assert "data-figure" not in page
        store.append_learning(ticks(1), days=seed.days(), events=events())
        (pool,) = client.get("/api/v1/learning").json()
        assert (pool["phase"], pool["rung"], pool["acting"]) == ("off", "off", "rule")
        assert "data-figure" in client.get("/learning", headers=HTML).text


def test_killed_whatever_the_policy_allows_until_it_is_switched_on_again(fresh: tuple[Store, TestClient]) -> None:
    store, client = fresh
    at_s = midnight(0) + 3600
    kill = LearningEvent(CLUSTER, POOL, at_s, "kill", "off", "rule", "KILL_FLAG", (), "Learning is off: it was killed.")
    store.append_learning(ticks(2), days=seed.days(), events=events())
    store.kv_set(kill_key(CLUSTER), True)
    assert client.get("/api/v1/learning").json()[0]["phase"] == "killed", "before any tick has told of it"
    store.append_learning(events=[kill])
    (pool,) = client.get("/api/v1/learning").json()
    assert (pool["phase"], pool["ceiling"], pool["rung"], pool["acting"]) == ("killed", "full", "off", "rule")
    assert "tidegate learning revive" in pool["climb"]
    assert "Learning was killed." in client.get("/learning", headers=HTML).text
    assert "tidegate learning revive" in client.get("/learning", headers=HTML).text
    store.kv_set(kill_key(CLUSTER), False)
    again = replace(kill, at_s=at_s + 60, kind="recovery", code="SWITCHED_ON", rung="shadow", sentence="On.")
    store.append_learning(events=[again])
    assert client.get("/api/v1/learning").json()[0]["phase"] == "judged"


@pytest.mark.parametrize(
    "broken", [{"ladder": {"rung": "flying"}}, {"watch": 7}, {"weights": [["x"]]}, {"inputs_age_s": "old"}]
)
def test_what_another_version_kept_is_as_good_as_nothing(
    fresh: tuple[Store, TestClient], broken: dict[str, object]
) -> None:
    store, client = fresh
    store.append_learning(ticks(2))
    store.kv_set(learning_key(CLUSTER, POOL), seed.stands() | broken)
    (pool,) = client.get("/api/v1/learning").json()
    assert (pool["rung"], pool["acting"], pool["weights"]) == ("raise-only", "hedge", [])
    assert {one["state"] for one in pool["readings"]} == {"unknown"}
    assert client.get("/learning", headers=HTML).status_code == 200


def test_several_pools_are_a_table(tmp_path: Path) -> None:
    from dashboard_seed import forecasts_at, policy_for, snapshot_at

    from controller.core.advice import Advice
    from controller.core.decide import decide
    from controller.store import TickRecord

    policy, seen = policy_for(3), snapshot_at(0, 3)
    other = replace(policy.pools[0], name="a100")
    policy = replace(policy, pools=(other, *policy.pools))
    seen = replace(seen, pools=(replace(seen.pools[0], name="a100"), *seen.pools))
    decision = decide(seen, forecasts_at(0, 3), policy, seen.taken_at_s)
    record = TickRecord.of(
        snapshot=seen, forecasts=forecasts_at(0, 3), policy=policy, advice=Advice(), decision=decision, wall_at_s=0
    )
    path = tmp_path / "two.sqlite"
    with open_store(str(path)) as store:
        store.append(record, decision, forecasts_at(0, 3))
    learn(path, 1)
    with open_store(str(path)) as store, TestClient(create_app(store)) as client:
        first = client.get("/learning", headers=HTML).text
        assert "<h2>a100</h2>" in first
        assert "nothing is known of a100 yet" in first
        assert "+12.0 ± 1.0" in first.split('id="pools"')[1].split("</table>")[0]
        second = client.get("/learning?pool=h100", headers=HTML).text
        assert "<h2>h100</h2>" in second
        assert "/learning?range=30d&amp;pool=h100" in second


def test_sentences_are_text_and_never_markup(fresh: tuple[Store, TestClient]) -> None:
    store, client = fresh
    evil = LearningEvent(
        CLUSTER, POOL, midnight(0), "fit", "shadow", "<b>x</b>", "FIT", (), "<script>alert(1)</script>"
    )
    store.append_learning(ticks(2), events=[evil])
    page = client.get("/learning", headers=HTML).text
    assert "&lt;script&gt;alert" in page
    assert "<script>alert" not in page
    assert "<b>x</b>" not in page


def test_a_day_of_which_too_little_is_known_is_faint_and_not_counted(fresh: tuple[Store, TestClient]) -> None:
    store, client = fresh
    store.append_learning(days=[day(3, "hedge", 10), day(2, "hedge", 20), day(1, "hedge", 1000, steps=143)])
    # Of 10 and 20 the mean is 15, and the standard error half their difference.
    saving = client.get("/api/v1/learning").json()[0]["saving"]
    assert (saving["mean_milli"], saving["standard_error_milli"], saving["days"]) == (15_000, 5_000, 2)
    (hedge, _) = client.get(f"/api/v1/figures/learning/{POOL}/saving").json()["data"]
    assert hedge["marker"]["opacity"] == [1.0, 1.0, 0.35]


def test_a_gate_whose_word_is_two_days_old_or_that_said_no_lets_nobody_act() -> None:
    said = [verdict(5, "hedge", "SAVES", "")]
    assert [chosen_for(midnight(n), said) for n in (6, 5, 4, 3, 2)] == ["rule", "hedge", "hedge", "hedge", "rule"]
    kept = [verdict(5, "hedge", "NO_SAVING", "")]
    assert chosen_for(midnight(5), kept) == "rule"
    expired = LearningEvent(CLUSTER, POOL, midnight(4) + 60, "gate", "full", "rule", "VERDICT_EXPIRED", (), "")
    assert chosen_for(midnight(4), [expired, *said]) == "rule"


def test_an_account_of_the_gated_fleet_is_shown_as_it_is() -> None:
    shown = {one.name: [saved for _, saved, _ in one.days] for one in savings([day(1, "gated", 7)], [])}
    assert shown == {"gated": [7000]}
    assert savings([], []) == ()


STANDS = Standing("hedge", 12.0, 1.0, 7, Why.SAVES)
YES = verdict(0, "hedge", "SAVES", "")
NO = verdict(0, "rule", "NO_SAVING", "")


@pytest.mark.parametrize(
    ("earned", "good_days", "ceiling", "said", "standing", "policy", "expected"),
    [
        ("shadow", 0, "off", YES, STANDS, {}, "policy says off"),
        ("full", 0, "full", YES, STANDS, {}, "at the top"),
        ("advise", 0, "advise", YES, STANDS, {}, "learning.mode, advise, allows no more"),
        ("shadow", 0, "full", None, None, {}, "0 of 2 known"),
        ("shadow", 0, "full", NO, STANDS, {}, "The gate must find"),
        ("shadow", 0, "full", YES, STANDS, {}, "1 more good day on this rung (0 of 1"),
        ("raise-only", 1, "full", YES, STANDS, {}, "2 more good days on this rung (1 of 3"),
        ("raise-only", 0, "full", YES, STANDS, {"patience_days": 0}, "climbs with the next tick"),
        ("raise-only", 1, "full", YES, STANDS, {"patience_days": 5}, "4 more good days on this rung (1 of 5"),
    ],
)
def test_what_is_missing_for_the_next_rung(
    earned: str, good_days: int, ceiling: str, said: object, standing: object, policy: dict[str, int], expected: str
) -> None:
    rung = LearningMode(earned)
    ladder = LadderState(rung, rung, "hedge", good_days)
    text = climb(ladder, rung, LearningMode(ceiling), said, standing, policy)  # type: ignore[arg-type]
    assert expected in text
    assert text.endswith(".")


def test_readings_at_their_limits_are_fine_and_what_is_no_number_is_over() -> None:
    def states(seen: Monitors, *holds: Hold) -> list[str]:
        return [one.state for one in readings(seen, LadderState(holds=holds), age_known=True)]

    assert states(Monitors(900, True, 0.80, 5.0, 0.01, 0.05, 1.0)) == ["fine"] * 6
    assert states(Monitors(901, True, 0.79, 5.1, 0.011, 0.051, 1.01)) == ["over"] * 6
    assert states(Monitors(nan, True, nan, nan, nan, inf, nan)) == ["over"] * 6
    assert states(Monitors(None, loss_used=None)) == ["over", *["unknown"] * 5]
    assert states(Monitors(0), Hold(Code.INPUTS, 0, 0), Hold(Code.COST, 0)) == [
        "held",
        "unknown",
        "held",
        "fine",
        "unknown",
        "unknown",
    ]
    assert {one.value for one in readings(Monitors(nan, True, nan, nan, nan, inf, nan), None, age_known=True)} == {
        "not a number"
    }
    assert {one.state for one in readings(None, None, age_known=False)} == {"unknown"}


def test_the_saving_shown_is_the_one_that_the_gate_told_where_it_is_about_this_learner(
    fresh: tuple[Store, TestClient],
) -> None:
    """Days are recorded once, the gate replays them every night: the page must not show two means for one thing."""
    store, client = fresh
    store.append_learning(ticks(2), days=seed.days((1.0, 3.0)), events=[verdict(0, "hedge", "SAVES", seed.SAVES)])
    told = client.get("/api/v1/learning").json()[0]["saving"]
    assert told == {"name": "hedge", "mean_milli": 12_000, "standard_error_milli": 976, "days": 7}


def test_every_candidate_has_words_of_its_own() -> None:
    words = [WORDS[name] for name in NAMES]
    assert len(set(words)) == len(CANDIDATES) + 1
    assert (
        WORDS[".30 1h hold 30m"] == "at the 30 % quantile of the peak in the hour after a node's start, held for 30 min"
    )


def test_no_days_have_no_standing() -> None:
    assert standings([]) == {}


@pytest.mark.xdist_group("chromium")
def test_the_page_draws_bars_and_lines_in_a_browser(served, chromium: Browser) -> None:
    page = chromium.new_page()
    page.goto(served.url + "/learning")
    page.wait_for_selector("#saving .barlayer .trace")
    assert page.locator("#saving .barlayer .trace").count() == 2
    page.wait_for_selector("#targets .scatterlayer .trace", state="attached")
    assert page.locator("#targets .scatterlayer .trace").count() == 4
    assert page.locator("[aria-current=true]").first.text_content() == "7d"
    page.get_by_role("link", name="1d", exact=True).click()
    page.wait_for_url("**/learning?range=1d")
    page.close()


@pytest.mark.xdist_group("chromium")
def test_what_comes_first_appears_by_itself(tmp_path: Path, chromium: Browser) -> None:
    path = tmp_path / "first.sqlite"
    fill(path, teams=3, ticks=2)
    running = Served(path)
    page = chromium.new_page()
    try:
        page.goto(running.url + "/learning")
        assert page.locator("[data-figure]").count() == 0
        learn(path, 3)
        append(path, 2, teams=3)
        page.wait_for_selector("#saving .barlayer .trace", timeout=15_000)
    finally:
        page.close()
        running.stop()
