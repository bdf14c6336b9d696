"""A simulated cluster with nine days of a rhythm behind it, on which a learner has something to say at once."""

from __future__ import annotations

from controller.core.policy import Learning, LearningMode, Mode, Policy, Pool, PoolLimits, Team
from controller.loop import DemandRecorder, FixedPolicy, Loop, Tick
from controller.loop.feeds import RecordedForecasts
from controller.loop.learned import LearnedAdvice
from controller.loop.recording import StoreBook, StoreRecorder
from controller.store import Store
from controller.worlds.simulated import Boot, PoolSetup, Provider, SimulatedWorld

DAY, LEAD = 86_400, 1800
ORIGIN = 20_000 * DAY
"""A midnight in October 2024."""
BEGIN = ORIGIN + 9 * DAY
POLICY = Policy(
    "p",
    Mode.ENFORCE,
    "UTC",
    pools=(Pool("h", (), PoolLimits(0, 400), gpus_per_node=8, wait_weight=9),),
    teams=(Team("a", namespaces=("a",)),),
    learning=Learning(LearningMode.FULL, patience_days=0),
)


class Stand:
    """A simulated cluster with nine days of a rhythm behind it, and nothing to do: advice is what is looked at."""

    def __init__(self, store: Store, policy: Policy = POLICY) -> None:
        self.store = store
        setup = PoolSetup(Provider("h", Boot(LEAD), 0), 8, nodes=1, max_nodes=50)
        self.world = SimulatedWorld("c", BEGIN, [setup], (), ())
        demand = DemandRecorder("UTC")
        for step in range(1, 9 * DAY // 300 + 1):
            gpus = 80 if 9 <= step * 300 % DAY / 3600 < 17 else 8 + step % 5
            for team in ("a", ""):
                demand.put(ORIGIN + step * 300, "h", team, gpus * 1000)
        feed = RecordedForecasts(demand, lambda _: LEAD, experts=("last_value", "seasonal"))
        policies = FixedPolicy(policy)
        self.advisor = LearnedAdvice("c", demand, policies, lambda _: LEAD, feed.walked, StoreBook(store, "c"))
        self.loop = Loop(
            self.world,
            policies,
            forecaster=feed,
            advisor=self.advisor,
            recorder=StoreRecorder(store, lambda: 0),
            demand=demand,
        )

    def ticks(self, count: int) -> list[Tick]:
        made = []
        for _ in range(count):
            self.world.advance(self.world.now_s + 300)
            made.append(self.loop.tick())
        return made
