"""Fixtures of the forecaster's tests."""

from __future__ import annotations

import numpy as np
import pytest
from forecaster_builders import DAY, a_panel, daily

from forecaster.series import Panel


@pytest.fixture
def rhythm() -> Panel:
    """Six days of two teams: one with a rhythm, one constant."""
    return a_panel(np.column_stack([daily(6), np.full(6 * DAY, 5.0)]), ("serving", "steady"))
