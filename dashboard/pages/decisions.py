"""Decisions: each action with its reason, and each tick explained from its own record."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response

from controller.core.explain import SENTENCES
from dashboard import view
from dashboard.context import Looking, render
from dashboard.record import explanation, inputs

router = APIRouter(include_in_schema=False)
PAGE = 50


@router.get("/decisions", response_class=HTMLResponse)
def decisions(
    request: Request,
    look: Looking,
    team: Annotated[str, Query(max_length=100)] = "",
    pool: Annotated[str, Query(max_length=100)] = "",
    kind: Annotated[str, Query(max_length=40)] = "",
    code: Annotated[str, Query(max_length=60)] = "",
    before: Annotated[int, Query(ge=0, le=2**63 - 1)] = 0,
) -> Any:
    """Actions, newest first, filtered and in pages."""
    if look.now is None:
        return render(request, "empty.html", look, page="decisions")
    if kind and kind not in view.KINDS:
        raise HTTPException(422, f"kind: one of {', '.join(view.KINDS)}")
    chosen = {"team": team or None, "pool": pool or None, "kind": kind or None, "code": code or None}
    rows = look.store.decisions(
        look.cluster, look.span.start_s, look.span.stop_s, **chosen, limit=PAGE + 1, before_id=before or None
    )
    known = look.store.series(look.cluster)
    return render(
        request,
        "decisions.html",
        look,
        page="decisions",
        rows=rows[:PAGE],
        more=rows[PAGE - 1].seq if len(rows) > PAGE else None,
        filters={"team": team, "pool": pool, "kind": kind, "code": code},
        teams=sorted({name for _, name in known if name}),
        pools=sorted({name for name, _ in known}),
        codes=sorted(code.value for code in SENTENCES),
    )


@router.get("/decisions/{tick_id}", response_class=HTMLResponse)
def decision(request: Request, tick_id: str, look: Looking) -> Any:
    """One tick: how things stood, what was done, what was not and why, and whether it derives again."""
    found = look.store.decision(tick_id)
    if found is None:
        raise HTTPException(404, f"no decision {tick_id!r} in the store (it may have been pruned)")
    story = explanation(found.record) if found.record else None
    return render(
        request, "decision.html", look, page="decisions", found=found, story=story, tables=inputs(found.record)
    )


@router.get("/decisions/{tick_id}/record.json")
def record(tick_id: str, look: Looking) -> Response:
    """The whole record: what ``tidegate explain FILE`` reads, and what belongs into a bug report."""
    found = look.store.record(tick_id)
    if found is None:
        raise HTTPException(404, f"no record of decision {tick_id!r}")
    from dashboard.record import document

    name = f'attachment; filename="tidegate-{tick_id}.json"'
    return Response(document(found), media_type="application/json", headers={"Content-Disposition": name})
