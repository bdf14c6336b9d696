"""Print the canonical bytes of one decision with many parts; run in processes with different hash seeds."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from core_builders import NOW_S, read

from controller.core.canonical import canonical_bytes
from controller.core.decide import decide

GIVEN = {
    "policy": {
        "pools": {"gpu": {"max": 64}, "other": {"max": 32}},
        "teams": {name: {"floor": "10%", "priority": i % 3} for i, name in enumerate("abcdefgh")},
        "lending": {"notice": "0s"},
        "guards": {"idleGpus": {"below": "10%", "for": "30m"}},
    },
    "nodes": 6,
    "work": [
        {"team": "a", "gpus": 8, "pods": 6, "runs": "2h", "busy": "3%", "idle": "1h", "preemptible": True},
        *({"team": name, "gpus": 2, "pods": 3, "waits": "20m"} for name in "bcdefgh"),
    ],
    "forecasts": {"total": {0.5: 30, 0.9: 60}, "b": 10, "c": 12},
    "advice": {"source": "forecast"},
    "pools": {"gpu": {"obtainable_gpus": 56}, "other": {}},
}

if __name__ == "__main__":
    scenario = read(GIVEN, NOW_S)
    decision = decide(scenario.snapshot, scenario.forecasts, scenario.policy, scenario.now_s, scenario.advice)
    sys.stdout.buffer.write(canonical_bytes(decision))
