"""Overview: what is happening, is anyone starved, what did tidegate just do."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from dashboard import view
from dashboard.context import Look, Looking, render

router = APIRouter(include_in_schema=False)
LATEST = 12


@router.get("/", response_class=HTMLResponse)
def overview(request: Request, look: Looking) -> Any:
    """The first page."""
    if look.now is None:
        return render(request, "empty.html", look, page="overview")
    latest = look.store.decisions(look.cluster, limit=LATEST)
    return render(
        request,
        "overview.html",
        look,
        page="overview",
        latest=latest,
        teams=[(team, _bar(look, team.pool, team)) for team in look.now.teams],
        starved=[team for team in look.now.teams if team.starved],
        waiting=sum(team.pending for team in look.now.teams),
        longest=max((team.longest_wait_s for team in look.now.teams), default=0),
    )


def _bar(look: Look, pool: str, team: Any) -> view.Bar:
    assert look.now is not None
    whole = next((p.obtainable_milli_gpus for p in look.now.pools if p.pool == pool), 0)
    return view.bar(team, whole)


@router.get("/violations", response_class=HTMLResponse)
def violations(request: Request, look: Looking) -> Any:
    """Rules that are or were broken in the range."""
    rows = look.store.violations(look.cluster, look.span.start_s, look.span.stop_s) if look.now else []
    return render(request, "violations.html", look, page="violations", rows=rows)
