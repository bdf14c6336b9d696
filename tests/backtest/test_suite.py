"""Which cases there are, that none is run twice, and that nothing finished is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from controller.backtest import scenarios, suite, workers
from controller.backtest.results import FILE, Results
from controller.backtest.suite import Case, Extent, Source
from controller.backtest.traces import TRAIN
from controller.core.errors import InputError

TRACE = Source("a", "nowhere/a", (), "da", 1000, has_jobs=False)
JOBS = Source("b", "nowhere/b", (), "db", 2000, has_jobs=True)
TINY = suite.made_sources(1, days=3)[0]
SMALL = Case(TINY, 900, 9.0, 8, "demand")


def test_the_whole_table_is_traces_times_leads_times_weights_and_seeds_and_scenarios() -> None:
    cases = suite.plan([TRACE, JOBS], suite.made_sources(10), Extent())
    counts = {kind: sum(case.kind == kind for case in cases) for kind in ("trace", "synthetic", "robustness")}
    assert counts == {"trace": 2 * 5 * 3, "synthetic": 10 * 5 * 3, "robustness": 2 * 7 * 2}
    assert {case.lead_s // 60 for case in cases} == {1, 5, 10, 15, 30}
    assert {case.wait_weight for case in cases} == {3, 9, 30}
    assert {case.view for case in cases if case.source == JOBS and not case.scenario} == {"jobs"}
    assert {case.view for case in cases if case.scenario} == {"demand"}
    assert {case.scenario for case in cases} == {"", *scenarios.BY_NAME}


def test_a_foreign_past_is_another_trace_and_made_demand_where_there_is_but_one() -> None:
    def donors(traces: list[Source], made: list[Source]) -> list[tuple[str, str]]:
        cases = suite.plan(traces, made, Extent(robust_leads_s=(900,)))
        return sorted((case.source.label, case.other.label) for case in cases if case.other)

    assert donors([TRACE, JOBS], []) == [("a", "b"), ("b", "a")]
    assert donors([TRACE], suite.made_sources(1)) == [("a", "synthetic 1")]
    assert donors([TRACE], []) == []


def test_long_cases_come_first_and_the_same_trace_named_twice_is_run_once() -> None:
    cases = suite.plan([TRACE, JOBS, TRACE], [], Extent(robustness=False))
    assert len(cases) == 30
    weights = [case.weight for case in cases]
    assert weights == sorted(weights, reverse=True)


def test_an_id_hangs_on_all_that_makes_a_number_and_on_no_path() -> None:
    others = [
        replace(SMALL, lead_s=300),
        replace(SMALL, wait_weight=3.0),
        replace(SMALL, gpus_per_node=4),
        replace(SMALL, view="jobs"),
        replace(SMALL, scenario="stock_outs"),
        replace(SMALL, source=replace(TINY, data="other")),
        replace(SMALL, source=replace(TINY, teams=("x",))),
    ]
    assert len({case.id("code") for case in [SMALL, *others]} | {SMALL.id("code2")}) == 9
    assert replace(SMALL, source=replace(TINY, path="elsewhere", label="renamed")).id("code") == SMALL.id("code")


def test_the_command_line_and_the_loader_split_alike() -> None:
    from controller.cli.bench import TRAIN as SHOWN

    assert SHOWN == TRAIN


def test_shared_traces_are_found_and_what_cannot_be_judged_is_said(shared_traces: Path) -> None:
    found, left_out = suite.folder_sources(str(shared_traces))
    labels = {source.label for source in found}
    assert {"azure_llm_2024 azure-code", "servegen m-small/*", "helios_earth", "philly"} <= labels
    assert [line.split(":")[0] for line in left_out] == ["burstgpt", "llm_hour_samples"]
    with pytest.raises(InputError, match="no such folder"):
        suite.folder_sources("nowhere")


def test_time_left_by_hand() -> None:
    assert suite.left_s(60, 2, 8) == 180
    assert suite.left_s(60, 0, 8) is None


def test_a_result_says_what_it_is_and_a_case_that_cannot_be_had_is_refused() -> None:
    code = suite.code_fingerprint()
    short = replace(SMALL, scenario="day_of_outage")
    result = suite.run_case(short, code)
    assert result["refused"] == "day_of_outage: at least 1.5"
    assert (result["id"], result["label"], result["lead_s"]) == (short.id(code), "synthetic 1", 900)


def test_a_worker_with_other_code_adds_nothing() -> None:
    assert "other code" in suite.run_case(SMALL, "0000")["failed"]


def test_results_outlive_the_run_and_a_torn_line_costs_one_case(tmp_path: Path) -> None:
    with Results(tmp_path) as first:
        first.add({"id": "a", "policies": {}})
        first.add({"id": "b", "refused": "too short"})
        first.add({"id": "c", "failed": "out of memory"})
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"id": "d", "poli')
    with Results(tmp_path) as second:
        assert second.finished("a") == {"id": "a", "policies": {}}
        assert second.finished("b") is not None
        assert second.finished("c") is None
        assert second.finished("d") is None
        assert second.torn == 1
        second.add({"id": "d", "policies": {}})
    with Results(tmp_path) as third:
        assert third.finished("d") is not None


def test_two_runs_do_not_write_into_one_folder(tmp_path: Path) -> None:
    with Results(tmp_path), pytest.raises(InputError, match="no other run"), Results(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can be written"), Results(tmp_path / "file" / "out"):
        pass


def test_processes_and_this_process_find_the_same(tmp_path: Path) -> None:
    code = suite.code_fingerprint()
    cases = [SMALL, replace(SMALL, wait_weight=3.0)]
    found = dict(workers.Processes(2).run(cases, code))
    for case in cases:
        here = suite.run_case(case, code)
        assert found[case] | {"seconds": 0} == here | {"seconds": 0}
        assert here["policies"]["tuned_rule"]["gap_closed"] == 0.0


def test_ray_that_is_not_installed_is_one_line_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'tidegate\[ray\]'"):
        next(workers.Ray("127.0.0.1:6379").run([SMALL], "code"))


LONG = """
import sys, controller.backtest.suite as s, controller.backtest.workers as w
from controller.backtest.results import Results
from pathlib import Path
if __name__ == "__main__":
    code = s.code_fingerprint()
    cases = s.plan([], s.made_sources(40, 4), s.Extent())
    with Results(Path(sys.argv[1])) as kept:
        for case, result in w.Processes(1).run(cases, code):
            kept.add(result)
"""


def children(pid: int) -> set[int]:
    tasks = Path(f"/proc/{pid}/task/{pid}/children")
    return {int(child) for child in tasks.read_text().split()} if tasks.exists() else set()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_keeps_what_was_finished_and_leaves_no_process(tmp_path: Path, end: signal.Signals) -> None:
    script, out = tmp_path / "long.py", tmp_path / "out"
    script.write_text(LONG)
    run = subprocess.Popen([sys.executable, str(script), str(out)], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 120
    while not (out / FILE).exists() or not (out / FILE).read_bytes().count(b"\n"):
        assert time.monotonic() < until, "no case was finished"
        time.sleep(0.1)
    workers_there = children(run.pid)
    assert workers_there
    os.kill(run.pid, end)
    run.wait(60)
    while any(Path(f"/proc/{pid}").exists() for pid in workers_there):
        assert time.monotonic() < until, "a worker goes on"
        time.sleep(0.1)
    code = suite.code_fingerprint()
    with Results(out) as kept:
        cases = suite.plan([], suite.made_sources(40, 4), Extent())
        done = [case for case in cases if kept.finished(case.id(code))]
        assert 1 <= len(done) < len(cases)
