"""What a policy of the learner does, in words: the names in the records are short ones."""

from __future__ import annotations

from controller.learning.candidates import CANDIDATES, Edge, Reach
from controller.learning.gate import RULE

HEDGE, HINDSIGHT = "hedge", "hindsight"
LEARNERS = {HEDGE: "the hedge over all candidates", HINDSIGHT: "the hindsight learner"}
_REACH = {
    Reach.QUARTER: "the 15 min after a node's start",
    Reach.HALF: "the 30 min after a node's start",
    Reach.HOUR: "the hour after a node's start",
    Reach.WITHIN_1H: "the time to an hour after a node's start",
    Reach.WITHIN_2H: "the time to two hours after a node's start",
}


def who(name: str) -> str:
    """Who acts, for the middle of a sentence."""
    if name == RULE:
        return "the rule"
    return LEARNERS.get(name) or f"the candidate “{name}”"


def _edge(edge: Edge) -> str:
    return f"the {edge.permille / 10:g} % quantile of the peak in {_REACH[edge.reach]}"


def _words() -> dict[str, str]:
    found = {RULE: "the tuned rule: demand and a buffer, held for a while"}
    for one in CANDIDATES:
        if one.low is None:
            found[one.name] = f"up as demand comes, down to {_edge(one.high)}"
        elif one.low == one.high:
            found[one.name] = f"at {_edge(one.low)}, held for {one.hold_s // 60} min"
        else:
            found[one.name] = f"up to {_edge(one.low)}, down to {_edge(one.high)}"
    return found


WORDS = _words() | LEARNERS
"""By name; a name from another version has none."""
