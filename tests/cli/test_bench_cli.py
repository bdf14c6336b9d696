"""``tidegate bench`` as scripts call it: the document's shape, refusals, and the numbers that are promised."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROW = {
    "provisioned_gpu_h", "idle_gpu_h", "wait_gpu_h", "boot_gpu_h", "churn_gpu_h", "cost", "queue_p50_s", "queue_p95_s",
    "queue_p99_s", "starved_min", "node_adds", "gap_closed", "gap_ci",
}  # fmt: skip


def tidegate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "controller.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=500)


def test_one_json_document_with_the_agreed_keys_and_nothing_else() -> None:
    result = tidegate("bench", "--trace", "builtin:demo", "--view", "demand", "--team", "inference", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert set(document) == {"trace", "view", "lead_s", "wait_weight", "policies"}
    assert document["lead_s"] == 900
    assert {"static_peak", "default_reactive", "tuned_rule", "forecast", "optimum"} <= set(document["policies"])
    assert all(set(row) == ROW for row in document["policies"].values())


@pytest.mark.parametrize(
    ("trace", "teams", "lead", "least", "most"),
    [
        ("azure_llm_2024", "azure-code", "30m", 0.45, 1.0),
        ("azure_llm_2024", "azure-code", "15m", 0.25, 1.0),
        ("servegen", "m-small/*", "30m", 0.20, 1.0),
        ("helios_earth", "*", "15m", -0.02, 0.20),
        ("philly", "*", "15m", -0.02, 0.20),
    ],
)
def test_the_promised_gap_is_closed_and_the_negative_controls_show_no_leak(
    shared_traces: Path, trace: str, teams: str, lead: str, least: float, most: float
) -> None:
    result = tidegate("bench", "--trace", str(shared_traces / trace), "--team", teams, "--lead", lead, "--json")
    assert result.returncode == 0, result.stderr
    assert least <= json.loads(result.stdout)["policies"]["forecast"]["gap_closed"] <= most


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--trace", "nowhere"], "--trace: nowhere"),
        (["--trace", "builtin:nothing"], "builtin:demo"),
        (["--trace", "builtin:demo", "--team", "nobody"], "one of: inference, language, speech, vision"),
        (["--trace", "builtin:demo", "--lead", "soon"], "--lead: soon"),
        (["--trace", "builtin:demo", "--train", "1.5"], "--train: 1.5"),
        (["--trace", "builtin:demo", "--view", "clouds"], "one of jobs, demand"),
        (["--trace", "builtin:demo", "--scale", "64"], "--view demand"),
        (["--trace", "builtin:demo", "--view", "demand", "--scale", "nan"], "--scale: nan"),
        (["--trace", "builtin:demo", "--gpus-per-node", "0"], "--gpus-per-node"),
        (["--trace", "builtin:demo", "--wait-weight", "-3"], "--wait-weight"),
        (["--trace", "builtin:demo", "--speed", "9"], "--speed"),
        ([], "--trace"),
        (["--trace", "builtin:demo", "--lead", "5m", "--lead", "15m"], "--lead: 300 900"),
        (["--trace", "builtin:demo", "--out", "there"], "add --suite"),
        (["--trace", "builtin:demo", "--no-robustness"], "--no-robustness"),
        (["--suite", "--traces", "nowhere"], "--traces: nowhere"),
        (["--suite", "--trace", "nowhere"], "--trace: nowhere"),
        (["--suite", "--scale", "64"], "no --scale"),
        (["--suite", "--view", "clouds"], "one of jobs, demand"),
        (["--suite", "--jobs", "0"], "--jobs"),
        (["--suite", "--ray", "127.0.0.1:6379", "--jobs", "2"], "not with --ray"),
        (["--suite", "--gpu-hour-price", "inf"], "--gpu-hour-price: inf"),
        (["--suite", "--traces", "nowhere", "--team", "x"], "not with --traces"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: list[str], says: str) -> None:
    result = tidegate("bench", *arguments, "--json")
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert says in result.stderr


def test_a_table_for_people_shows_losses_like_wins() -> None:
    result = tidegate("bench", "--trace", "builtin:demo", "--view", "demand", "--team", "inference")
    assert result.returncode == 0
    assert "gap" in result.stdout
    assert "-" in next(line for line in result.stdout.splitlines() if "static_peak" in line)


TINY = ("--suite", "--quick", "--trace", "builtin:demo", "--team", "inference", "--seeds", "2", "--no-robustness")


def test_a_suite_writes_one_page_and_goes_on_from_what_is_there(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = tidegate("bench", *TINY, "--out", str(out), "--json")
    assert (first.returncode, first.stderr) == (0, "")
    document = json.loads(first.stdout)
    assert set(document) == {"made", "gpu_hour_price_usd", "left_out", "standings", "seeds", "worst", "cases"}
    assert document["made"]["command"].startswith("tidegate bench --suite --quick")
    assert [case["kind"] for case in document["cases"]].count("synthetic") == 2
    assert all(set(row) == ROW for case in document["cases"] for row in case["policies"].values())
    assert str(tmp_path) not in json.dumps(document["cases"])
    kept = (out / "results.jsonl").read_bytes()
    (out / "report.html").unlink()
    again = tidegate("bench", *TINY, "--out", str(out))
    assert again.returncode == 0
    assert (out / "results.jsonl").read_bytes() == kept
    assert "Worst rows first" in again.stdout
    assert (out / "report.html").read_text("utf-8").startswith("<!doctype html>")


def test_a_suite_on_ray_finds_what_processes_find(tmp_path: Path) -> None:
    small = ("--suite", "--quick", "--trace", "builtin:demo", "--team", "inference", "--seeds", "0", "--no-robustness")
    numbers = []
    for where in (("--jobs", "1"), ("--ray", "local")):
        result = tidegate("bench", *small, *where, "--json")
        assert result.returncode == 0, result.stderr
        numbers.append([case["policies"] for case in json.loads(result.stdout)["cases"]])
    assert numbers[0] == numbers[1]
    assert numbers[0]


def test_an_address_where_no_ray_is_is_one_line(tmp_path: Path) -> None:
    result = tidegate("bench", *TINY, "--ray", "nonsense")
    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1
    assert "--ray: nonsense" in result.stderr
