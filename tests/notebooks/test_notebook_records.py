"""What a store recorded of its learner, as tables; every number is one that was written, in GPUs and GPU-hours."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from notebook_sources import CLUSTER, DAY_S, MONDAY_S, POOL, a_history, a_tick, office, write_learning, write_store

from controller.core.errors import InputError
from controller.learning.advise import model_body
from controller.learning.candidates import NAMES
from controller.store import ModelFile, open_store
from dashboard import notebook as tg
from dashboard.notebook.why import Why

DAYS = 4
END_S = MONDAY_S + DAYS * DAY_S


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tg.Recorded:
    path = tmp_path_factory.mktemp("learning") / "store.sqlite"
    write_store(path, {"dev": office(DAYS, 4, 16), "vision": office(DAYS, 2, 6)})
    write_learning(path, END_S)
    return tg.recorded(tg.open(str(path)))


def test_targets_are_in_gpus_by_the_nodes_of_the_policy(recorded: tg.Recorded) -> None:
    targets = recorded.targets()
    assert targets["wanted"].tolist() == [20.5] * 3
    assert targets["rule"].tolist() == [24] * 3
    assert targets["learner"].tolist()[:2] == [32, 16]
    assert math.isnan(targets["learner"].iloc[2])
    assert targets["aimed at"].tolist() == [32, 24, 24]
    # 23:45 UTC on Thursday is 01:45 on Friday in Berlin.
    assert targets.index.tolist() == [pd.Timestamp(f"2026-10-02 01:{minute}") for minute in (45, 50, 55)]


def test_ticks_say_who_acted_what_was_clipped_and_what_it_cost(recorded: tg.Recorded) -> None:
    first, second = recorded.ticks().iloc[0], recorded.ticks().iloc[1]
    assert (first["rung"], first["who acted"], first["clipped by"]) == ("raise-only", "hedge", "OVER_CEILING, STEP")
    assert (first["quantile"], first["cost"], first["rule's cost"], first["regret"]) == (0.87, 1.5, 2.0, 0.25)
    assert second["clipped by"] == ""
    assert math.isnan(second["cost"])


def test_savings_by_local_day_name_the_hedge_the_learner(recorded: tg.Recorded) -> None:
    savings = recorded.savings()
    assert savings.index.tolist() == [pd.Timestamp("2026-09-30"), pd.Timestamp("2026-10-01")]
    assert savings["learner"].tolist() == [2.5, -1.0]
    assert savings["rule"].tolist() == [0.0, 0.0]
    assert savings["bold"].iloc[0] == -4.0
    assert math.isnan(savings["bold"].iloc[1])


def test_the_gates_numbers_come_from_its_facts(recorded: tg.Recorded) -> None:
    gate = recorded.gate()
    assert gate["acts"].tolist() == ["rule", "hedge"]
    assert gate["saved a day"].tolist() == [2.5, 1.5]
    assert math.isnan(gate["standard error"].iloc[0])
    assert gate["score"].iloc[1] == 1.25
    assert gate["days"].tolist() == [1, 2]


def test_events_come_newest_first(recorded: tg.Recorded) -> None:
    events = recorded.events()
    assert set(events["says"].iloc[:2]) == {"It saves.", "Up to advise."}
    assert events["says"].iloc[2] == "Too few days."
    assert events.index.is_monotonic_decreasing


def test_one_moment_counts_candidates_where_no_weights_are_known(recorded: tg.Recorded) -> None:
    why = recorded.why("2026-10-02 01:47")
    assert isinstance(why, Why)
    assert (why.wanted, why.rule, why.learner, why.acts) == (20.5, 24, 32, True)
    assert why.shares().to_dict() == {16: 0.5, 24: 0.25, 40: 0.25}
    assert why.quantile == 0.87
    said = why._repr_markdown_()
    assert "the learner acts" in said
    assert "(raise)" in said
    assert "asked for 16 to 40 GPUs" in said
    assert "reaches the 87 % line of the forecast" in said


def test_a_learner_that_wanted_nothing_reached_no_quantile(recorded: tg.Recorded) -> None:
    lower, none = recorded.why("2026-10-02 01:50"), recorded.why("2026-10-02 01:55")
    assert isinstance(lower, Why)
    assert isinstance(none, Why)
    assert "(lower); the rule acts." in lower._repr_markdown_()
    assert math.isnan(none.learner)
    assert math.isnan(none.quantile)
    assert "wanted nothing" in none._repr_markdown_()


def test_weights_are_those_of_the_model_file_in_force(tmp_path: Path) -> None:
    path = write_store(tmp_path / "s.sqlite", {"dev": office(2, 4, 16)})
    end_s = MONDAY_S + 2 * DAY_S
    weights = np.zeros(len(NAMES), dtype=np.int64)
    weights[[0, -1]] = 250_000, 750_000
    body = model_body(weights, "")
    model = ModelFile.of(
        body=body, cluster=CLUSTER, pool=POOL, made_at_s=end_s, kind="hedge", code_fingerprint="", data_fingerprint=""
    )
    other = replace(model, fingerprint="of another version", body=b'{"kind":"hedge","weights":[["x",1]]}')
    asked = tuple((name, 5 if name == "rule" else 2) for name in NAMES)
    with open_store(str(path)) as store:
        store.add_model(model)
        store.add_model(other)
        store.append_learning(
            [
                a_tick(end_s - 600, model=model.fingerprint, candidates=asked),
                a_tick(end_s - 300, model=other.fingerprint, candidates=asked),
            ]
        )
    recorded = tg.recorded(tg.open(str(path)))
    table = recorded.weights()
    assert len(table) == 1
    assert table.iloc[0].to_dict() == {**dict.fromkeys(NAMES, 0.0), NAMES[0]: 0.25, "rule": 0.75}
    why = recorded.why("2026-09-30 01:50")
    assert isinstance(why, Why)
    assert why.shares().to_dict() == {16: 0.25, 40: 0.75}
    assert why.table()["in words"].iloc[0].startswith("last demand and a buffer")
    assert [one.name for one in tg.chart.weights(recorded).data][:1] == ["tuned rule"]


def test_a_moment_outside_the_record_is_refused(recorded: tg.Recorded) -> None:
    with pytest.raises(InputError, match="WHEN: 2026-10-05: a local time from 2026-10-02 01:45 to 2026-10-02 01:55"):
        recorded.why("2026-10-05")


def test_in_a_sentence(recorded: tg.Recorded) -> None:
    said = recorded._repr_markdown_()
    assert said.startswith("3 ticks and 2 shadow days on record; events: 2 gate, 1 promotion.")
    assert "Now the rung is **advise** (the policy allows full) and **rule** acts." in said


def test_a_source_without_a_learner_has_empty_tables_and_says_so(tmp_path: Path) -> None:
    plain = tg.recorded(a_history({"dev": office(3, 1, 2)}))
    store = tg.recorded(tg.open(str(write_store(tmp_path / "s.sqlite", {"dev": office(2, 1, 2)}))))
    for nothing in (plain, store):
        assert not nothing
        assert "No learner is on record" in nothing._repr_markdown_()
        for table in (
            nothing.targets(),
            nothing.ticks(),
            nothing.savings(),
            nothing.events(),
            nothing.gate(),
            nothing.weights(),
        ):
            assert table.empty
        assert "No learner is on record" in str(nothing.why())


def test_only_the_days_that_were_opened(recorded: tg.Recorded) -> None:
    path = recorded.history.source
    assert len(tg.recorded(tg.open(path, days=1)).days) == 0
    assert len(tg.recorded(tg.open(path, days=2)).days) == 2
    assert np.isfinite(tg.recorded(tg.open(path, days=2)).savings()["learner"]).all()


def test_a_stores_password_is_shown_nowhere() -> None:
    history = a_history({"dev": office(3, 1, 2)}, address="postgresql://me:secret@host/db")
    assert "secret" not in repr(history)
    assert "secret" not in history._repr_html_()
