"""The report's arithmetic by hand, and its page: alone, escaped, losses like wins."""

from __future__ import annotations

import re
from typing import Any

import pytest

from controller.backtest import report
from controller.backtest.report import Bar


def row(cost: float, gap: float | None, **more: Any) -> dict[str, Any]:
    split = {"provisioned_gpu_h": 100.0, "idle_gpu_h": 40.0, "wait_gpu_h": 2.0, "boot_gpu_h": 10.0, "churn_gpu_h": 5.0}
    rest = {"queue_p95_s": None, "gap_ci": [gap - 0.1, gap + 0.1] if gap is not None else None}
    return split | rest | {"cost": cost, "gap_closed": gap} | more


def result(label: str = "made up", kind: str = "trace", mine: float = 0.25, **more: Any) -> dict[str, Any]:
    """A case in which the rule costs 200 and the optimum 100."""
    policies = {
        "static_peak": row(500, -3.0),
        "tuned_rule": row(200, 0.0),
        "mine": row(200 - 100 * mine, mine, provisioned_gpu_h=80.0),
        "optimum": row(100, 1.0),
    }
    said = {"id": label, "code": "c", "kind": kind, "label": label, "scenario": "", "other": "", "view": "demand"}
    terms = {"lead_s": 900, "wait_weight": 9.0, "gpus_per_node": 8, "judged_days": 2.0, "seconds": 1.0}
    return said | terms | {"policies": policies} | more


def made(results: list[dict[str, Any]], price: float = 2.0) -> report.Document:
    return report.document(results, {"command": "tidegate bench --suite", "at": "today"}, ["burstgpt: none"], price)


def test_policies_are_those_that_are_there_and_the_worst_row_is_first() -> None:
    document = made([result("a", mine=0.3), result("b", mine=-0.4), result("c", mine=0.1)])
    assert document.policies == ("static_peak", "mine")
    assert [(line.title, line.policy, line.gap) for line in document.lines] == [
        ("b · 15 min · w 9", "mine", -0.4),
        ("c · 15 min · w 9", "mine", 0.1),
        ("a · 15 min · w 9", "mine", 0.3),
    ]


def test_standings_count_losses_and_name_the_worst() -> None:
    gaps = (0.3, -0.4, 0.0004, -0.01, 0.2)
    document = made([result(str(i), mine=gap) for i, gap in enumerate(gaps)])
    mine = next(one for one in document.standings if one.policy == "mine")
    assert (mine.rows, mine.better, mine.even, mine.worse, mine.below) == (5, 2, 1, 2, 1)
    assert (mine.median, mine.worst, mine.where) == (0.0004, -0.4, "1 · 15 min · w 9")


def test_money_is_what_serves_and_boots_times_the_price() -> None:
    line = made([result()], price=2.0).lines[0]
    assert (line.money_usd, line.money_rule_usd) == (180.0, 220.0)


def test_seeds_are_pooled_over_sums() -> None:
    seeds = [result(f"synthetic {i}", "synthetic", gap) for i, gap in enumerate((0.5, 0.1, -0.3))]
    pooled = next(one for one in made(seeds).pooled if one.policy == "mine")
    # Each seed has a room of 100, so the sums give the mean: (50 + 10 − 30) / 300.
    assert pooled.gap == pytest.approx(0.1)
    assert pooled.ci is not None
    assert -0.3 <= pooled.ci[0] < 0.1 < pooled.ci[1] <= 0.5
    assert (pooled.seeds, pooled.worst) == (3, -0.3)


def test_where_the_rule_leaves_nothing_there_is_no_gap_and_no_line() -> None:
    nothing = result()
    for one in nothing["policies"].values():
        one["gap_closed"] = one["gap_ci"] = None
    document = made([nothing])
    assert document.lines == ()
    assert "–" in report.html(document)


def test_bars_by_hand() -> None:
    # idle 40, waiting 9 · 2 = 18, boot 10, churn 5 of 100.
    assert report.cost_bars(row(73, 0.0), 9.0, 100.0) == [
        Bar("idle", 0.0, 40.0),
        Bar("wait", 40.0, 18.0),
        Bar("boot", 58.0, 10.0),
        Bar("churn", 68.0, 5.0),
    ]
    assert report.cost_bars(row(73, 0.0), 9.0, 50.0)[1:] == [
        Bar("wait", 80.0, 20.0),
        Bar("boot", 100.0, 0.0),
        Bar("churn", 100.0, 0.0),
    ]


@pytest.mark.parametrize(("gap", "x"), [(0.0, 50.0), (1.0, 100.0), (-0.5, 25.0), (-7.0, 0.0)])
def test_the_axis_runs_from_minus_to_plus_one(gap: float, x: float) -> None:
    assert report.gap_x(gap) == x


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.123, "+12.3 %"), (-0.02, "−2.0 %"), (0.0001, "0.0 %"), (None, "–"), (-12.344, "−1,234 %")],
)
def test_shares_carry_their_sign(value: float | None, words: str) -> None:
    assert report.percent(value) == words


def test_the_page_needs_nothing_beside_itself() -> None:
    page = report.html(made([result(), result("s", "synthetic"), result("r", "robustness", scenario="stock_outs")]))
    assert "<script" not in page
    assert not re.findall(r"(?:src|href)\s*=\s*[\"'](?!#)|url\(|@import|https?:", page)
    assert "prefers-color-scheme: dark" in page


def test_labels_and_commands_are_escaped() -> None:
    page = report.html(made([result('<img src="x" onerror=alert(1)>')]))
    assert "<img" not in page
    assert "&lt;img" in page


def test_losses_stand_in_the_page_like_wins() -> None:
    page = report.html(made([result("w", mine=0.333), result("l", mine=-0.444)]))
    table = page[page.index('id="worst"') : page.index('id="traces"')]
    assert re.findall(r'<span class="(win|loss)">(.*?)</span>', table) == [("loss", "−44.4 %"), ("win", "+33.3 %")]


def test_what_was_refused_or_failed_is_said() -> None:
    bare = {key: value for key, value in result("x").items() if key != "policies"}
    document = made([result(), bare | {"refused": "too short"}, bare | {"failed": "ValueError: no"}])
    assert document.left_out == ("burstgpt: none", "x · 15 min · w 9: too short")
    page = report.html(document)
    assert "too short" in page
    assert "ValueError: no" in page
