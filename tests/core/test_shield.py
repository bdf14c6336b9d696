"""The shield trusts nobody: what other stages would never hand it is clipped all the same."""

from __future__ import annotations

from core_builders import a_job, a_node, a_policy, a_pool

from controller.core.actions import Evict, SetShare
from controller.core.demand import measure
from controller.core.lending import Division, TeamShare
from controller.core.reasons import ReasonCode, reason
from controller.core.shield import evictions, shares
from controller.core.snapshot import Snapshot

WHY = reason(ReasonCode.WITHIN_ENTITLEMENT)


def _share(team: str, share: int, floor: int = 0, ceiling: int = 8_000) -> TeamShare:
    return TeamShare("gpu", team, floor, ceiling, "base", share, share, 0, 0, 0)


def test_a_share_above_its_ceiling_does_not_pass() -> None:
    division = Division("gpu", 16_000, (_share("a", 8_000), _share("b", 8_000)))
    moves = [SetShare("gpu", "a", 9_000, 0, WHY), SetShare("gpu", "b", 8_000, 0, WHY)]
    kept, notes = shares(division, moves)
    assert [move.team for move in kept] == ["b"]
    assert [(note.code, note.team) for note in notes] == [(ReasonCode.OVER_CEILING, "a")]


def test_shares_that_sum_to_more_than_can_be_had_do_not_pass_at_all() -> None:
    division = Division("gpu", 15_000, (_share("a", 8_000), _share("b", 8_000)))
    kept, notes = shares(division, [SetShare("gpu", "a", 8_000, 0, WHY), SetShare("gpu", "b", 8_000, 0, WHY)])
    assert kept == ()
    assert len(notes) == 2


def test_a_share_for_an_unknown_team_does_not_pass() -> None:
    kept, _ = shares(Division("gpu", 8_000, ()), [SetShare("gpu", "x", 1_000, 0, WHY)])
    assert kept == ()


def test_evictions_for_others_stop_at_the_floor_and_own_guards_do_not() -> None:
    """a holds 3 + 3 + 3 with a floor of 6: one gang may go for b, the second may not."""
    policy = a_policy()
    jobs = tuple(a_job(f"a-{i}", gpus=3, at=["n1"]) for i in range(3))
    demand = measure(Snapshot("c", 0, (a_pool(),), (a_node(gpus=9),), jobs), policy, 0)
    division = Division("gpu", 9_000, (_share("a", 6_000, floor=6_000), _share("b", 3_000)))
    moves = [Evict("gpu", "a", job.name, "b", 3_000, WHY) for job in jobs]
    kept, notes = evictions([division], demand, moves)
    assert [move.workload for move in kept] == ["a-0"]
    assert [(note.code, note.subject) for note in notes] == [
        (ReasonCode.PROTECTED_BY_FLOOR, "a-1"),
        (ReasonCode.PROTECTED_BY_FLOOR, "a-2"),
    ]
    own = [Evict("gpu", "a", job.name, "", 3_000, WHY) for job in jobs]
    assert len(evictions([division], demand, own)[0]) == 3
