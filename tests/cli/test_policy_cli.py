"""``tidegate policy`` as a script sees it: exit codes, one line a problem, one JSON document, and what DST does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from cli_in_process import Ran
from cli_in_process import tidegate as run

from controller.cli.policy import TEMPLATES

POLICY = """\
apiVersion: tidegate.dev/v1alpha1
kind: GPUPolicy
metadata: {name: p}
spec:
  timezone: Europe/Berlin
  pools:
  - {name: h100, nodes: {selector: {a: b}}, capacity: {max: 80}}
  teams:
  - name: serving
    namespaces: [serving]
    bounds: {floor: 50%}
    schedule:
    - {name: small-hours, days: [Sun], from: "02:15", to: "02:45", bounds: {floor: 10%}}
    - {name: dawn, days: [Sun], from: "02:45", to: "05:00", bounds: {ceiling: 75%}}
  - {name: dev, namespaces: [dev], bounds: {floor: 7, ceiling: 33.5%}}
"""


def tidegate(*arguments: str) -> Ran:
    return run("policy", *arguments)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "policy.yaml"
    found.write_text(POLICY)
    return found


def explained(path: Path, at: str) -> dict[str, object]:
    done = tidegate("explain", str(path), "--at", at, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, object] = json.loads(done.stdout)
    return found


def of(found: dict[str, object], team: str = "serving") -> tuple[object, ...]:
    pools = found["pools"]
    assert isinstance(pools, list)
    (row,) = [row for row in pools[0]["teams"] if row["team"] == team]
    return row["floor_gpus"], row["floor_from"], row["ceiling_gpus"], row["ceiling_from"]


def test_a_policy_that_is_fine(path: Path) -> None:
    done = tidegate("check", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{path}: fine. p: mode observe; pools h100; teams dev, serving.\n"
    as_json = tidegate("check", str(path), "--json")
    assert json.loads(as_json.stdout) == {"file": str(path), "ok": True, "problems": [], "warnings": []}


def test_a_warning_is_one_line_on_stderr_and_exit_0(path: Path) -> None:
    path.write_text(POLICY.replace("max: 80", "max: 81"))
    done = tidegate("check", str(path))
    said = "spec.pools[0].capacity.max (line 7): 81: whole nodes of 8 GPUs make 80; percentages are of 81"
    assert (done.returncode, done.stderr) == (0, f"{path}: warning: {said}\n")
    as_json = tidegate("check", str(path), "--json")
    (warning,) = json.loads(as_json.stdout)["warnings"]
    assert (as_json.returncode, warning["path"], warning["value"]) == (0, "spec.pools[0].capacity.max (line 7)", "81")


def test_show_writes_a_policy_file_with_the_defaults_spelled_out(path: Path, tmp_path: Path) -> None:
    done = tidegate("show", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert yaml.safe_load(done.stdout)["spec"]["lending"]["notice"] == "10m"
    written = tmp_path / "written.yaml"
    written.write_text(done.stdout)
    assert tidegate("show", str(written)).stdout == done.stdout
    assert tidegate("show", str(written), "--json").stdout == tidegate("show", str(path), "--json").stdout


def test_each_problem_is_one_line_on_stderr_and_exit_2(path: Path) -> None:
    path.write_text(POLICY.replace("50%", "500%").replace("max: 80", "max: none"))
    done = tidegate("check", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    allowed = "a percentage from 0% to 100% (such as 70%), or a whole number of GPUs, 0 or more"
    assert done.stderr.splitlines() == [
        f"{path}: spec.pools[0].capacity.max (line 7): none: a whole number",
        f"{path}: spec.teams[0].bounds.floor (line 11): 500%: {allowed}",
    ]
    as_json = tidegate("check", str(path), "--json")
    assert (as_json.returncode, as_json.stderr) == (2, "")
    found = json.loads(as_json.stdout)
    assert [problem["path"] for problem in found["problems"]] == [
        "spec.pools[0].capacity.max (line 7)",
        "spec.teams[0].bounds.floor (line 11)",
    ]
    assert found["ok"] is False


@pytest.mark.parametrize("command", [["check"], ["explain", "--at", "2026-06-01"], ["week"]])
def test_a_file_that_is_not_there_is_one_line_and_exit_2(command: list[str], tmp_path: Path) -> None:
    done = tidegate(command[0], str(tmp_path / "absent.yaml"), *command[1:])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{tmp_path / 'absent.yaml'}: (file): cannot be read: No such file or directory\n"


def test_a_time_that_the_clocks_skip(path: Path) -> None:
    # Berlin, 29 March 2026: after 01:59:59 CET comes 03:00:00 CEST, which is 01:00 UTC. `small-hours` does not
    # happen at all that day; `dawn` begins with the first minute after the gap and ends at 05:00 CEST, 03:00 UTC.
    found = explained(path, "2026-03-29T02:30")
    assert found["at"] == "2026-03-29T01:00:00Z"
    assert "2026-03-29T02:30 does not exist in Europe/Berlin" in str(found["remark"])
    assert of(found) == (40, "base", 60, "dawn")
    assert found["next_change"] == "2026-03-29T03:00:00Z"
    before = explained(path, "2026-03-29T01:59")
    assert (before["at"], before["remark"]) == ("2026-03-29T00:59:00Z", "")
    assert of(before) == (40, "base", 80, "base")
    assert before["next_change"] == "2026-03-29T01:00:00Z"


def test_a_time_that_comes_twice(path: Path) -> None:
    # Berlin, 25 October 2026: 02:00-03:00 passes in CEST (from 00:00 UTC) and again in CET (from 01:00 UTC).
    first = explained(path, "2026-10-25T02:30")
    assert first["at"] == "2026-10-25T00:30:00Z"
    assert "comes twice in Europe/Berlin" in str(first["remark"])
    assert of(first) == (8, "small-hours", 80, "base")
    assert first["next_change"] == "2026-10-25T00:45:00Z"
    # What begins once does not begin again: `dawn` holds from the first 02:45 on, to 05:00 CET.
    second = explained(path, "2026-10-25T02:30+01:00")
    assert (second["at"], second["remark"]) == ("2026-10-25T01:30:00Z", "")
    assert of(second) == (40, "base", 60, "dawn")
    assert second["next_change"] == "2026-10-25T04:00:00Z"


def test_absolute_gpus_and_fractions_of_a_percent(path: Path) -> None:
    # 33.5 % of 80 GPUs is 26.8; a ceiling is whole GPUs and never more than was written.
    assert of(explained(path, "2026-06-01T12:00"), "dev") == (7, "base", 26, "base")


def test_the_explanation_in_sentences(path: Path) -> None:
    done = tidegate("explain", str(path), "--at", "2026-06-07T03:00")
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "p at Sun 2026-06-07 03:00:00 CEST (2026-06-07T01:00:00Z)",
        "pool h100, bounds of 80 GPUs:",
        "  dev: floor 7 = 7 GPUs (the team's base bounds), ceiling 33.5% = 26 GPUs (the team's base bounds)",
        "  serving: floor 50% = 40 GPUs (the team's base bounds), ceiling 75% = 60 GPUs (window dawn)",
        "next change: Sun 2026-06-07 05:00:00 CEST",
    ]


@pytest.mark.parametrize("at", ["noon", "2026-13-01", "9999-12-31T23:59", "0001-01-01", ""])
def test_a_moment_that_is_none(at: str, path: Path) -> None:
    done = tidegate("explain", str(path), "--at", at)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith("--at: ")


def test_the_week_of_a_team(path: Path) -> None:
    done = tidegate("week", str(path), "--team", "serving", "--json")
    (row,) = json.loads(done.stdout)["teams"]
    told = [(s["from"], s["minutes"], s["floor"], s["ceiling"]) for s in row["spans"]]
    assert told == [
        ("Mon 00:00", 6 * 1440 + 135, "50%", "100%"),
        ("Sun 02:15", 30, "10%", "100%"),
        ("Sun 02:45", 135, "50%", "75%"),
        ("Sun 05:00", 19 * 60, "50%", "100%"),
    ]
    assert "dawn" in tidegate("week", str(path)).stdout
    wrong = tidegate("week", str(path), "--team", "nobody")
    assert (wrong.returncode, wrong.stderr) == (2, "--team: nobody: a team of this policy: dev, serving\n")


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_passes_the_check(template: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    assert tidegate("init", "--template", template, "--output", str(path)).returncode == 0
    assert tidegate("check", str(path)).returncode == 0
    assert tidegate("init", "--template", template).stdout == path.read_text()
    assert yaml.safe_load(path.read_text())["spec"]["mode"] == "observe", "nothing acts before it was watched"


def test_init_never_overwrites_unasked_and_knows_its_templates(path: Path) -> None:
    done = tidegate("init", "--output", str(path))
    assert (done.returncode, path.read_text()) == (2, POLICY)
    assert tidegate("init", "--output", str(path), "--force").returncode == 0
    assert "name: production" in path.read_text()
    unknown = tidegate("init", "--template", "prod")
    assert unknown.stderr == f"--template: prod: one of {', '.join(TEMPLATES)}\n"
    nowhere = tidegate("init", "--output", str(path.parent / "no" / "folder.yaml"))
    assert (nowhere.returncode, len(nowhere.stderr.splitlines())) == (2, 1)


def test_the_schema_is_one_document() -> None:
    done = tidegate("schema")
    assert done.returncode == 0
    assert json.loads(done.stdout)["$schema"].startswith("https://json-schema.org/")
