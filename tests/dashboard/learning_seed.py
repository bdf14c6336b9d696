"""What learning leaves in a store, as a loop would: days of shadow fleets, ticks, events, and how it stands now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from dashboard_seed import BEGIN_S, CLUSTER, STEP_S

from controller.core.policy import LearningMode
from controller.learning.candidates import CANDIDATES
from controller.learning.demotions import Code
from controller.learning.ladder import Hold, LadderState
from controller.learning.monitors import Cusum, Fidelity, Tally, Watch
from controller.store import LearningDay, LearningEvent, LearningTick, learning_key, open_store

POOL = "h100"
DAY_S = 86_400
SAVINGS = (3, -2, 10, 14, 12, 8, 16, 12, 12)
"""GPU-hours a day that the hedge saves, the newest last: of the last seven the mean is 12, and the squares of what they
are off it add up to 40, so the standard error is sqrt(40 / 6 / 7) = 0.976."""
NAMES = [one.name for one in CANDIDATES]


def midnight(days_ago: int) -> int:
    """The local midnight so many days before the last one."""
    zone = ZoneInfo("Europe/Berlin")
    today = datetime.fromtimestamp(BEGIN_S, zone).date()
    return int(datetime.combine(today - timedelta(days_ago), datetime.min.time(), zone).timestamp())


def day(days_ago: int, name: str, saving: int, steps: int = 288) -> LearningDay:
    """A day on which the rule cost 100 GPU-hours."""
    return LearningDay(CLUSTER, POOL, midnight(days_ago), name, 1000 * (100 - saving), 1000 * saving, steps)


def days(savings: Sequence[int] = SAVINGS) -> list[LearningDay]:
    """The hedge's days and those of two candidates, up to yesterday."""
    ago = range(len(savings), 0, -1)
    found = [day(n, "hedge", saved) for n, saved in zip(ago, savings, strict=True)]
    return found + [day(n, NAMES[k], saved - 4 - k) for k in (0, 1) for n, saved in zip(ago, savings, strict=True)]


def verdict(days_ago: int, acting: str, code: str, sentence: str) -> LearningEvent:
    """What the gate said a minute after a midnight."""
    facts = (("acting", acting), ("best", "hedge"), ("days", 7), ("mean_milli", 12_000), ("standard_error_milli", 976))
    at_s = midnight(days_ago) + 60
    return LearningEvent(CLUSTER, POOL, at_s, "gate", "raise-only", acting, code, facts, sentence)


SAVES = "hedge may act: 12.0 GPU-hours a day below the rule, standard error 1.0, 7 days."
NO_SAVING = "The rule acts: the best, hedge, has not saved more than one standard error a day."


def events() -> list[LearningEvent]:
    """The rule at first; the hedge from five days ago on; up to raise-only; down and back again for want of inputs."""
    told = [verdict(n, "rule", "NO_SAVING", NO_SAVING) for n in (8, 7, 6)]
    told += [verdict(n, "hedge", "SAVES", SAVES) for n in range(5, -1, -1)]

    def one(ago: int, kind: str, rung: str, code: Code, sentence: str, minutes: int = 61) -> LearningEvent:
        facts = (("from", "shadow"),)
        at_s, acting = midnight(ago) + 60 * minutes, "hedge" if rung == "raise-only" else "rule"
        return LearningEvent(CLUSTER, POOL, at_s, kind, rung, acting, code.value, facts, sentence)

    stale, fine = "Not above shadow: its inputs are stale or not numbers.", "its inputs were fine for an hour."
    return [
        *told,
        one(9, "recovery", "shadow", Code.SWITCHED_ON, "Learning is on: it runs in shadow and is measured."),
        one(4, "promotion", "advise", Code.GOOD_DAYS, "Up to advise: a good day."),
        one(3, "promotion", "raise-only", Code.GOOD_DAYS, "Up to raise-only: a good day."),
        one(2, "demotion", "shadow", Code.INPUTS, stale, 600),
        one(2, "recovery", "raise-only", Code.INPUTS, f"No longer held at shadow: {fine}", 700),
    ]


def ticks(count: int, *, rung: str = "raise-only", acting: str = "hedge") -> list[LearningTick]:
    """The learner wants a node more than the rule's three, a candidate two more; demand is 20 GPUs."""
    return [
        LearningTick.of(
            cluster=CLUSTER,
            tick_id=f"l{k}",
            at_s=BEGIN_S + k * STEP_S,
            pool=POOL,
            ceiling="full",
            rung=rung,
            acting=acting,
            demand_milli_gpus=20_000,
            lead_s=600,
            quantiles=((500, 22_000), (900, 30_000)),
            rule_nodes=3,
            candidates=tuple((name, 3 + n % 3) for n, name in enumerate(NAMES)),
            learner_nodes=4,
            target_nodes=4 if acting == "hedge" else 3,
            implied_permille=870,
            move="raise",
            clipped=(),
            model="",
            inputs=b"{}",
        )
        for k in range(count)
    ]


def watch() -> Watch:
    """Covered 950 of 1,000 times, one clip in 200 ticks, half a standard deviation of cost, 3 % off the replay."""
    return Watch(
        Cusum(0.5, 9, -12.0, 6.7, 100.0),
        Tally(3 * DAY_S, ((BEGIN_S - BEGIN_S % 3600, 950, 1000),)),
        Tally(DAY_S, ((BEGIN_S - BEGIN_S % 3600, 1, 200),)),
        Fidelity(((midnight(1), 103.0, 100.0),)),
    )


def stands(*, good_days: int = 2, held: bool = False) -> dict[str, object]:
    """How the loop keeps it: at raise-only with so many good days, or held at shadow because of its inputs."""
    rung = LearningMode.SHADOW if held else LearningMode.RAISE_ONLY
    holds = (Hold(Code.INPUTS, BEGIN_S),) if held else ()
    ladder = LadderState(rung, LearningMode.RAISE_ONLY, "hedge", good_days, midnight(2), midnight(0), BEGIN_S, holds)
    weights = [600_000, 250_000, *([10_000] * 15)]
    return {
        "ladder": ladder.to_plain(),
        "watch": watch().to_plain(),
        "inputs_age_s": 4000 if held else 240,
        "loss_used": 0.125,
        "weights": [list(pair) for pair in zip(NAMES, weights, strict=False)],
    }


def learn(path: Path, count: int = 40, *, held: bool = False) -> None:
    """Write all of it beside ticks that are there already."""
    rung, acting = ("shadow", "rule") if held else ("raise-only", "hedge")
    with open_store(str(path)) as store:
        store.append_learning(ticks(count, rung=rung, acting=acting), days=days(), events=events())
        store.kv_set(learning_key(CLUSTER, POOL), stands(held=held))
