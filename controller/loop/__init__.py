"""The loop: observe, forecast, decide, record, apply; the same code on a cluster, a simulation and a recording."""

from controller.loop.demand import DemandRecorder
from controller.loop.memory import Memory
from controller.loop.ports import (
    Advisor,
    DefaultAdvice,
    FixedPolicy,
    Forecaster,
    ForecastError,
    NoForecasts,
    PolicySource,
    Recorder,
    RecordError,
    Unrecorded,
)
from controller.loop.tick import Loop, Tick

__all__ = [
    "Advisor",
    "DefaultAdvice",
    "DemandRecorder",
    "FixedPolicy",
    "ForecastError",
    "Forecaster",
    "Loop",
    "Memory",
    "NoForecasts",
    "PolicySource",
    "RecordError",
    "Recorder",
    "Tick",
    "Unrecorded",
]
