"""``tidegate bench --suite``: the cases of the whole table, and one of them run from beginning to end.

A case is a value: a source of demand, a lead, a wait weight and perhaps a scenario. Its id is a hash of that, of the
data and of the code that judges; a result is kept under it, so it is never worked out twice and never taken for that of
other data or other code.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from controller.backtest import scenarios, synthetic
from controller.backtest.jobs import nodes_taken
from controller.backtest.run import VIEWS, bench
from controller.backtest.traces import TRAIN, Trace, load_trace, trace_folder
from controller.core.errors import InputError
from controller.learning import shadows
from controller.learning.fleet import Terms
from controller.worlds.simulated.trace import BUILTIN
from forecaster.series import DAY_S

LEADS_S = (60, 300, 600, 900, 1800)
WEIGHTS = (3.0, 9.0, 30.0)
SEEDS = 10
ROBUST_LEADS_S = (900, 1800)
ROBUST_WEIGHTS = (9.0,)
QUICK_LEADS_S = (900,)
QUICK_WEIGHTS = (9.0,)
QUICK_SEEDS = 2
QUICK_DAYS = 7
DEMO = f"{BUILTIN}demo"
MADE = "synthetic:"
PARTS = {
    "azure_llm_2024": ("azure-code", "azure-conv"),
    "servegen": ("m-small/*", "m-mid/*", "m-large/*"),
}
"""What is judged by itself in traces that hold several services: each has a fleet of its own."""
FILES = ("demand_5min.parquet", "jobs.parquet", "trace.json")
JUDGING = ("controller/backtest", "controller/core", "controller/learning", "controller/worlds", "forecaster")
NOT_JUDGING = ("report.py", "results.py", "workers.py")
"""Modules beside those that show, keep or hand out: a change of them changes no number."""


@dataclass(frozen=True, slots=True, order=True)
class Source:
    """A demand. ``path``: a folder, ``builtin:NAME`` or ``synthetic:SEED:DAYS``; ``data``: a hash of what is there."""

    label: str
    path: str
    teams: tuple[str, ...]
    data: str
    rows: int
    has_jobs: bool

    @property
    def made(self) -> bool:
        """Whether it comes from the generator."""
        return self.path.startswith(MADE)


@dataclass(frozen=True, slots=True)
class Case:
    """One run of the benchmark. ``other``: whose past is taken, in the scenario that takes another's."""

    source: Source
    lead_s: int
    wait_weight: float
    gpus_per_node: int
    view: str
    scenario: str = ""
    other: Source | None = None

    @property
    def kind(self) -> str:
        """Which part of the report it belongs to."""
        if self.scenario:
            return "robustness"
        return "synthetic" if self.source.made else "trace"

    @property
    def weight(self) -> float:
        """About how long it takes, in no unit: steps, and job by job about half as much again."""
        return self.source.rows * (1.5 if self.view == "jobs" else 1.0)

    def id(self, code: str) -> str:
        """The name under which its result is kept."""
        other = self.other.data if self.other else ""
        parts = (self.source.data, self.source.teams, self.lead_s, self.wait_weight, self.gpus_per_node)
        text = orjson.dumps([*parts, self.view, self.scenario, other, code])
        return hashlib.sha256(text).hexdigest()[:20]

    def plain(self, code: str) -> dict[str, Any]:
        """What a result says of its case; no path of a machine is in it."""
        return {
            "id": self.id(code),
            "code": code,
            "kind": self.kind,
            "label": self.source.label,
            "scenario": self.scenario,
            "other": self.other.label if self.other else "",
            "view": self.view,
            "lead_s": self.lead_s,
            "wait_weight": self.wait_weight,
            "gpus_per_node": self.gpus_per_node,
        }


@cache
def code_fingerprint() -> str:
    """A hash of the modules that judge and of the libraries whose arithmetic they use, as this process found them."""
    root, digest = Path(__file__).resolve().parents[2], hashlib.sha256()
    for folder in JUDGING:
        for file in sorted((root / folder).rglob("*.py")):
            if file.name not in NOT_JUDGING:
                digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    for library in ("numpy", "scipy", "scikit-learn"):
        digest.update(version(library).encode() + b"\0")
    return digest.hexdigest()[:16]


def trace_sources(path: str, teams: Sequence[str] = ()) -> list[Source]:
    """The sources of a trace: one for each service that is judged by itself, or one of all teams.

    Raises ``InputError`` where there is no trace, or no team that matches.
    """
    name = trace_folder(path).name
    selections: list[tuple[str, ...]] = [tuple(teams)] if teams else [(part,) for part in PARTS.get(name, ())]
    found = []
    for chosen in selections or [()]:
        trace = load_trace(path, teams=chosen)
        label = " ".join((name, *chosen))
        found.append(Source(label, str(_where(path)), chosen, _data(trace.folder), trace.panel.rows, trace.has_jobs))
    return found


def _where(path: str) -> str | Path:
    return path if path.startswith(BUILTIN) else Path(path).resolve()


def _data(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in FILES:
        file = folder / name
        digest.update(name.encode() + (hashlib.sha256(file.read_bytes()).digest() if file.exists() else b"none"))
    return digest.hexdigest()[:16]


def folder_sources(folder: str) -> tuple[list[Source], list[str]]:
    """The sources of all traces in a folder, and what was left out with the reason."""
    root = Path(folder)
    if not root.is_dir():
        raise InputError.one("--traces", folder, "a folder of trace folders (no such folder)")
    found, left_out = [], []
    for path in sorted(path for path in root.iterdir() if path.is_dir()):
        try:
            found += trace_sources(str(path))
        except InputError as error:
            left_out.append(f"{path.name}: {_plainly(error)}")
    if not found:
        raise InputError.one("--traces", folder, "a folder with at least one trace (docs/reference/traces.md)")
    return found, left_out


def _plainly(error: InputError) -> str:
    return "; ".join(f"{problem.path}: {problem.allowed}" for problem in error.problems)


def made_sources(seeds: int, days: int = synthetic.DAYS) -> list[Source]:
    """Made demand, seeds 1 to ``seeds``."""
    rows = days * DAY_S // synthetic.STEP_S
    return [
        Source(f"synthetic {seed}", f"{MADE}{seed}:{days}", (), f"{MADE}{seed}:{days}", rows, has_jobs=False)
        for seed in range(1, seeds + 1)
    ]


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of the table is wanted; ``view`` None: jobs where a trace has them."""

    leads_s: tuple[int, ...] = LEADS_S
    weights: tuple[float, ...] = WEIGHTS
    robust_leads_s: tuple[int, ...] = ROBUST_LEADS_S
    robust_weights: tuple[float, ...] = ROBUST_WEIGHTS
    gpus_per_node: int = 8
    view: str | None = None
    robustness: bool = True


def plan(traces: Sequence[Source], made: Sequence[Source], extent: Extent) -> tuple[Case, ...]:
    """The cases, longest first, so that no worker is left alone with a long one at the end."""
    if extent.view is not None and extent.view not in VIEWS:
        raise InputError.one("--view", extent.view, "one of jobs, demand")
    cases = list(_table([*traces, *made], extent))
    if extent.robustness:
        cases += _robustness(traces, made, extent)
    unique = {(case.source.data, case.id("")): case for case in cases}
    return tuple(sorted(unique.values(), key=lambda case: (-case.weight, case.source, case.scenario)))


def _table(sources: Sequence[Source], extent: Extent) -> Iterator[Case]:
    for source in sources:
        if extent.view == "jobs" and not source.has_jobs:
            continue
        view = extent.view or ("jobs" if source.has_jobs else "demand")
        for lead_s in extent.leads_s:
            for weight in extent.weights:
                yield Case(source, lead_s, weight, extent.gpus_per_node, view)


def _robustness(traces: Sequence[Source], made: Sequence[Source], extent: Extent) -> Iterator[Case]:
    """Every scenario on every trace, in the demand view. Each trace's foreign past is the next one's in the list."""
    donors = list(traces) if len(traces) > 1 else [*traces, *made[:1]]
    for i, source in enumerate(traces):
        other = donors[(i + 1) % len(donors)]
        for scenario in scenarios.SCENARIOS:
            if scenario.needs_other and other == source:
                continue
            for lead_s in extent.robust_leads_s:
                for weight in extent.robust_weights:
                    donor = other if scenario.needs_other else None
                    yield Case(source, lead_s, weight, extent.gpus_per_node, "demand", scenario.name, donor)


def alike(cases: Sequence[Case]) -> list[tuple[Case, ...]]:
    """Cases that differ in the wait weight only, together: they have their forecasts in common."""
    groups: dict[Case, list[Case]] = {}
    for case in cases:
        groups.setdefault(replace(case, wait_weight=0.0), []).append(case)
    return [tuple(group) for group in groups.values()]


def run_cases(cases: Sequence[Case], code: str) -> list[dict[str, Any]]:
    """Run cases one after another in this process."""
    return [run_case(case, code) for case in cases]


def run_case(case: Case, code: str) -> dict[str, Any]:
    """Run one case; never raises. A result has ``policies``, or ``refused`` (it cannot be had), or ``failed``.

    ``code``: the fingerprint that the caller has; a machine with other code refuses to add its numbers.
    """
    begun = time.monotonic()
    said = case.plain(code)
    try:
        if (here := code_fingerprint()) != code:
            return said | {"failed": f"this worker has other code ({here}); install the same version everywhere"}
        with threadpool_limits(limits=1):
            said |= _judged(case)
    except InputError as error:
        said["refused"] = _plainly(error)
    except Exception as error:  # the boundary of a process: one case must not end the others
        said["failed"] = f"{type(error).__name__}: {error}"
    return said | {"seconds": round(time.monotonic() - begun, 2)}


def _judged(case: Case) -> dict[str, Any]:
    stage, trace = _stage(replace(case, wait_weight=0.0, lead_s=0)), _load(case.source)
    terms = Terms(case.gpus_per_node, case.lead_s, case.wait_weight, stage.told.step_s)
    made = _made(replace(case, wait_weight=0.0))
    judged = (stage.told.rows - stage.judge_from) / stage.told.rows_a_day
    if case.scenario:
        rows = scenarios.judge(stage, terms, made=made)
    else:
        rows = bench(trace, terms, case.view, made=made, taken=stage.told).rows
    return {"judged_days": round(judged, 2), "policies": {name: row.plain() for name, row in rows.items()}}


@lru_cache(maxsize=4)
def _stage(case: Case) -> scenarios.Stage:
    """The demand that a case's policies are told of; it hangs neither on the lead nor on the wait weight."""
    trace = _load(case.source)
    if case.scenario:
        other = _load(case.other) if case.other else None
        donor = (other.total, other.judge_from) if other else None
        return scenarios.prepare(case.scenario, trace.total, trace.judge_from, donor)
    total = trace.total if case.view == "demand" else nodes_taken(trace, case.gpus_per_node)
    return scenarios.staged(total, trace.judge_from)


@lru_cache(maxsize=2)
def _made(case: Case) -> NDArray[np.int64]:
    """The forecasts of a case; they hang on the lead, and not on the wait weight."""
    return shadows.forecast(_stage(replace(case, lead_s=0)).told, case.lead_s)


@lru_cache(maxsize=4)
def _load(source: Source) -> Trace:
    if source.made:
        seed, days = (int(part) for part in source.path.removeprefix(MADE).split(":"))
        panel = synthetic.panel(seed, days)
        return Trace(source.label, Path(), panel, int(panel.rows * TRAIN), has_jobs=False)
    return load_trace(source.path, teams=source.teams)


def left_s(elapsed_s: float, done: float, whole: float) -> float | None:
    """Seconds left, by the weight of the cases that are done; None before the first."""
    return elapsed_s * (whole - done) / done if done else None
