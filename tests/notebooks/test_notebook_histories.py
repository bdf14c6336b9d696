"""Opening what an analyst has: a trace folder, a file, a store; and what is said where it is none of these."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from notebook_sources import (
    CLUSTER,
    DAY_ROWS,
    MONDAY_S,
    POOL,
    a_history,
    office,
    write_parquet,
    write_store,
)

from controller.core.errors import InputError
from controller.core.quantities import MILLI
from controller.store import open_store
from dashboard import notebook as tg
from dashboard.notebook.durations import minutes_text, seconds_of

TEAMS = {"dev": office(2, 4, 16), "vision": office(2, 2, 6)}


def test_the_bundled_trace() -> None:
    history = tg.open("builtin:demo")
    assert history.kind == "trace folder"
    assert history.teams == ("inference", "language", "speech", "vision")
    assert history.zone == "America/New_York"  # its policy's: a trace's clock is read as logged
    assert history.days == 5
    assert "kind: GPUPolicy" in history.policy_text
    assert history.folder is not None
    assert np.allclose(history.total, history.team_values.sum(axis=1), equal_nan=True)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("column", ["time", "t_s"])
def test_a_file_with_times_or_seconds(kind: str, column: str, tmp_path: Path) -> None:
    frame = pd.read_parquet(write_parquet(tmp_path / "source.parquet", TEAMS))
    if column == "t_s":
        frame["t_s"] = (
            pd.to_datetime(frame.pop("time"), utc=True) - pd.Timestamp(MONDAY_S, unit="s", tz="UTC")
        ) // pd.Timedelta("1s")
    path = tmp_path / f"demand.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    history = tg.open(str(path))
    assert history.teams == ("dev", "vision")
    assert history.team("dev").tolist() == TEAMS["dev"].tolist()
    assert history.total.tolist() == (TEAMS["dev"] + TEAMS["vision"]).tolist()
    if column == "time":
        assert history.times[0] == pd.Timestamp("2026-09-28")


def test_a_store_knows_policy_zone_and_what_ran(tmp_path: Path) -> None:
    history = tg.open(str(write_store(tmp_path / "s.sqlite", TEAMS, ticks=12)))
    assert (history.kind, history.cluster, history.pool) == ("store", CLUSTER, POOL)
    assert history.zone == "Europe/Berlin"
    assert history.teams == ("dev", "vision")
    assert history.team("dev").tolist()[:-12] == TEAMS["dev"].tolist()[:-12]
    assert history.supply is not None
    assert history.supply["ready"].tolist() == [8.0] * 12
    assert history.supply["held"].tolist() == [6.0] * 12
    assert history.supply["waiting"].tolist() == [4.0] * 12
    assert history.team_waiting is not None
    assert history.team_waiting["dev"] == 4.0  # 4 GPUs for an hour of ticks
    assert tg.policy(history).policy.name == "production"


def test_of_several_pools_the_busiest_is_taken_and_the_others_are_named(tmp_path: Path) -> None:
    path = write_store(tmp_path / "s.sqlite", TEAMS)
    with open_store(str(path)) as store:
        store.load_demand(
            CLUSTER, [(MONDAY_S + 300 * i, "a10", name, MILLI, MILLI) for i in range(600) for name in ("", "dev")]
        )
    history = tg.open(str(path))
    assert history.pool == POOL
    assert "other pools in this store: a10" in history._repr_html_()
    assert tg.open(str(path), pool="a10").total.max() == 1
    with pytest.raises(InputError, match="POOL: t4: one of a10, h100"):
        tg.open(str(path), pool="t4")
    with pytest.raises(InputError, match="CLUSTER: west: one of east"):
        tg.open(str(path), cluster="west")


def test_teams_are_chosen_by_pattern_and_the_total_is_theirs(tmp_path: Path) -> None:
    path = str(write_parquet(tmp_path / "d.parquet", TEAMS | {"dev-2": office(2, 1, 1)}))
    some = tg.open(path, team="dev*")
    assert some.teams == ("dev", "dev-2")
    assert some.total.tolist() == (TEAMS["dev"] + 1).tolist()
    assert tg.open(path, team="dev, vision").teams == ("dev", "vision")
    assert tg.open(path, team="*").teams == ("dev", "dev-2", "vision")
    with pytest.raises(InputError) as caught:
        tg.open(path, team="nobody")
    assert "\n" not in str(caught.value)


def test_the_last_days_and_another_time_zone(tmp_path: Path) -> None:
    path = str(write_parquet(tmp_path / "d.parquet", TEAMS))
    last = tg.open(path, days=1, zone="Asia/Tokyo")
    assert last.panel.rows == DAY_ROWS
    assert last.times[0] == pd.Timestamp("2026-09-29 09:00")
    assert 0 < last.judge_from < last.panel.rows
    assert tg.open(path, days=99).days == 2
    for given, word in (({"days": -1}, "DAYS: -1: 0 for all"), ({"zone": "Mars"}, "ZONE: Mars: an IANA time zone")):
        with pytest.raises(InputError, match=word):
            tg.open(path, **given)  # type: ignore[arg-type]


def test_what_is_no_source_is_refused_in_one_line_that_says_what_is(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("hello")
    (tmp_path / "broken.parquet").write_text("hello")
    (tmp_path / "columns.csv").write_text("a,b\n1,2\n")
    (tmp_path / "times.csv").write_text("time,team,wanted_mean\nnoon,dev,2\n")
    (tmp_path / "empty").mkdir()
    for name in ("no-such-file", "text.txt", "broken.parquet", "columns.csv", "times.csv", "empty"):
        with pytest.raises(InputError) as caught:
            tg.open(str(tmp_path / name))
        assert "\n" not in str(caught.value), name
    for source in ("", "builtin:nothing", "mysql://host/db"):
        with pytest.raises(InputError) as caught:
            tg.open(source)
        assert "\n" not in str(caught.value), source


def test_a_store_in_which_nothing_was_recorded_is_refused(tmp_path: Path) -> None:
    open_store(str(tmp_path / "new.sqlite")).close()
    with pytest.raises(InputError, match="a store in which a loop has recorded something"):
        tg.open(str(tmp_path / "new.sqlite"))


def test_demand_that_is_never_known_of_all_teams_at_once_is_refused(tmp_path: Path) -> None:
    first, second = office(2, 4, 4), office(2, 4, 4)
    first[:300], second[300:] = np.nan, np.nan
    with pytest.raises(InputError) as caught:
        tg.open(str(write_parquet(tmp_path / "d.parquet", {"a": first, "b": second})))
    assert "\n" not in str(caught.value)


def test_a_history_as_a_table_and_in_short() -> None:
    history = a_history({"dev": office(2, 4, 16), "<b>": office(2, 1, 1)}, zone="Europe/Berlin")
    frame = history.frame()
    assert list(frame.columns) == ["dev", "<b>", "all teams"]
    assert frame.index[0] == pd.Timestamp("2026-09-28 02:00")
    assert frame["all teams"].max() == 17
    shown = history._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "mean 10, peak 17 GPUs" in shown  # (4 · 14 h + 16 · 10 h) / 24 h + 1


@pytest.mark.parametrize(("text", "seconds"), [("15m", 900), ("900s", 900), ("1h30m", 5400), ("0s", 0)])
def test_durations(text: str, seconds: int) -> None:
    assert seconds_of(text, "LEAD") == seconds


@pytest.mark.parametrize("text", ["", "15", "soon", "-5m", "8d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^LEAD"):
        seconds_of(text, "LEAD")


def test_durations_in_words() -> None:
    assert [minutes_text(s) for s in (0, 45, 900, 5430)] == ["0 min", "45 s", "15 min", "90.5 min"]


def test_a_setting_keeps_its_kind_and_the_environment_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tg.setting("N", 3) == 3
    monkeypatch.setenv("TIDEGATE_NOTEBOOK_N", "5")
    assert tg.setting("N", 3) == 5
    assert tg.setting("N", 3.0) == 5.0
    assert tg.setting("N", "x") == "5"
    monkeypatch.setenv("TIDEGATE_NOTEBOOK_N", "many")
    with pytest.raises(InputError, match="TIDEGATE_NOTEBOOK_N: many: a whole number"):
        tg.setting("N", 3)
    with pytest.raises(InputError, match="TIDEGATE_NOTEBOOK_N: many: a number"):
        tg.setting("N", 3.0)


def test_a_setting_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tg.setting("W", (1, 2)) == (1, 2)
    monkeypatch.setenv("TIDEGATE_NOTEBOOK_W", "3, 9,")
    assert tg.setting("W", (1, 2)) == (3, 9)
    assert tg.setting("W", ("5m",)) == ("3", "9")
    monkeypatch.setenv("TIDEGATE_NOTEBOOK_W", "3,many")
    with pytest.raises(InputError, match="TIDEGATE_NOTEBOOK_W: many: a whole number"):
        tg.setting("W", (1, 2))
