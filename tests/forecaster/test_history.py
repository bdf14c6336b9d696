"""Where history comes from, and what is refused with the column and row named."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from controller.core.errors import InputError
from forecaster.history import panel_from_csv, panel_from_parquet, panel_from_prometheus, panel_from_rows
from forecaster.series import carried_forward


def a_trace(folder: Path, meta: dict[str, Any]) -> Path:
    rows = [(t, team, value) for t in (0, 300, 600) for team, value in (("m/a", 1.0), ("n/b", 2.0))]
    pd.DataFrame(rows, columns=["t_s", "team", "wanted_mean"]).to_parquet(folder / "demand_5min.parquet")
    (folder / "trace.json").write_text(json.dumps(meta))
    return folder


def test_a_folder_with_gaps_by_prefix(tmp_path: Path) -> None:
    panel = panel_from_parquet(a_trace(tmp_path, {"t0": "2024-05-10T00:00:00Z", "gaps_s": {"m": [[300, 600]]}}))
    assert panel.names == ("m/a", "n/b")
    assert panel.origin_s == int(datetime(2024, 5, 10, tzinfo=UTC).timestamp())
    np.testing.assert_array_equal(panel.values, [[1, 2], [np.nan, 2], [1, 2]])
    np.testing.assert_array_equal(panel.total(), [3, np.nan, 3])


@pytest.mark.parametrize("gaps", ["x", [[600, 300]], [[300]], {"m": 5}, [["a", "b"]]])
def test_gaps_that_are_none_are_refused(tmp_path: Path, gaps: object) -> None:
    with pytest.raises(InputError) as refused:
        panel_from_parquet(a_trace(tmp_path, {"t0": "2024-05-10T00:00:00Z", "gaps_s": gaps}))
    assert [problem.path for problem in refused.value.problems] == ["gaps_s"]


def test_an_unknown_start_falls_on_the_weekday_that_is_named(tmp_path: Path) -> None:
    panel = panel_from_parquet(a_trace(tmp_path, {"t0": "unknown date", "weekday_of_t0": "Wednesday (inferred)"}))
    assert datetime.fromtimestamp(panel.origin_s, UTC).strftime("%a %H:%M") == "Wed 00:00"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("t_s,team\n0,a\n", "column wanted_mean"),
        ("t_s,team,wanted_mean\n0,a,1\n300,a,-2\n", "wanted_mean, row 1"),
        ("t_s,team,wanted_mean\n0,a,1\n0,a,1\n", "t_s, row 1"),
        ("t_s,team,wanted_mean\n0,a,1\n310,a,1\n", "t_s"),
        ("t_s,team,wanted_mean\n", "(file)"),
        ("t_s,team,wanted_mean\n0,a,1\n300,a,inf\n", "wanted_mean, row 1"),
        ("t_s,team,wanted_mean\n0,a,1\n300,a,2e9\n", "wanted_mean, row 1"),
        ("t_s,team,wanted_mean\n0,a,1\n300,,1\n", "team, row 1"),
        ("t_s,team,wanted_mean\n0,a,many\n", "column wanted_mean"),
    ],
)
def test_what_cannot_be_demand_is_refused(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(InputError) as refused:
        panel_from_csv(tmp_path / "x.csv")
    assert [problem.path for problem in refused.value.problems] == [named]


def test_rows_of_one_step_are_averaged_and_a_missing_step_is_unknown() -> None:
    panel = panel_from_rows([(0, "a", 2.0), (60, "a", 4.0), (600, "a", 5.0)], "UTC")
    assert panel is not None
    np.testing.assert_array_equal(panel.values[:, 0], [3, np.nan, 5])


def test_the_last_known_value_is_carried_and_leading_unknowns_stay() -> None:
    np.testing.assert_array_equal(carried_forward(np.array([np.nan, 1, np.nan, 3])), [np.nan, 1, 1, 3])


ANSWERS = {
    "ok": (200, {"data": {"result": [{"metric": {"team": "a"}, "values": [[0, "2"], [300, "NaN"], [600, "4"]]}]}}),
    "refused": (400, {"status": "error", "error": "parse error"}),
    "unlabelled": (200, {"data": {"result": [{"metric": {}, "values": [[0, "2"]]}]}}),
    "empty": (200, {"data": {"result": []}}),
}


@pytest.fixture
def prometheus() -> Iterator[str]:
    """A server that answers as Prometheus' range-query API does; the query names the answer."""

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = ANSWERS[self.path.split("query=")[1].split("&")[0]]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            """Be quiet."""

    server = HTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


SPAN = (datetime.fromtimestamp(0, UTC), datetime.fromtimestamp(600, UTC))


def test_prometheus_series_become_teams_and_nan_is_unknown(prometheus: str) -> None:
    panel = panel_from_prometheus(prometheus, "ok", *SPAN)
    assert panel.names == ("a",)
    np.testing.assert_array_equal(panel.values[:, 0], [2, np.nan, 4])


@pytest.mark.parametrize("query", ["refused", "unlabelled", "empty"])
def test_a_query_that_gives_no_teams_is_refused(prometheus: str, query: str) -> None:
    with pytest.raises(InputError, match="prometheus query"):
        panel_from_prometheus(prometheus, query, *SPAN)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "file:///etc/hosts"])
def test_a_prometheus_that_cannot_be_reached_is_one_clear_line(url: str) -> None:
    with pytest.raises(InputError, match="prometheus url"):
        panel_from_prometheus(url, "up", *SPAN)
