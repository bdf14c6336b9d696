"""The loop's forecaster, fed with the demand that the loop itself recorded: one model per pool, refitted nightly."""

from __future__ import annotations

from collections.abc import Callable

from controller.core.forecast import Forecasts, SeriesForecast
from controller.loop.demand import DemandRecorder
from controller.loop.ports import ForecastError
from forecaster.service import ALL, Forecaster
from forecaster.windows import Window


class RecordedForecasts:
    """``forecaster.service`` over a ``DemandRecorder``. ``lead_of`` tells a pool's lead in seconds at the fit.

    ``lengths_of`` names window lengths (seconds) that are wanted beside the standard ones.
    """

    def __init__(
        self,
        demand: DemandRecorder,
        lead_of: Callable[[str], int],
        *,
        lengths_of: Callable[[str], tuple[int, ...]] = lambda _: (),
        experts: tuple[str, ...] = ALL,
    ) -> None:
        self._experts, self._lengths_of = experts, lengths_of
        self._demand, self._lead_of = demand, lead_of
        self._fitted: dict[str, Forecaster] = {}

    def fit(self, now_s: int) -> None:
        """Fit each pool on what was observed before ``now_s``; a pool that cannot be fitted keeps its last fit."""
        failed = []
        for pool in self._demand.pools:
            lead_s = self._lead_of(pool)
            model = Forecaster(lead_s, experts=self._experts)
            extra = {Window(lead_s, length) for length in self._lengths_of(pool)} - set(model.windows)
            model.windows = (*model.windows, *sorted(extra))
            try:
                model.fit(self._demand.panel(pool), now_s)
            except (ValueError, ArithmeticError) as error:  # numpy's LinAlgError is a ValueError
                failed.append(f"{pool}: {error}")
                continue
            self._fitted[pool] = model
        if failed:
            raise ForecastError("; ".join(failed))

    def forecasts(self, now_s: int) -> Forecasts:
        """Forecasts of every pool that was fitted."""
        series: list[SeriesForecast] = []
        for pool, model in sorted(self._fitted.items()):
            try:
                series += model.forecasts(self._demand.panel(pool), now_s, pool).series
            except (ValueError, ArithmeticError) as error:
                raise ForecastError(f"{pool}: {error}") from error
        return Forecasts(tuple(series))
