"""A process of its own that writes ticks until it is stopped: ``python store_writer.py URL FIRST COUNT``.

Prints the id of each tick as soon as its commit has returned, and nothing before.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

from store_builders import T0, a_decision, a_forecast, a_pool, a_team, a_violation, put  # noqa: E402

from controller.core.actions import Decision  # noqa: E402
from controller.store import open_store  # noqa: E402

TEAMS = 20


def a_full_decision(step: int, cluster: str = "east") -> Decision:
    """Tick ``step``: every amount in it is ``step``, so that a torn tick shows."""
    teams = tuple(a_team(f"team-{number:02}", demand=step, held=step) for number in range(TEAMS))
    broken = (a_violation(measured=step),) if step % 2 else ()
    pools = (a_pool(demand_milli_gpus=step),)
    return a_decision(T0 + 60 * step, cluster, teams=teams, pools=pools, violations=broken)


def main(url: str, first: int, count: int) -> None:
    with open_store(url) as store:
        print("open", flush=True)
        for step in range(first, first + count):
            print(put(store, a_full_decision(step), a_forecast(T0 + 60 * step)).id, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
