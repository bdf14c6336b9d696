"""The one SQL store: what every tick saw, decided and did, for the dashboard, the forecaster and a restart.

SQLite by default, PostgreSQL by URL; same tables, same queries, same tests. Everything goes through ``Store``; the rest
of tidegate never sees SQL.
"""

from controller.store.errors import NewerSchemaError, StoreError
from controller.store.learning_records import (
    LearningDay,
    LearningEvent,
    LearningOutcome,
    LearningPoint,
    LearningTick,
    ModelFile,
    kill_key,
    learning_key,
)
from controller.store.records import (
    ActionRow,
    Columns,
    DecisionView,
    DemandSeries,
    ForecastPoint,
    ForecastWindow,
    NoteRow,
    Now,
    OutcomeRow,
    ScoredForecast,
    StoreInfo,
    TickHeader,
    TickRecord,
    ViolationRow,
)
from controller.store.retention import Pruned, Retention
from controller.store.store import Store, open_store, problems_key

__all__ = [
    "ActionRow",
    "Columns",
    "DecisionView",
    "DemandSeries",
    "ForecastPoint",
    "ForecastWindow",
    "LearningDay",
    "LearningEvent",
    "LearningOutcome",
    "LearningPoint",
    "LearningTick",
    "ModelFile",
    "NewerSchemaError",
    "NoteRow",
    "Now",
    "OutcomeRow",
    "Pruned",
    "Retention",
    "ScoredForecast",
    "Store",
    "StoreError",
    "StoreInfo",
    "TickHeader",
    "TickRecord",
    "ViolationRow",
    "kill_key",
    "learning_key",
    "open_store",
    "problems_key",
]
