"""Teams: who may hold what, who holds what, who waits; and each team over time."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse

from dashboard import view
from dashboard.context import Looking, render

router = APIRouter(include_in_schema=False)


@router.get("/teams", response_class=HTMLResponse)
def teams(request: Request, look: Looking) -> Any:
    """All teams; filtered and sorted in the page, so that 200 stay readable."""
    if look.now is None:
        return render(request, "empty.html", look, page="teams")
    wide = view.widest(look.now.teams)
    rows = [(team, view.bar(team, wide[team.pool])) for team in look.now.teams]
    return render(request, "teams.html", look, page="teams", rows=rows, wide=wide)


@router.get("/teams/{pool}/{name}", response_class=HTMLResponse)
def team(request: Request, pool: str, name: str, look: Looking) -> Any:
    """One team in one pool."""
    if look.now is None or (pool, name) not in look.store.series(look.cluster):
        raise HTTPException(404, f"no team {name!r} in pool {pool!r}")
    standing = next((t for t in look.now.teams if (t.pool, t.team) == (pool, name)), None)
    latest = look.store.decisions(look.cluster, team=name, pool=pool, limit=20)
    return render(request, "team.html", look, page="teams", pool=pool, name=name, team=standing, latest=latest)
