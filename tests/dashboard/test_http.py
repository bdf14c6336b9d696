"""The HTTP side: the API's documents, refusals in one sentence, and what protects a browser."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from dashboard_seed import append, fill, record, snapshot_at
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from controller.store import open_store, problems_key
from dashboard.app import create_app


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    path = tmp_path_factory.mktemp("http") / "store.sqlite"
    fill(path, teams=3, ticks=12)
    with open_store(str(path)) as store, TestClient(create_app(store)) as client:
        yield client


def test_health_and_readiness_answer(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ok"}


def test_now_tells_pools_teams_and_violations(client: TestClient) -> None:
    now = client.get("/api/v1/now").json()
    assert now["tick"]["cluster"] == "seeded"
    assert now["pools"][0]["held_milli_gpus"] == 32_000
    patient = next(team for team in now["teams"] if team["team"] == "team-001")
    assert (patient["pending"], patient["held"], patient["starved"]) == (8_000, 0, True)
    assert {"starved", "below_floor"} <= {violation["rule"] for violation in now["violations"]}


def test_a_decision_is_given_back_in_its_canonical_bytes(client: TestClient) -> None:
    action = client.get("/api/v1/decisions?range=all&limit=1").json()[0]
    decision = client.get(f"/api/v1/decisions/{action['tick_id']}").json()
    assert decision["at_s"] == action["at_s"]
    assert action["sentence"].endswith(".")


def test_the_downloaded_record_is_what_explain_reads(client: TestClient, tmp_path: Path) -> None:
    from controller.cli.app import app

    tick = client.get("/api/v1/ticks/latest").json()["id"]
    file = tmp_path / "record.json"
    file.write_bytes(client.get(f"/decisions/{tick}/record.json").content)
    result = CliRunner().invoke(app, ["explain", str(file)])
    assert result.exit_code == 0, result.output
    assert "bit for bit" in result.output


def test_what_is_wrong_with_the_loop_stands_on_every_page_until_it_is_over(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    fill(path, teams=1, ticks=2)
    refused = "policy refused, the last good one stays: spec.mode: <b>fast</b>"
    with open_store(str(path)) as store, TestClient(create_app(store)) as client:
        store.kv_set(problems_key("seeded"), [refused])
        for page in ("/", "/teams", "/decisions"):
            assert "spec.mode: &lt;b&gt;fast&lt;/b&gt;" in client.get(page).text
        store.kv_set(problems_key("seeded"), [])
        assert "policy refused" not in client.get("/").text


def test_many_starved_teams_are_three_names_and_a_number(tmp_path: Path) -> None:
    """Team n waits a minute longer than team n - 1: the last ones are named, the others counted."""
    path = tmp_path / "starved.sqlite"
    append(path, 0, teams=40, waiting=20)
    with open_store(str(path)) as store, TestClient(create_app(store)) as client:
        page = client.get("/", headers={"accept": "text/html"}).text
    headline = page.split('id="answer"')[1].split("</section>")[0]
    assert "20 teams are starved" in headline
    assert [name for name in (f"team-{i:03}" for i in range(40)) if name in headline] == [
        "team-018",
        "team-019",
        "team-020",
    ]
    assert "17 more" in headline
    shown = page.split('id="team-table"')[1].split("</section>")[0]
    assert "The 30 of 40 teams that wait longest" in shown
    assert shown.index("team-020</a>") < shown.index("team-001</a>") < shown.index("team-000</a>")


def test_those_who_wait_beside_the_starved_are_told_too(tmp_path: Path) -> None:
    """Team 1 waits for what is due to it; team 2 for as much again as its share, and for less than the 15 minutes."""
    path = tmp_path / "beside.sqlite"
    append(path, 0, teams=3)
    seen = snapshot_at(0, 3)
    more = replace(seen.workloads[-1], name="hopeful", namespace="team-002", submitted_at_s=seen.taken_at_s - 300)
    record(path, replace(seen, taken_at_s=seen.taken_at_s + 60, workloads=(*seen.workloads, more)))
    with open_store(str(path)) as store, TestClient(create_app(store)) as client:
        headline = client.get("/", headers={"accept": "text/html"}).text.split('id="answer"')[1].split("</section>")[0]
    assert "1 team is starved:</b> team-001" in headline
    assert "1 team, for 8 GPUs; team-002 longest, for 6 min" in headline


def test_nodes_without_gpus_are_in_the_headline_beside_the_starved(tmp_path: Path) -> None:
    path = tmp_path / "missing.sqlite"
    seen = snapshot_at(0, 3)
    dead = replace(
        seen.nodes[0],
        name="node-dead",
        allocatable_milli_gpus=0,
        ready_at_s=seen.taken_at_s - 3600,
        joined_at_s=seen.taken_at_s - 3600,
    )
    record(path, replace(seen, nodes=(*seen.nodes, dead)))
    with open_store(str(path)) as store, TestClient(create_app(store)) as client:
        headline = client.get("/", headers={"accept": "text/html"}).text.split('id="answer"')[1].split("</section>")[0]
    assert "1 team is starved:</b> team-001" in headline
    assert "never advertised their GPUs" in headline
    assert "floor" not in headline, "that team-001 is below its floor is told by its being starved"


def test_what_is_held_above_the_share_has_a_column(client: TestClient) -> None:
    """Team 0 holds all 32 GPUs and may hold 11 of them."""
    for page, table in (("/", "team-table"), ("/teams", "all-teams")):
        rows = client.get(page, headers={"accept": "text/html"}).text.split(f'id="{table}"')[1].split("</table>")[0]
        heads = [text.split("<")[0] for text in re.findall(r"<th scope=\"col\"[^>]*>(?:<button[^>]*>)?([^<]*)", rows)]
        first = rows.split("<tbody>")[1].split("</tr>")[0]
        cells = re.findall(r"<(?:th|td)[^>]*>(.*?)</(?:th|td)>", first, re.DOTALL)
        assert cells[heads.index("overhang")] == "21"


def test_a_violation_is_named_in_words_and_measured_with_a_unit(client: TestClient) -> None:
    page = client.get("/violations?range=all", headers={"accept": "text/html"}).text
    assert ">below its floor</td>" in page
    assert "0 GPUs (8 GPUs due)" in page
    assert "<code>below_floor" not in page


def test_every_rule_of_the_core_has_words() -> None:
    import controller.core.guards as guards
    from dashboard.view import RULES

    source = Path(guards.__file__).read_text()
    named = set(re.findall(r'Violation\(\s*"(\w+)"', source))
    assert named
    assert named == set(RULES)


def test_names_are_spelt_as_the_cluster_spells_them(client: TestClient) -> None:
    """A name at the beginning of a sentence gets no capital: it could not be searched for."""
    tick = client.get("/api/v1/ticks/latest").json()["id"]
    for path in ("/", f"/decisions/{tick}", "/decisions?range=all", "/violations?range=all"):
        page = client.get(path, headers={"accept": "text/html"}).text
        assert "team-001" in page
        assert not [name for name in ("Team-0", "H100", "Greedy", "Patient") if name in page]


def test_the_fleet_chart_has_the_target_in_gpus_and_what_is_expected(client: TestClient) -> None:
    """4 nodes of 8 GPUs are the target; of tick 11 the forecast's median is 23 GPUs, its 90 % quantile 25."""
    figure = client.get("/api/v1/figures/pools/h100/fleet").json()
    traces = {trace["name"]: trace for trace in figure["data"]}
    assert set(traces["target"]["y"]) == {32}
    peak = traces["expected peak of 15 min, 50–90 %"]
    assert sorted(set(peak["y"])) == [23, 25]
    assert len([name for name in traces if name.startswith("expected")]) == 1, "the hour's window is not drawn over it"
    past = client.get("/api/v1/figures/pools/h100/fleet?to=2026-01-05T08:10:00Z").json()
    assert not [trace for trace in past["data"] if trace["name"].startswith("expected")]


def test_a_range_of_ones_own_survives_a_choice(client: TestClient) -> None:
    page = client.get(
        "/decisions?from=2026-01-05T08:00:00Z&to=2026-01-05T08:30:00Z", headers={"accept": "text/html"}
    ).text
    assert '<input type="hidden" name="from" value="2026-01-05T08:00:00Z">' in page
    assert '<input type="hidden" name="to" value="2026-01-05T08:30:00Z">' in page
    assert 'name="range"' not in page


def test_series_are_columns_of_one_length(client: TestClient) -> None:
    series = client.get("/api/v1/teams/h100/team-000/series?range=all").json()
    assert len(series["at_s"]) == 12
    assert {len(column) for column in series["values"].values()} == {12}
    assert series["values"]["held"] == [32_000] * 12


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/api/v1/now?cluster=nowhere", 404, "there are: seeded"),
        ("/api/v1/teams/h100/nobody/series", 404, "nobody"),
        ("/api/v1/decisions/ffff", 404, "ffff"),
        ("/api/v1/figures/pools/h100/pie", 404, "fleet and nodes"),
        ("/api/v1/figures/forecasts/h100/soon", 422, "600-1500"),
        ("/api/v1/now?from=yesterday", 422, "ISO time"),
        ("/api/v1/now?range=2w", 422, "range"),
        ("/api/v1/now?from=2026-01-05T09:00:00Z&to=2026-01-05T08:59:59Z", 422, "is later than to"),
        ("/api/v1/decisions?limit=0", 422, "limit"),
        ("/api/v1/decisions?before=9223372036854775808", 422, "before"),
        ("/decisions?kind=magic", 422, "set_share"),
        ("/nothing-here", 404, ""),
    ],
)
def test_what_is_refused_says_why(client: TestClient, path: str, status: int, says: str) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert says in answer.json()["detail"]


def test_a_person_gets_a_page_and_never_a_traceback(client: TestClient) -> None:
    answer = client.get("/decisions/ffff", headers={"accept": "text/html"})
    assert answer.status_code == 404
    assert "<h1>Not found</h1>" in answer.text
    assert "Traceback" not in answer.text


def test_only_own_host_names_are_answered(client: TestClient) -> None:
    assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 400
    assert client.get("/healthz", headers={"host": "localhost:8080"}).status_code == 200


def test_a_page_may_load_nothing_from_elsewhere_and_run_no_inline_script(client: TestClient) -> None:
    answer = client.get("/", headers={"accept": "text/html"})
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe-eval" not in policy
    assert "script-src" not in policy, "scripts fall under default-src"
    assert "<script>" not in answer.text
    assert "onclick" not in answer.text
    assert answer.headers["x-frame-options"] == "DENY"


def test_names_from_the_cluster_are_text_and_never_markup(tmp_path: Path) -> None:
    from dashboard_seed import policy_for, snapshot_at

    from controller.core.advice import Advice
    from controller.core.decide import decide
    from controller.core.forecast import Forecasts
    from controller.store import TickRecord

    seen = snapshot_at(0, 3)
    evil = replace(seen.workloads[0], name="<script>alert(1)</script>")
    seen = replace(seen, workloads=(evil, *seen.workloads[1:]), cluster="<b>bold</b>")
    decision = decide(seen, Forecasts(), policy_for(3), seen.taken_at_s)
    record = TickRecord.of(
        snapshot=seen, forecasts=Forecasts(), policy=policy_for(3), advice=Advice(), decision=decision, wall_at_s=0
    )
    with open_store(str(tmp_path / "evil.sqlite")) as store:
        store.append(record, decision, Forecasts())
        with TestClient(create_app(store)) as client:
            for path in ("/", "/decisions?range=all", f"/decisions/{record.id}", "/violations?range=all", "/nodes"):
                page = client.get(path, headers={"accept": "text/html"}).text
                assert "<script>alert" not in page
                assert "<b>bold" not in page


def test_every_path_of_the_interface_is_described(client: TestClient) -> None:
    described = client.get("/api/v1/openapi.json").json()
    paths = {path for path in described["paths"] if path.startswith("/api/v1")}
    reference = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "http-api.md").read_text()
    missing = [path for path in sorted(paths) if f"`{path}`" not in reference]
    assert missing == []
    assert json.dumps(described)


def test_the_same_tick_twice_is_one_tick(tmp_path: Path) -> None:
    path = tmp_path / "twice.sqlite"
    assert append(path, 0, 3) == append(path, 0, 3)
    with open_store(str(path)) as store:
        assert len(store.ticks("seeded")) == 1


def test_a_fault_of_ours_is_said_without_its_inside(tmp_path: Path) -> None:
    """A damaged record is such a fault: the page cannot be made, and says so as a page."""
    path = tmp_path / "damaged.sqlite"
    append(path, 0, 3)
    with sqlite3.connect(path) as database:
        database.execute("update policies set body = x'00'")
    with open_store(str(path)) as store, TestClient(create_app(store), raise_server_exceptions=False) as client:
        page = client.get("/", headers={"accept": "text/html"})
        document = client.get("/api/v1/now")
    assert page.status_code >= 500
    assert "<h1>" in page.text
    assert "Traceback" not in page.text
    assert document.json()["detail"]


def test_the_coming_hours_are_drawn_after_what_was(client: TestClient) -> None:
    figure = client.get("/api/v1/figures/ahead/h100?team=team-000").json()
    names = [trace.get("name") for trace in figure["data"]]
    assert {"demand so far", "expected, median"} <= set(names)
    assert len(next(t for t in figure["data"] if t.get("name") == "expected, median")["x"]) == 36
