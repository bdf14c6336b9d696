"""The rule book: every scenario of ``scenarios/*.yaml`` is one test, its id a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from core_builders import NOW_S, Scenario, instant, milli, read, seconds

from controller.core.actions import Action, Decision, Violation
from controller.core.decide import decide
from controller.core.explain import explain
from controller.core.reasons import Reason

FOLDER = Path(__file__).parent / "scenarios"
KINDS = {
    "share": ("set_share", "team"),
    "capacity": ("set_capacity", "nodes"),
    "remove": ("remove_node", "node"),
    "notice": ("give_notice", "workload"),
    "withdraw": ("withdraw_notice", "workload"),
    "evict": ("evict", "workload"),
    "cut": ("repartition", "node"),
}
FIELDS = {"gpus": "milli_gpus", "preemptible": "preemptible_milli_gpus", "for": "for_team", "gpu": "gpu_index"}
COUNTED = {"starved", "bounds_from", "longest_wait_s"}
THEN = {
    "shares",
    "preemptible",
    "teams",
    "pool",
    "actions",
    "never",
    "reasons",
    "not_reasons",
    "violations",
    "ignored",
    "says",
}


def _scenarios() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.yaml")):
        for one in yaml.safe_load(path.read_text(encoding="utf-8")):
            yield pytest.param(one, id=one["id"])


def _all_ids() -> list[str]:
    return [
        one["id"] for path in sorted(FOLDER.glob("*.yaml")) for one in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]


def test_the_ids_are_sentences_and_each_is_there_once() -> None:
    ids = _all_ids()
    assert sorted(set(ids)) == sorted(ids)
    assert all(len(one.split()) >= 4 for one in ids)


def test_the_rule_book_has_at_least_sixty_rules() -> None:
    assert len(_all_ids()) >= 60


@pytest.mark.parametrize("one", list(_scenarios()))
def test_rule(one: dict[str, Any]) -> None:
    assert set(one) <= {"id", "now", "given", "then"}, "unknown part"
    now_s = instant(one["now"]) if "now" in one else NOW_S
    scenario = read(one["given"], now_s)
    decision = decide(scenario.snapshot, scenario.forecasts, scenario.policy, now_s, scenario.advice)
    check(decision, one["then"], scenario)


def check(decision: Decision, then: Mapping[str, Any], scenario: Scenario) -> None:
    """Compare a decision with what a scenario expects; every word of ``then`` is known."""
    assert set(then) <= THEN, f"unknown in then: {set(then) - THEN}"
    teams = {team.team: team for team in decision.teams}
    assert {name: teams[name].share for name in then.get("shares", {})} == _millis(then.get("shares", {}))
    expected = _millis(then.get("preemptible", {}))
    assert {name: teams[name].preemptible_share for name in expected} == expected
    for name, fields in then.get("teams", {}).items():
        wanted = {key: value if key in COUNTED else milli(value) for key, value in fields.items()}
        assert {key: getattr(teams[name], key) for key in wanted} == wanted, name
    for key, value in then.get("pool", {}).items():
        assert getattr(decision.pools[0], key) == value, key
    if "actions" in then:
        _check_actions(decision, then["actions"], scenario.now_s)
    for kind in then.get("never", ()):
        assert [a for a in decision.actions if a.kind == KINDS[kind][0]] == [], kind
    _check_reasons(decision, then)
    _check_rest(decision, then)


def _millis(gpus: Mapping[str, Any]) -> dict[str, int]:
    return {name: milli(value) for name, value in gpus.items()}


def _check_actions(decision: Decision, wanted: list[dict[str, Any]], now_s: int) -> None:
    if not wanted:
        assert decision.actions == ()
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for one in wanted:
        word = next(iter(one))
        by_kind.setdefault(word, []).append(one)
    for word, ones in by_kind.items():
        kind, subject = KINDS[word]
        actions = [action for action in decision.actions if action.kind == kind]
        found = sorted(str(getattr(action, subject)) for action in actions)
        assert found == sorted(str(one[word]) for one in ones), f"{word}: {actions}"
        for one in ones:
            assert any(_is(action, one, word, now_s) for action in actions), f"{one} is not among {actions}"


def _is(action: Action, one: dict[str, Any], word: str, now_s: int) -> bool:
    if getattr(action, KINDS[word][1]) != one[word]:
        return False
    for key, value in list(one.items())[1:]:
        if key == "why":
            same = action.reason.code == value
        elif key == "in":
            same = getattr(action, "evict_at_s") == now_s + seconds(value)  # noqa: B009
        elif key in ("gpus", "preemptible"):
            same = getattr(action, FIELDS[key]) == milli(value)
        else:
            found = getattr(action, FIELDS.get(key, key))
            same = list(found) == value if isinstance(value, list) else found == value
        if not same:
            return False
    return True


def reasons_of(decision: Decision) -> list[Reason]:
    """All reasons of a decision: of notes, actions and violations."""
    return [
        *decision.notes,
        *(action.reason for action in decision.actions),
        *(violation.reason for violation in decision.violations),
    ]


def _check_reasons(decision: Decision, then: Mapping[str, Any]) -> None:
    reasons = reasons_of(decision)
    for one in then.get("reasons", ()):
        wanted = {"code": one} if isinstance(one, str) else one
        assert any(_reason_is(reason, wanted) for reason in reasons), f"{wanted} is not among {reasons}"
    found = {reason.code.value for reason in reasons}
    assert not found & set(then.get("not_reasons", ()))


def _reason_is(reason: Reason, wanted: Mapping[str, Any]) -> bool:
    known = {
        "code": reason.code.value,
        "pool": reason.pool,
        "team": reason.team,
        "subject": reason.subject,
        **dict(reason.facts),
    }
    return all(known.get(key) == value for key, value in wanted.items())


def _check_rest(decision: Decision, then: Mapping[str, Any]) -> None:
    if "violations" in then:
        rules = [one if isinstance(one, str) else one["rule"] for one in then["violations"]]
        assert [violation.rule for violation in decision.violations] == rules
        for violation, one in zip(decision.violations, then["violations"], strict=True):
            for key, value in {} if isinstance(one, str) else one.items():
                assert _violation_field(decision, violation, key) == value, key
    if "ignored" in then:
        assert list(decision.ignored_nodes) == then["ignored"]
    text = "\n".join(explain(decision))
    for part in then.get("says", ()):
        assert part in text


def _violation_field(decision: Decision, violation: Violation, key: str) -> Any:
    if key == "key":
        return violation.key(decision.cluster, decision.policy)
    if key == "for_s":
        return decision.at_s - violation.since_s
    found = getattr(violation, key)
    return list(found) if isinstance(found, tuple) else found
