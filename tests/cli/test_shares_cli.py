"""``tidegate shares``: the document that scripts are written against."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from controller.cli.app import app
from controller.core.errors import InputError

FIELDS = {
    "wait_gpu_h",
    "avoidable_wait_removed",
    "evictions",
    "lost_gpu_h",
    "below_floor_min",
    "above_ceiling_min",
    "jain",
    "worst_team_wait_share",
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Six steps of two teams on two partitions of one node: by hand 16 and 4 GPU-steps of waiting."""
    folder = tmp_path / "trace"
    folder.mkdir()
    (folder / "trace.json").write_text('{"t0": "2024-01-01T00:00:00"}', "utf-8")
    (folder / "nodes.csv").write_text("scope,name,nodes,gpus_per_node\nteam,a,1,8\nteam,b,1,8\n", "utf-8")
    gpus = {"a": [4, 4, 4, 8, 8, 4], "b": [12, 12, 16, 8, 8, 8]}
    rows = [(300 * i, team, float(x), float(x)) for team, values in gpus.items() for i, x in enumerate(values)]
    frame = pd.DataFrame(rows, columns=["t_s", "team", "wanted_mean", "wanted_max"])
    frame.to_parquet(folder / "demand_5min.parquet")
    return folder


def test_json_has_the_four_policies_and_their_fields_and_nothing_else(trace: Path) -> None:
    done = CliRunner().invoke(app, ["shares", "--trace", str(trace), "--json"])
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert set(document) == {"policies"}
    assert set(document["policies"]) == {"static_partition", "quota_borrowing", "tidegate", "pooled_bound"}
    assert {frozenset(row) for row in document["policies"].values()} == {frozenset(FIELDS)}
    waits = {name: row["wait_gpu_h"] * 12 for name, row in document["policies"].items()}
    assert waits == pytest.approx({"static_partition": 16, "quota_borrowing": 4, "tidegate": 4, "pooled_bound": 4})


def test_people_get_a_table_that_fits_80_columns(trace: Path) -> None:
    done = CliRunner().invoke(app, ["shares", "--trace", str(trace / "demand_5min.parquet")])
    assert done.exit_code == 0
    assert "100.0%" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_policy_of_ones_own_rules_the_partitions_still_compare(trace: Path, tmp_path: Path) -> None:
    """b may have no more than 8: it waits for 4, 4, 8 under tidegate as it does on its own nodes."""
    policy = tmp_path / "p.yaml"
    policy.write_text(
        "apiVersion: tidegate.dev/v1alpha1\nkind: GPUPolicy\nmetadata: {name: p}\nspec:\n  mode: observe\n"
        "  timezone: UTC\n  pools:\n  - name: x\n    nodes: {selector: {gpu: x}}\n    capacity: {max: 16}\n  teams:\n"
        "  - name: first\n    namespaces: [a]\n    bounds: {floor: 50%, ceiling: 100%}\n"
        "  - name: second\n    namespaces: [b]\n    bounds: {floor: 25%, ceiling: 50%}\n",
        "utf-8",
    )
    done = CliRunner().invoke(app, ["shares", "--trace", str(trace), "--policy", str(policy), "--json"])
    assert done.exit_code == 0, done.exception
    mine = json.loads(done.stdout)["policies"]["tidegate"]
    assert mine["wait_gpu_h"] * 12 == pytest.approx(16)
    assert mine["above_ceiling_min"] == 0


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda f: (f / "nodes.csv").unlink(), "--policy"),
        (lambda f: (f / "demand_5min.parquet").unlink(), "demand_5min.parquet"),
        (lambda f: (f / "demand_5min.parquet").write_bytes(b"no"), "Parquet"),
        (lambda f: (f / "nodes.csv").write_text("scope,name,nodes,gpus_per_node\nteam,a,x,8\n"), "nodes.csv"),
        (
            lambda f: (
                pd.read_parquet(f / "demand_5min.parquet").drop(columns="team").to_parquet(f / "demand_5min.parquet")
            ),
            "column team",
        ),
    ],
)
def test_a_broken_trace_is_refused_in_one_line(trace: Path, break_it: object, said: str) -> None:
    break_it(trace)  # type: ignore[operator]
    done = CliRunner().invoke(app, ["shares", "--trace", str(trace), "--json"])
    assert isinstance(done.exception, InputError)
    assert len(done.exception.lines()) == 1
    assert said in done.exception.lines()[0]
    assert done.stdout == ""
