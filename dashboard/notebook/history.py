"""One value for all kinds of history: demand by team on an even grid, and what is known besides.

A notebook works on it without asking whether it came from a trace folder, a Parquet file or a store.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from controller.backtest.traces import TRAIN, Trace
from controller.core.errors import InputError
from controller.core.forecast import TOTAL
from forecaster.series import Array, Panel

ALL_TEAMS = "all teams"
"""What people read where the code says ``TOTAL``."""
LEAST_DAYS = 2.0
"""Scores need a day to learn from and a day to be judged on."""


@dataclass(frozen=True, slots=True)
class History:
    """Demand of a pool's teams, in GPUs on a 5-minute grid; NaN where nobody knows.

    ``panel`` has the teams and, as its last column, their total; its time zone is the one that charts are in. Rows from
    ``judge_from`` on are judged, those before it are learned from. ``supply`` has columns ``ready``, ``held`` and
    ``waiting`` (GPUs; NaN where unknown) by epoch seconds, or is None. ``team_waiting`` is GPU-hours waited by team.
    ``cluster``, ``pool`` and ``address`` are a store's; an address may hold a password and is shown nowhere.
    """

    name: str
    source: str
    kind: str
    panel: Panel
    judge_from: int
    folder: Path | None = None
    supply: pd.DataFrame | None = None
    team_waiting: dict[str, float] | None = None
    policy_text: str = ""
    policy_origin: str = ""
    remarks: tuple[str, ...] = ()
    cluster: str = ""
    pool: str = ""
    address: str = field(default="", repr=False)

    @property
    def zone(self) -> str:
        """The time zone of charts."""
        return self.panel.timezone

    @property
    def teams(self) -> tuple[str, ...]:
        """The teams' names."""
        return tuple(name for name in self.panel.names if name != TOTAL)

    @property
    def team_values(self) -> Array:
        """Demand by team: (rows, teams) GPUs."""
        return self.panel.values[:, [name != TOTAL for name in self.panel.names]]

    @property
    def total(self) -> Array:
        """Demand of all teams together, by row."""
        return self.panel.values[:, self.panel.names.index(TOTAL)]

    @property
    def days(self) -> float:
        """Length in days."""
        return self.panel.rows / self.panel.rows_a_day

    @property
    def times(self) -> pd.DatetimeIndex:
        """Local wall-clock time at which each row begins."""
        return local_times(self.panel.origin_s + np.arange(self.panel.rows) * self.panel.step_s, self.zone)

    def frame(self) -> pd.DataFrame:
        """Demand as a table for work of your own: one column a team and one for the total, local times as index."""
        columns = [name if name != TOTAL else ALL_TEAMS for name in self.panel.names]
        return pd.DataFrame(self.panel.values, index=self.times, columns=columns)

    def team(self, name: str) -> Array:
        """One team's demand by row (``all teams``: the total's)."""
        return self.panel.values[:, self.column(name)]

    def column(self, name: str) -> int:
        """A team's column in the panel."""
        wanted = TOTAL if name in ("", ALL_TEAMS) else name
        if wanted not in self.panel.names:
            raise InputError.one("team", name, f"one of {', '.join(self.teams[:12])}, or {ALL_TEAMS!r}")
        return self.panel.names.index(wanted)

    def last_days(self, days: float) -> History:
        """The last days only; all of it where there are no more. 0 means all."""
        rows = round(days * self.panel.rows_a_day)
        if days < 0 or (days > 0 and rows == 0):
            raise InputError.one("DAYS", days, "0 for all, or a number of days")
        cut = self.panel.rows - rows
        if not rows or cut <= 0:
            return self
        panel = replace(self.panel, origin_s=self.panel.time(cut), values=self.panel.values[cut:])
        supply = None if self.supply is None else self.supply[self.supply.index >= self.panel.time(cut)]
        judged = self.judge_from - cut
        if judged < panel.rows_a_day:
            judged = int(panel.rows * TRAIN)
        return replace(self, panel=panel, supply=supply, judge_from=judged)

    def long_enough(self, what: str, days: float = LEAST_DAYS) -> None:
        """Refuse work that needs more days than there are."""
        if self.days < days:
            raise InputError.one(f"history for {what}", f"{self.days:.1f} days", f"at least {days:g} days")

    def trace(self) -> Trace:
        """The total as the benchmark takes it: demand as a flow."""
        values = self.total[:, None]
        panel = Panel((TOTAL,), self.panel.origin_s, self.panel.step_s, self.zone, values)
        return Trace(self.name, self.folder or Path(), panel, self.judge_from, has_jobs=False)

    def _repr_html_(self) -> str:
        first, last = self.times[0], self.times[-1]
        rows = {
            "source": f"{self.source} ({self.kind})",
            "span": f"{first:%a %Y-%m-%d %H:%M} to {last:%a %Y-%m-%d %H:%M}, {self.days:.1f} days, {self.zone}",
            "teams": f"{len(self.teams)}: {', '.join(self.teams[:8])}{', …' if len(self.teams) > 8 else ''}",
            "demand of all teams": f"mean {np.nanmean(self.total):,.0f}, peak {np.nanmax(self.total):,.0f} GPUs",
            "judged from": f"{self.times[self.judge_from]:%a %Y-%m-%d %H:%M} on; what is before is learned from",
            **{f"remark {i + 1}": remark for i, remark in enumerate(self.remarks)},
        }
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(k)}</th><td style='text-align:left'>{escape(v)}</td></tr>"
            for k, v in rows.items()
        )
        return f"<table>{body}</table>"


def local_times(at_s: np.ndarray[tuple[int, ...], np.dtype[np.int64]], zone: str) -> pd.DatetimeIndex:
    """Epoch seconds as local wall-clock times (the clock of the place, without an offset)."""
    stamps = pd.to_datetime(at_s, unit="s", utc=True)
    return pd.DatetimeIndex(stamps.tz_convert(zone).tz_localize(None))
