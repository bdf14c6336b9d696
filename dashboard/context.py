"""What every page needs: the store, the cluster looked at, its zone, and the time range in the address."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Query, Request
from fastapi.templating import Jinja2Templates

from controller.store import Now, Store, problems_key
from dashboard import view

RANGE = "1d"


@dataclass(frozen=True, slots=True)
class Span:
    """A time range: ``name`` of ``view.RANGES`` or ``custom``; instants in epoch seconds."""

    name: str
    start_s: int
    stop_s: int

    @property
    def query(self) -> str:
        """The range as it stands in the address."""
        if self.name == "custom":
            return f"from={view.iso(self.start_s)}&to={view.iso(self.stop_s - 1)}"
        return f"range={self.name}"


@dataclass(frozen=True, slots=True)
class Look:
    """One request's view of the data. ``now`` is None while the store is empty."""

    store: Store
    cluster: str
    clusters: tuple[str, ...]
    zone: str
    gpus_per_node: dict[str, int]
    span: Span
    now: Now | None

    @property
    def problems(self) -> list[str]:
        """What the loop says is wrong with it now: a policy that was refused, a world out of reach."""
        return [str(problem) for problem in self.store.kv_get(problems_key(self.cluster), [])]

    def link(self, path: str, **query: str) -> str:
        """An address inside the dashboard that keeps cluster and range."""
        from urllib.parse import quote

        parts = [f"{key}={quote(value)}" for key, value in query.items() if value]
        if len(self.clusters) > 1:
            parts.append(f"cluster={quote(self.cluster)}")
        return f"{path}?{'&'.join([self.span.query, *parts])}"


def look(
    request: Request,
    cluster: Annotated[str, Query(max_length=200)] = "",
    range_: Annotated[str, Query(alias="range", pattern="^(1h|6h|1d|7d|30d|all)$")] = RANGE,
    from_: Annotated[str, Query(alias="from", max_length=40)] = "",
    to: Annotated[str, Query(max_length=40)] = "",
) -> Look:
    """Build a request's view; unknown clusters are 404, unreadable times 422."""
    store: Store = request.app.state.store
    clusters = store.clusters()
    if cluster and cluster not in clusters:
        raise HTTPException(404, f"no cluster {cluster!r} in the store; there are: {', '.join(clusters) or 'none yet'}")
    chosen = cluster or next(iter(clusters), "")
    now = store.now(chosen) if chosen else None
    inside = _recorded(request, store, now)
    span = _span(store, chosen, range_, from_, to)
    return Look(store, chosen, clusters, inside.zone, inside.gpus_per_node, span, now)


Looking = Annotated[Look, Depends(look)]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What pages need from inside a tick's record, which holds megabytes: read once a tick and not once a request."""

    tick_id: str
    zone: str
    gpus_per_node: dict[str, int]


def _recorded(request: Request, store: Store, now: Now | None) -> Recorded:
    if now is None:
        return Recorded("", "UTC", {})
    kept: dict[str, Recorded] = request.app.state.recorded
    found = kept.get(now.tick.cluster)
    if found is None or found.tick_id != now.tick.id:
        found = kept[now.tick.cluster] = _read(store, now.tick.id)
    return found


def _read(store: Store, tick_id: str) -> Recorded:
    record = store.record(tick_id)
    if record is None:
        return Recorded(tick_id, "UTC", {})
    pools = json.loads(record.snapshot)["pools"]
    zone = str(json.loads(record.policy_bytes)["timezone"])
    return Recorded(tick_id, zone, {pool["name"]: int(pool["gpus_per_node"]) for pool in pools})


def _span(store: Store, cluster: str, name: str, from_: str, to: str) -> Span:
    known = store.span(cluster) if cluster else None
    first, last = known or (0, 0)
    if from_ or to:
        return Span("custom", _moment(from_, "from") if from_ else first, (_moment(to, "to") if to else last) + 1)
    length = view.RANGES[name]
    return Span(name, max(first, last - length) if length else first, last + 1)


def _moment(text: str, field: str) -> int:
    from datetime import UTC, datetime

    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise HTTPException(422, f"{field}: {text!r} is not an ISO time such as 2026-12-01T09:00:00Z") from None
    return int((given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp())


def render(request: Request, template: str, looking: Look, **values: Any) -> Any:
    """Render a page with what all pages show."""
    templates: Jinja2Templates = request.app.state.templates
    shared = {"look": looking, "now": looking.now, "zone": looking.zone, "ranges": list(view.RANGES)}
    return templates.TemplateResponse(request, template, shared | values)
