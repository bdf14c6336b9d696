"""What a notebook shows of pandas tables and of errors: whole sentences, and one line that says what is allowed."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

import pandas as pd

from controller.core.errors import InputError


def prepare() -> None:
    """Set up the IPython that this runs in, if any: tables keep their sentences, refusals come without a trace."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return
    pd.set_option("display.max_colwidth", None)
    shell.set_custom_exc((InputError,), _refused)


def _refused(
    shell: Any, kind: type[BaseException], error: InputError, trace: TracebackType | None, tb_offset: int | None = None
) -> list[str]:
    """Show what was refused. The cell has failed all the same, so what is below it does not run."""
    lines = [f"not possible: {line}" for line in error.lines()]
    shell._showtraceback(kind, error, lines)
    return lines
