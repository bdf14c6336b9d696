"""What a person may get wrong in a policy, and what the person is told: field, line and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from controller.core.errors import InputError
from controller.resources.parse import load_policy, parse_policy

CASES = yaml.safe_load((Path(__file__).parent / "bad_policies.yaml").read_text())


def problems(text: str) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        parse_policy(text)
    assert all(line.isprintable() for line in caught.value.lines()), "one line a problem"
    return {problem.path: problem.allowed for problem in caught.value.problems}


def test_the_policy_that_the_cases_break_is_fine(good: str) -> None:
    assert parse_policy(good).name == "production"
    assert len(CASES) >= 40


@pytest.mark.parametrize("case", CASES, ids=[case["says"] for case in CASES])
def test_refused_with_field_line_and_what_is_allowed(case: dict[str, str], good: str) -> None:
    assert case["of"] in good
    found = problems(good.replace(case["of"], case["put"].replace("NINES", "9" * 5000), 1))
    assert case["path"] in found, found
    assert case["allowed"] in found[case["path"]]


def test_floors_of_110_percent_on_saturday_nights_name_the_minute_the_sum_and_the_teams(good: str) -> None:
    # inference has 30 % at weekends; 80 % for dev from Saturday 22:00 to Sunday 06:00 makes 110 %.
    party = "- {name: party, days: [Sat], from: '22:00', to: '06:00', bounds: {floor: 80%, ceiling: 80%}}"
    with pytest.raises(InputError) as caught:
        parse_policy(good.replace("- {name: after-hours", party + "\n    - {name: after-hours").replace("20%", "100%"))
    (found,) = [p for p in caught.value.problems if "floors sum" in p.value]
    assert (found.path, found.value) == ("spec.pools[0] (line 8) on Sat 22:00", "floors sum to 110 %")
    assert found.allowed.endswith("lower dev or inference")


def test_the_last_window_wins_so_a_later_one_can_mend_an_earlier_one(good: str) -> None:
    party = "- {name: party, days: [Sat], from: '22:00', to: '06:00', bounds: {floor: 80%, ceiling: 80%}}"
    mended = "- {name: sober, days: weekends, bounds: {floor: 10%}}"
    text = good.replace("- {name: after-hours", f"{party}\n    {mended}\n    - {{name: after-hours").replace(
        "20%", "100%"
    )
    # Saturday 22:00-24:00 and Sunday belong to `sober` too; nothing of `party`'s floor is left.
    assert parse_policy(text).name == "production"


def test_every_problem_is_told_at_once(good: str) -> None:
    text = good.replace("floor: 70%", "floor: 170%").replace("notice: 10m", "notice: x").replace("mig: auto", "mig: on")
    assert set(problems(text)) == {
        "spec.teams[0].bounds.floor (line 17)",
        "spec.lending.notice (line 26)",
        "spec.sharing.mig (line 33)",
    }


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("", "(file)", "`tidegate policy init` writes one"),
        ("# nothing but a comment\n", "(file)", "`tidegate policy init` writes one"),
        ("- a\n- b\n", "(file)", "a mapping that begins with apiVersion and kind"),
        ("just words", "(file)", "a mapping that begins with apiVersion and kind"),
        ("a: \x07", "(file)", "valid YAML"),
        ("[" * 50_000, "(file)", "at most 50 levels"),
        ("{a: " * 60 + "1" + "}" * 60, "(file)", "in 50 levels"),
        ("a: " + "x" * 1_000_000, "(file)", "at most 1000000"),
    ],
    ids=["empty", "comment", "list", "words", "control character", "deep text", "deep values", "huge"],
)
def test_what_is_no_policy_at_all(text: str, path: str, allowed: str) -> None:
    assert allowed in problems(text)[path]


def test_aliases_that_multiply_are_refused_before_they_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]  # 10 to the 10th values
    assert "at most 100000 values" in problems("\n".join(lines))["(file)"]


def test_a_line_break_or_an_escape_in_a_value_stays_on_the_line(good: str) -> None:
    found = problems(good.replace("mode: enforce", 'mode: "a\\nb\\e[31m"\n  "x\\ny": 1'))
    assert set(found) == {"spec.mode (line 5)", "spec.'x\\ny' (line 6)"}


def test_a_secret_in_the_wrong_place_is_not_repeated(good: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_policy(good.replace("secretRef: tidegate-pd", "secretRef: {token: hunter2}"))
    assert "hunter2" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for name, content in (("binary", b"\xff\xfe\x00"), ("folder", None), ("absent", None)):
        if name == "folder":
            (tmp_path / name).mkdir()
        elif content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError) as caught:
            load_policy(tmp_path / name)
        assert caught.value.problems[0].path == "(file)"
        assert caught.value.source == str(tmp_path / name)
