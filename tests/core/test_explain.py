"""Every reason has a sentence that its own facts fill, and a line in the reference."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest
import yaml
from core_builders import NOW_S, instant, read
from test_scenarios import FOLDER, reasons_of

from controller.core.actions import GiveNotice
from controller.core.decide import decide
from controller.core.explain import SENTENCES, action_sentence, explain, sentence
from controller.core.reasons import Reason, ReasonCode, reason

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "reasons.md"
CORE = Path(__file__).parents[2] / "controller" / "core"


def test_every_reason_has_one_sentence() -> None:
    assert set(SENTENCES) == set(ReasonCode)


def test_every_reason_has_one_line_in_the_reference() -> None:
    listed = re.findall(r"^\| `([A-Z_]+)` \|", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(code.value for code in ReasonCode)


def test_every_reason_is_given_somewhere() -> None:
    """A code that nothing gives is a promise in the reference that no user ever sees kept."""
    vocabulary = {CORE / "reasons.py", CORE / "explain.py"}
    sources = [path.read_text(encoding="utf-8") for path in CORE.parent.rglob("*.py") if path not in vocabulary]
    given = {name for text in sources for name in re.findall(r"ReasonCode\.([A-Z_]+)", text)}
    assert given == {code.name for code in ReasonCode}


def _rule_book_reasons() -> list[Reason]:
    found = []
    for path in sorted(FOLDER.glob("*.yaml")):
        for one in yaml.safe_load(path.read_text(encoding="utf-8")):
            now_s = instant(one["now"]) if "now" in one else NOW_S
            scenario = read(one["given"], now_s)
            decision = decide(scenario.snapshot, scenario.forecasts, scenario.policy, now_s, scenario.advice)
            found += reasons_of(decision)
    return found


def test_sentences_use_only_facts_that_come_with_their_reason() -> None:
    """Format fields of each template against the facts that decisions of the rule book carry."""
    for why in _rule_book_reasons():
        fields = {name for _, name, _, _ in Formatter().parse(SENTENCES[why.code]) if name}
        assert fields <= {"pool", "team", "subject", *dict(why.facts)}, why
        assert ("{team}" not in SENTENCES[why.code]) or why.team or why.code in (ReasonCode.CPU_SQUATTER,), why


@pytest.mark.parametrize(
    ("why", "expected"),
    [
        (
            reason(ReasonCode.BELOW_FLOOR, team="inference", held_milli_gpus=6000, floor_milli_gpus=8000),
            "inference holds 6 GPUs and waits for more, with a floor of 8",
        ),
        (
            reason(ReasonCode.STARVED, team="research", waited_s=7500, allowed_s=900),
            "research has waited 2 h 5 min for GPUs it is entitled to; 15 min is allowed",
        ),
        (
            reason(ReasonCode.CPU_SQUATTER, pool="h100", pods=2, held_ppm=520_833, allowed_ppm=400_000),
            "2 pods without a GPU hold up to 52.0833 % of GPU nodes in h100; 40 % is allowed",
        ),
        (
            reason(ReasonCode.FRAGMENTED, pool="h100", stranded_milli_gpus=2125, smallest_milli_gpus=4000),
            "2.125 free GPUs in h100 are on fragments smaller than the 4 that waiting pods need",
        ),
    ],
)
def test_a_reason_reads_as_a_sentence_with_units(why: Reason, expected: str) -> None:
    assert sentence(why) == expected


def test_an_action_says_what_for_whom_and_why() -> None:
    why = reason(
        ReasonCode.RECLAIM_FOR_FLOOR,
        team="dev",
        subject="sweep-7",
        for_team="inference",
        asked_milli_gpus=2000,
        freed_milli_gpus=2000,
        waited_s=60,
    )
    assert action_sentence(GiveNotice("h100", "dev", "sweep-7", "inference", 0, 2000, why)) == (
        "notice to sweep-7 of dev: sweep-7 of dev gives 2 lent GPUs back to inference, "
        "which waits for 2 that are due to it"
    )


def test_the_story_of_a_decision_tells_standings_actions_notes_and_violations() -> None:
    given = {
        "policy": {
            "teams": {"inference": {"floor": 8, "priority": 10}, "dev": {}},
            "lending": {"notice": "10m"},
        },
        "nodes": 1,
        "pools": {"gpu": {"obtainable_gpus": 8, "target_nodes": 1}},
        "work": [
            {"team": "dev", "gpus": 2, "runs": "3h", "name": "sweep-7"},
            {"team": "inference", "gpus": 1, "pods": 6, "runs": "5h"},
            {"team": "inference", "gpus": 2, "waits": "5m"},
        ],
        "shares": {"inference": 8, "dev": 0},
    }
    scenario = read(given, NOW_S)
    lines = explain(decide(scenario.snapshot, scenario.forecasts, scenario.policy, NOW_S))
    assert lines[1:] == [
        "dev holds 2 of 0 GPUs it may hold in gpu; bounds 0 to 8 (base).",
        "inference holds 6 of 8 GPUs it may hold in gpu; bounds 8 to 8 (base); 2 waiting, the longest for 5 min.",
        (
            "Done: notice to sweep-7 of dev: sweep-7 of dev gives 2 lent GPUs back to inference, "
            "which waits for 2 that are due to it."
        ),
        *[line for line in lines if line.startswith("Note: ")],
        "Violation (critical): inference holds 6 GPUs and waits for more, with a floor of 8.",
    ]
    assert lines[0] == (
        "gpu has 1 nodes ready and 0 booting, 1 wanted; 8 of 8 GPUs held, demand 10, at most 8 can be had."
    )
    assert any("dev holds 2 GPUs, 2 more than the 0 it may hold" in line for line in lines)
