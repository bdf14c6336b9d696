"""Learning: who sets the headroom of each pool and why, what the learner would save, what would have happened."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse

from controller.learning.ladder import RUNGS
from dashboard import learning as model
from dashboard.candidate_words import who
from dashboard.context import Looking, ranging, render

router = APIRouter(include_in_schema=False)
RANGE = "7d"
"""As many days as the gate looks at."""
SHOWN_EVENTS = 20
SHOWN_VERDICTS = 7
_CHOICES = ("range", "from", "to")


@router.get("/learning", response_class=HTMLResponse)
def learning(request: Request, look: Looking, pool: Annotated[str, Query(max_length=100)] = "") -> Any:
    """All pools in a table where there are several, and one of them in full."""
    if look.now is None:
        return render(request, "empty.html", look, page="learning")
    if not any(name in request.query_params for name in _CHOICES):
        look = ranging(look, RANGE)
    names = model.pools(look)
    if pool and pool not in names:
        raise HTTPException(404, f"no pool {pool!r}; there are: {', '.join(names)}")
    standing = [model.pool_learning(look, name) for name in names]
    chosen = next((one for one in standing if one.pool == pool), standing[0] if standing else None)
    return render(
        request,
        "learning.html",
        look,
        page="learning",
        all=standing,
        one=chosen,
        saving_text=model.saving_text,
        who=who,
        changes=chosen.changes[:SHOWN_EVENTS] if chosen else (),
        verdicts=chosen.verdicts[:SHOWN_VERDICTS] if chosen else (),
        rungs=RUNGS,
    )
