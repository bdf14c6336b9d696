"""The admission queue: best-effort first come, first served, by priority and then submission.

Gangs of one team and shape stand in one line: when its first does not fit, none of it does, so a pass looks at heads
only and costs the number of lines, not of gangs.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from controller.worlds.simulated.jobs import Gang

LineKey = tuple[str, int, int, bool, int]
Place = tuple[int, int, int]


def line_of(gang: Gang) -> LineKey:
    """The line a gang stands in."""
    job = gang.job
    return job.team, job.pods, job.milli_gpus_per_pod, job.preemptible, job.priority


def place_of(gang: Gang) -> Place:
    """Its place among all that wait: higher priority first, then the earlier submission."""
    return -gang.job.priority, gang.job.submit_s, gang.seq


class Queue:
    """All waiting gangs. ``touched`` are the lines that got a gang since the last pass."""

    def __init__(self) -> None:
        self._lines: dict[LineKey, list[tuple[Place, Gang]]] = {}
        self.touched: set[LineKey] = set()

    def add(self, gang: Gang) -> None:
        """Queue a gang at its place."""
        key = line_of(gang)
        heappush(self._lines.setdefault(key, []), (place_of(gang), gang))
        self.touched.add(key)

    def head(self, key: LineKey) -> Gang | None:
        """The first of a line that is still waiting."""
        line = self._lines.get(key, [])
        while line and (line[0][1].gone or line[0][1].running):
            heappop(line)
        if line:
            return line[0][1]
        self._lines.pop(key, None)
        return None

    def heads(self, *, everyone: bool) -> list[tuple[Place, LineKey]]:
        """A heap of the heads to look at: of all lines, or of those touched; forgets what was touched."""
        keys = list(self._lines) if everyone else [key for key in self.touched if key in self._lines]
        self.touched.clear()
        found = [(place_of(gang), key) for key in keys if (gang := self.head(key)) is not None]
        heapify(found)
        return found
