"""The loop's forecaster, fed with the demand that the loop itself recorded: two models per pool, refitted nightly."""

from __future__ import annotations

from collections.abc import Callable

from controller.core.forecast import TOTAL, Forecasts, SeriesForecast
from controller.learning import candidates
from controller.learning.shadows import REFIT_DAYS
from controller.loop.demand import DemandRecorder
from controller.loop.ports import ForecastError
from forecaster.series import Panel
from forecaster.service import ALL, Forecaster, Rolling


class RecordedForecasts:
    """``forecaster.service`` over a ``DemandRecorder``. ``lead_of`` tells a pool's lead in seconds at the fit.

    A pool's teams share one model. Its total has one of its own, alone and with the windows and levels that learning
    reads, so that what a learner sees live is what the replay of its past saw.
    """

    def __init__(
        self, demand: DemandRecorder, lead_of: Callable[[str], int], *, experts: tuple[str, ...] = ALL
    ) -> None:
        self._experts = experts
        self._demand, self._lead_of = demand, lead_of
        self._fitted: dict[str, tuple[Forecaster, Forecaster]] = {}

    def fit(self, now_s: int) -> None:
        """Fit each pool on what was observed before ``now_s``; a pool that cannot be fitted keeps its last fit."""
        failed = []
        for pool in self._demand.pools:
            lead_s = self._lead_of(pool)
            teams = Forecaster(lead_s, experts=self._experts)
            total = Forecaster(lead_s, experts=self._experts, levels=candidates.LEVELS, refit_boosted=REFIT_DAYS)
            total.windows = candidates.windows(lead_s)
            try:
                panel = self._demand.panel(pool)
                teams.fit(panel, now_s)
                total.fit(_total(panel), now_s)
            except (ValueError, ArithmeticError) as error:  # numpy's LinAlgError is a ValueError
                failed.append(f"{pool}: {error}")
                continue
            self._fitted[pool] = teams, total
        if failed:
            raise ForecastError("; ".join(failed))

    def forecasts(self, now_s: int) -> Forecasts:
        """Forecasts of every pool that was fitted."""
        series: list[SeriesForecast] = []
        for pool, (teams, total) in sorted(self._fitted.items()):
            try:
                panel = self._demand.panel(pool)
                series += [one for one in teams.forecasts(panel, now_s, pool).series if one.team != TOTAL]
                series += total.forecasts(_total(panel), now_s, pool).series
            except (ValueError, ArithmeticError) as error:
                raise ForecastError(f"{pool}: {error}") from error
        return Forecasts(tuple(series))

    def walked(self, pool: str) -> tuple[int, Rolling] | None:
        """A pool's total over the last weeks as it was forecast then, and the moment of the first row."""
        fitted = self._fitted.get(pool)
        return None if fitted is None else fitted[1].walked()


def _total(panel: Panel) -> Panel:
    return Panel((TOTAL,), panel.origin_s, panel.step_s, panel.timezone, panel.values[:, -1:])
