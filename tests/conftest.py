"""Fixtures that every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """The folder of whole traces beside the checkout; a missing folder is an error, never a skip."""
    folder = ROOT.parent / "shared" / "traces"
    assert folder.is_dir(), "the traces are expected in ../shared/traces beside the checkout"
    return folder
