"""What learning leaves behind: read back as written, written once, kept as long as something needs it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text
from store_builders import DAY, T0, a_decision, put

from controller.core.canonical import canonical_bytes
from controller.store import (
    LearningDay,
    LearningEvent,
    LearningOutcome,
    LearningPoint,
    LearningTick,
    ModelFile,
    Retention,
    Store,
    open_store,
)
from controller.store.engine import open_engine, parse_url, writing
from controller.store.migrate import migrate

INPUTS = canonical_bytes({"demand": [64_000, 72_000], "zone": "Zürich"})
BODY = bytes(range(256))


def a_learning_tick(at_s: int = T0, pool: str = "h100", **given: object) -> LearningTick:
    values: dict[str, object] = {
        "cluster": "east",
        "tick_id": f"t{at_s}",
        "at_s": at_s,
        "pool": pool,
        "ceiling": "full",
        "rung": "advise",
        "acting": "rule",
        "demand_milli_gpus": 72_500,
        "lead_s": 900,
        "quantiles": ((500, 70_000), (900, 88_000)),
        "rule_nodes": 10,
        "candidates": (("q900-hold-600", 11), ("band-up", 12)),
        "learner_nodes": 11,
        "target_nodes": 10,
        "implied_permille": 870,
        "move": "raise",
        "clipped": ("OVER_CEILING", "STEP"),
        "model": "",
        "inputs": INPUTS,
    }
    return LearningTick.of(**(values | given))


def an_outcome(at_s: int = T0, pool: str = "h100") -> LearningOutcome:
    return LearningOutcome("east", f"t{at_s}", pool, at_s, rule_cost_milli=2000, cost_milli=1500, regret_milli=250)


def a_day(day_s: int = T0, name: str = "hedge", saving: int = 300) -> LearningDay:
    return LearningDay("east", "h100", day_s, name, cost_milli=4200, saving_milli=saving, steps=288)


def an_event(at_s: int = T0, kind: str = "demotion", code: str = "COVERAGE_LOST") -> LearningEvent:
    facts = (("coverage_permille", 780), ("needed_permille", 800), ("name", "hedge"))
    return LearningEvent("east", "h100", at_s, kind, "advise", "rule", code, facts, "Coverage fell below 80 %.")


def a_model(made_at_s: int = T0, body: bytes = BODY, pool: str = "h100") -> ModelFile:
    return ModelFile.of(
        cluster="east",
        pool=pool,
        made_at_s=made_at_s,
        kind="trees",
        code_fingerprint="c0de",
        data_fingerprint="da7a",
        body=body,
    )


def without_inputs(*ticks: LearningTick) -> list[LearningTick]:
    return [replace(tick, inputs=b"") for tick in ticks]


def test_what_goes_in_comes_out(store: Store) -> None:
    full = a_learning_tick()
    # Nothing was wanted, nothing forecast, nothing clipped; an empty input is still an input.
    bare = a_learning_tick(
        pool="a100", quantiles=(), candidates=(), learner_nodes=None, implied_permille=None, clipped=(), inputs=b""
    )
    added = store.append_learning([full, bare], [an_outcome()], [a_day()], [an_event()])
    assert added == 5
    assert store.learning_tick(f"t{T0}") == (bare, full)
    assert store.learning_ticks("east", "h100") == without_inputs(full)
    assert store.learning_outcomes("east", "h100") == [an_outcome()]
    assert store.learning_days("east", "h100") == [a_day()]
    assert store.learning_events("east", "h100") == [an_event()]
    assert store.learning_tick("unknown") == ()
    assert store.learning_ticks("west", "h100") == store.learning_ticks("east", "b200") == []


def test_hashes_are_the_first_16_digits_of_sha_256() -> None:
    assert a_learning_tick().inputs_hash == hashlib.sha256(INPUTS).hexdigest()[:16]
    # SHA-256 of nothing is e3b0c44298fc1c14… (FIPS 180-4 test vector).
    assert a_learning_tick(inputs=b"").inputs_hash == "e3b0c44298fc1c14"
    assert a_model(body=b"").fingerprint == "e3b0c44298fc1c14"


def test_the_same_key_twice_is_once_and_the_first_stays(store: Store) -> None:
    rows = ([a_learning_tick()], [an_outcome()], [a_day()], [an_event()])
    assert store.append_learning(*rows) == 4
    assert store.append_learning(*rows) == 0
    others = (
        [a_learning_tick(target_nodes=99, inputs=b"other"), a_learning_tick(T0 + 60)],
        [replace(an_outcome(), cost_milli=9)],
        [a_day(saving=-9)],
        [replace(an_event(), sentence="Other.")],
    )
    assert store.append_learning(*others) == 1
    assert store.learning_tick(f"t{T0}") == (a_learning_tick(),)
    assert store.learning_outcomes("east", "h100") == [an_outcome()]
    assert store.learning_days("east", "h100") == [a_day()]
    assert store.learning_events("east", "h100") == [an_event()]
    assert store.add_model(a_model())
    assert not store.add_model(replace(a_model(), made_at_s=T0 + DAY))
    assert store.model(a_model().fingerprint) == a_model()


def test_an_append_is_whole_or_not_at_all(store: Store) -> None:
    broken = replace(an_event(), facts=(("share", 0.5),))  # no float has a canonical form
    with pytest.raises(TypeError):
        store.append_learning([a_learning_tick()], [an_outcome()], [a_day()], [broken])
    assert store.learning_tick(f"t{T0}") == ()
    assert store.info().rows["learning_inputs"] == store.info().rows["learning_days"] == 0


def test_ranges_are_half_open_and_lists_newest_first(store: Store) -> None:
    moments = [T0, T0 + 60, T0 + 120, T0 + 180]
    ticks = [a_learning_tick(at_s) for at_s in moments]
    store.append_learning(ticks, map(an_outcome, moments), map(a_day, moments), map(an_event, moments))
    span = (T0 + 60, T0 + 180)
    assert store.learning_ticks("east", "h100", *span) == without_inputs(ticks[2], ticks[1])
    assert store.learning_ticks("east", "h100", *span, limit=1) == without_inputs(ticks[2])
    assert [row.at_s for row in store.learning_outcomes("east", "h100", *span)] == [T0 + 120, T0 + 60]
    assert [row.day_s for row in store.learning_days("east", "h100", *span)] == [T0 + 60, T0 + 120]
    assert [row.at_s for row in store.learning_events("east", "h100", *span)] == [T0 + 120, T0 + 60]


def test_days_come_by_day_and_name_and_events_by_kind(store: Store) -> None:
    days = [a_day(T0 + DAY, "rule"), a_day(T0 + DAY, "band-up"), a_day(T0, "rule")]
    events = [an_event(), an_event(kind="gate", code="SAVES"), an_event(T0 + 1, "kill", "MODE_OFF")]
    store.append_learning(days=days, events=events)
    assert store.learning_days("east", "h100") == [days[2], days[1], days[0]]
    assert store.learning_events("east", "h100", kind="gate") == [events[1]]
    assert store.learning_events("east", "h100", limit=1) == [events[2]]


def test_points_are_every_tick_or_means_of_stretches(store: Store) -> None:
    """Six ticks a minute apart; where two points are enough, five minutes are one, and unknown wishes count as none."""
    wishes: tuple[int | None, ...] = (10, 13, None, 12, 10, None)
    begin = T0 - T0 % 300
    store.append_learning(
        a_learning_tick(begin + 60 * k, learner_nodes=wish, rule_nodes=k, demand_milli_gpus=k)
        for k, wish in enumerate(wishes)
    )
    every = store.learning_points("east", "h100")
    assert [(one.at_s, one.learner_milli_nodes) for one in every[:3]] == [
        (begin, 10_000),
        (begin + 60, 13_000),
        (begin + 120, None),
    ]
    # (10 + 13 + 12 + 10) / 4 nodes; the rule's 0 … 4 and 5; ten nodes aimed at.
    assert store.learning_points("east", "h100", max_points=2) == [
        LearningPoint(begin, 2, 2_000, 11_250, 10_000),
        LearningPoint(begin + 300, 5, 5_000, None, 10_000),
    ]
    assert [one.at_s for one in store.learning_points("east", "h100", begin + 60, begin + 120)] == [begin + 60]
    assert store.learning_points("east", "a100") == store.learning_points("west", "h100") == []


def test_pools_may_share_a_model_file(store: Store) -> None:
    shared = a_model(pool="a100")
    assert store.add_model(a_model())
    assert store.add_model(shared)
    newer = a_model(T0 + DAY, b"newer")
    store.add_model(newer)
    assert store.model(shared.fingerprint) == shared
    assert store.models("east", "a100") == [replace(shared, body=b"")]
    assert store.models("east", "h100") == [replace(newer, body=b""), replace(a_model(), body=b"")]
    assert store.models("east", "h100", limit=1) == [replace(newer, body=b"")]
    assert store.model("unknown") is None


def test_each_kind_of_row_has_its_own_term(store: Store) -> None:
    now = T0 + 500 * DAY
    # One second too old, and just young enough, for each of the terms 14, 35 and 400 days.
    moments = [now - days * DAY - late for days in (14, 35, 400) for late in (0, 1)]
    store.append_learning(
        map(a_learning_tick, moments), map(an_outcome, moments), map(a_day, moments), map(an_event, moments)
    )
    lost = store.prune(now).rows
    assert lost["learning_inputs"] == 5
    assert lost["learning_ticks"] == lost["learning_outcomes"] == 3
    assert lost["learning_days"] == lost["learning_events"] == 1
    young, old = a_learning_tick(moments[0]), a_learning_tick(moments[1])
    assert store.learning_tick(young.tick_id) == (young,)
    # Its bytes are gone, what they hashed to is not.
    assert store.learning_tick(old.tick_id) == (replace(old, inputs=b""),)
    assert [row.at_s for row in store.learning_ticks("east", "h100")] == moments[:3]
    assert [row.at_s for row in store.learning_outcomes("east", "h100")] == moments[:3]
    assert [row.day_s for row in store.learning_days("east", "h100")] == moments[4::-1]
    assert store.prune(now).total == 0


def test_a_model_stays_while_a_tick_cites_it_and_the_newest_of_a_pool_always(store: Store) -> None:
    cited, spare, newest = (a_model(T0 + n, bytes([n])) for n in range(3))
    lonely = a_model(T0, b"lonely", "a100")
    for one in (cited, spare, newest, lonely):
        store.add_model(one)
    # A tick of another pool cites it: a model trained on one pool may act in another.
    store.append_learning([a_learning_tick(pool="b200", model=cited.fingerprint)])
    assert store.prune(T0 + 35 * DAY).rows["models"] == 1
    assert store.model(spare.fingerprint) is None
    assert store.model(cited.fingerprint) == cited
    assert store.prune(T0 + 36 * DAY).rows["models"] == 1
    assert store.model(cited.fingerprint) is None
    assert store.models("east", "h100") == [replace(newest, body=b"")]
    assert store.models("east", "a100") == [replace(lonely, body=b"")]


def test_terms_can_be_chosen(store: Store) -> None:
    store.append_learning([a_learning_tick()], days=[a_day()])
    store.prune(T0 + 2 * DAY, Retention(payload_days=1, sample_days=3, history_days=1))
    assert store.learning_tick(f"t{T0}") == (replace(a_learning_tick(), inputs=b""),)
    assert store.learning_days("east", "h100") == []


def test_from_revision_2_with_data(url: str) -> None:
    engine = open_engine(parse_url(url))
    migrate(engine, to="0002")
    with writing(engine) as connection:
        connection.execute(text("INSERT INTO kv VALUES ('learning', '{\"rung\": \"full\"}')"))
        connection.execute(text("INSERT INTO series (cluster, pool, team) VALUES ('east', 'h100', 'dev')"))
    engine.dispose()
    with open_store(url) as store:
        assert store.kv_get("learning") == {"rung": "full"}
        put(store, a_decision())
        assert store.append_learning([a_learning_tick()]) == 1
        assert store.learning_tick(f"t{T0}") == (a_learning_tick(),)
        assert store.info().rows["series"] == 2


WRITE_AND_DIE = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from test_learning import a_day, a_learning_tick, an_outcome
from controller.store import open_store
store = open_store(sys.argv[1])
store.append_learning([a_learning_tick()], [an_outcome()], [a_day()])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_kill_9_right_after_a_commit_loses_nothing(url: str) -> None:
    here = Path(__file__).parent
    died = subprocess.run([sys.executable, "-c", WRITE_AND_DIE, url, str(here)], cwd=here.parent.parent, check=False)
    assert died.returncode == -9
    with open_store(url) as store:
        assert store.learning_tick(f"t{T0}") == (a_learning_tick(),)
        assert store.learning_days("east", "h100") == [a_day()]
