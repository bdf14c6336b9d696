"""The JSON schema says what the parser accepts: its patterns are held against the parser's own reading."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from controller.resources.json_schema import json_schema
from controller.resources.schema import duration_text, time_text, to_minute, to_ppm, to_seconds

SCHEMA = json_schema()


def part(name: str) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA["$defs"][name]["properties"]
    return found


def accepted(read: Any, text: str) -> bool:
    try:
        read(text)
    except PydanticCustomError:
        return False
    return True


DURATIONS = ["45s", "10m", "1h30m", "2d", "0s", "", " ", "10", "-1m", "1.5h", "30s1h", "10 m", "m", "366d", "1d1h1m1s"]
TIMES = ["00:00", "18:00", "24:00", "24:01", "25:00", "9:00", "18:60", "18", "1800", "18:00:00", "", "٠٠:٠٠"]
PERCENTS = ["70%", "70.5%", "70 %", "0%", "100%", "70", "%", "-1%", "1.2345%", "70.%", "seventy%"]


@pytest.mark.parametrize(
    ("pattern", "read", "texts"),
    [
        (part("LendingPart")["notice"]["pattern"], to_seconds, DURATIONS),
        (part("WindowPart")["from"]["pattern"], to_minute, TIMES),
        (part("IdleGpusPart")["below"]["pattern"], to_ppm, PERCENTS),
    ],
    ids=["durations", "times", "percentages"],
)
def test_a_pattern_accepts_what_the_parser_accepts(pattern: str, read: Any, texts: list[str]) -> None:
    said = {text: re.search(pattern, text, re.ASCII) is not None for text in texts}
    assert said == {text: accepted(read, text) for text in texts}
    assert len(set(said.values())) == 2, "both kinds are among the examples"


def test_defaults_are_in_the_words_of_the_file() -> None:
    assert part("LendingPart")["notice"]["default"] == "10m"
    assert part("StarvationPart")["maxWait"]["default"] == "15m"
    assert (part("WindowPart")["from"]["default"], part("WindowPart")["to"]["default"]) == ("00:00", "24:00")
    assert part("PoolPart")["waitWeight"]["default"] == 9


def test_nothing_of_python_shows() -> None:
    text = str(SCHEMA)
    assert "'null'" not in text
    assert "milli_gpus" not in text
    assert "max_hourly_cost" not in text


@given(st.integers(0, 366 * 86_400))
def test_a_duration_reads_as_it_was_written(seconds: int) -> None:
    assert to_seconds(duration_text(seconds)) == seconds


@given(st.integers(0, 1440))
def test_a_time_reads_as_it_was_written(minute: int) -> None:
    assert to_minute(time_text(minute)) == minute
