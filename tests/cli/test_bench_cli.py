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
    assert set(document["policies"]) == {"static_peak", "default_reactive", "tuned_rule", "forecast", "optimum"}
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
