"""What every page needs: the store, the cluster looked at, its zone, and the time range in the address."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
class Recorded:
    """What pages need from inside a tick's record, which holds megabytes: read once a tick and not once a request.

    ``gpu_hour_micro_usd`` has the pools that have a price; ``learning`` is that part of the policy, {} if not known.
    """

    tick_id: str = ""
    zone: str = "UTC"
    gpus_per_node: Mapping[str, int] = field(default_factory=dict)
    gpu_hour_micro_usd: Mapping[str, int] = field(default_factory=dict)
    learning: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Look:
    """One request's view of the data. ``now`` is None while the store is empty."""

    store: Store
    cluster: str
    clusters: tuple[str, ...]
    recorded: Recorded
    span: Span
    now: Now | None

    @property
    def zone(self) -> str:
        """The policy's time zone."""
        return self.recorded.zone

    @property
    def gpus_per_node(self) -> Mapping[str, int]:
        """Of each pool."""
        return self.recorded.gpus_per_node

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
    return Look(store, chosen, clusters, inside, span, now)


Looking = Annotated[Look, Depends(look)]


def _recorded(request: Request, store: Store, now: Now | None) -> Recorded:
    if now is None:
        return Recorded()
    kept: dict[str, Recorded] = request.app.state.recorded
    found = kept.get(now.tick.cluster)
    if found is None or found.tick_id != now.tick.id:
        found = kept[now.tick.cluster] = _read(store, now.tick.id)
    return found


def _read(store: Store, tick_id: str) -> Recorded:
    record = store.record(tick_id)
    if record is None:
        return Recorded(tick_id)
    pools, policy = json.loads(record.snapshot)["pools"], json.loads(record.policy_bytes)
    return Recorded(
        tick_id,
        str(policy["timezone"]),
        {pool["name"]: int(pool["gpus_per_node"]) for pool in pools},
        {
            pool["name"]: int(pool["micro_usd_per_node_hour"]) // int(pool["gpus_per_node"])
            for pool in pools
            if pool.get("micro_usd_per_node_hour") and pool["gpus_per_node"]
        },
        policy.get("learning", {}),
    )


def _span(store: Store, cluster: str, name: str, from_: str, to: str) -> Span:
    known = store.span(cluster) if cluster else None
    first, last = known or (0, 0)
    if from_ or to:
        start_s, stop_s = _moment(from_, "from") if from_ else first, _moment(to, "to") if to else last
        if from_ and to and start_s > stop_s:
            raise HTTPException(422, f"from: {from_!r} is later than to: {to!r}")
        return Span("custom", start_s, stop_s + 1)
    length = view.RANGES[name]
    return Span(name, max(first, last - length) if length else first, last + 1)


def ranging(looking: Look, name: str) -> Look:
    """The same look over another of ``view.RANGES``."""
    return replace(looking, span=_span(looking.store, looking.cluster, name, "", ""))


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
