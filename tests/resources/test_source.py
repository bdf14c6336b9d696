"""The watched policy file: an edit takes effect, a bad one never does, and what is wrong is known meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from controller.core.errors import InputError
from controller.resources.source import PolicyFile


@pytest.fixture
def path(tmp_path: Path, good: str) -> Path:
    found = tmp_path / "policy.yaml"
    found.write_text(good)
    return found


def test_an_edit_takes_effect_at_the_next_look(path: Path, good: str) -> None:
    source = PolicyFile(path)
    assert source.current().lending.notice_s == 600
    path.write_text(good.replace("notice: 10m", "notice: 25m"))
    assert (source.current().lending.notice_s, source.problems) == (1500, ())


def test_an_edit_of_the_same_length_in_the_same_second_is_seen(path: Path, good: str) -> None:
    source, stat = PolicyFile(path), path.stat()
    path.write_text(good.replace("notice: 10m", "notice: 20m"))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert source.current().lending.notice_s == 1200


def test_the_last_good_policy_stays_while_the_file_is_bad(path: Path, good: str) -> None:
    source = PolicyFile(path)
    path.write_text(good.replace("notice: 10m", "notice: 25m"))
    last = source.current()
    for bad, said in (
        (good.replace("notice: 10m", "notice: soon"), "spec.lending.notice (line 26)"),
        (good.replace("Europe/Berlin", "Mars/Base"), "spec.timezone (line 6)"),
        (good[: good.index(', to: "08:00"')], "line 19"),  # saved half: the bracket of a window is open
        ("", "(file)"),
    ):
        path.write_text(bad)
        assert source.current() is last
        assert source.current() is last, "at a second look too"
        assert [problem.path for problem in source.problems] == [said]
    path.unlink()
    assert source.current() is last
    assert source.problems[0].allowed == "cannot be read: No such file or directory"


def test_a_mended_file_takes_effect_and_clears_the_problems(path: Path, good: str) -> None:
    source = PolicyFile(path)
    path.write_text("nonsense")
    source.current()
    assert source.problems
    path.write_text(good)  # the very text from before
    assert source.current().lending.notice_s == 600
    assert source.problems == ()


def test_a_first_policy_that_is_bad_is_refused(path: Path) -> None:
    path.write_text("nonsense")
    with pytest.raises(InputError):
        PolicyFile(path)
