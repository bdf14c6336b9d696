"""Overview: what is happening, is anyone starved, what did tidegate just do."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from dashboard import view
from dashboard.context import Looking, render

router = APIRouter(include_in_schema=False)
LATEST = 12
MOST_TEAMS = 30
"""More teams than this are shown worst first, with a link to all."""
MOST_NAMED = 3
"""So many starved teams are named in the headline."""
MOST_VIOLATIONS = 200


@router.get("/", response_class=HTMLResponse)
def overview(request: Request, look: Looking) -> Any:
    """The first page."""
    if look.now is None:
        return render(request, "empty.html", look, page="overview")
    latest = look.store.decisions(look.cluster, limit=LATEST)
    ordered = view.worst_first(look.now.teams)
    shown = list(look.now.teams) if len(ordered) <= MOST_TEAMS else ordered[:MOST_TEAMS]
    wide = view.widest(look.now.teams)
    starved = [team for team in ordered if team.starved]
    return render(
        request,
        "overview.html",
        look,
        page="overview",
        latest=latest,
        teams=[(team, view.bar(team, wide[team.pool])) for team in shown],
        wide=wide,
        starved=starved,
        critical=view.beside_starved(look.now.violations, starved),
        others=[team for team in ordered if team.pending and not team.starved],
        named=MOST_NAMED,
        waiting=sum(team.pending for team in look.now.teams),
        longest=max((team.longest_wait_s for team in look.now.teams), default=0),
    )


@router.get("/violations", response_class=HTMLResponse)
def violations(request: Request, look: Looking) -> Any:
    """Rules that are or were broken in the range."""
    span = (look.span.start_s, look.span.stop_s)
    rows = look.store.violations(look.cluster, *span, limit=MOST_VIOLATIONS + 1) if look.now else []
    most = MOST_VIOLATIONS if len(rows) > MOST_VIOLATIONS else None
    return render(request, "violations.html", look, page="violations", rows=rows[:MOST_VIOLATIONS], most=most)
