"""Nodes: each pool's nodes by state, and who sits where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from controller.core.demand import measure
from controller.core.nodes import phase
from controller.core.quantities import MILLI
from controller.core.snapshot import Node, Snapshot, Workload
from controller.resources import codec
from dashboard.context import Looking, render

router = APIRouter(include_in_schema=False)
COLOURS = 8
"""Colours of the sheet's ``team-0`` … ``team-7``; the last stands for all other teams where there are more."""


@dataclass(frozen=True, slots=True)
class Seat:
    """What one team holds of a node."""

    team: str
    milli_gpus: int
    percent: float


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node as the page shows it."""

    node: Node
    phase: str
    seats: tuple[Seat, ...]
    used: int
    jobs: int


@router.get("/nodes", response_class=HTMLResponse)
def nodes(request: Request, look: Looking) -> Any:
    """Pools and nodes as the newest tick saw them."""
    record = look.store.record(look.now.tick.id) if look.now else None
    if look.now is None or record is None:
        return render(request, "empty.html", look, page="nodes")
    snapshot, policy = codec.read_snapshot(record.snapshot), codec.read_policy(record.policy_bytes)
    owners = measure(snapshot, policy, record.at_s).team_of
    rows = node_rows(snapshot, owners, record.at_s)
    coloured = largest(rows)
    others = any(seat.team not in coloured for row in rows for seat in row.seats)
    return render(
        request, "nodes.html", look, page="nodes", rows=rows, at_s=record.at_s, coloured=coloured, others=others
    )


def largest(rows: list[NodeRow]) -> list[str]:
    """The teams that have a colour of their own, by name: those that hold most. More colours are not told apart."""
    held: dict[str, int] = {}
    for row in rows:
        for seat in row.seats:
            held[seat.team] = held.get(seat.team, 0) + seat.milli_gpus
    most = sorted(held, key=lambda team: (-held[team], team))
    return sorted(most if len(most) <= COLOURS else most[: COLOURS - 1])


def node_rows(snapshot: Snapshot, owners: dict[str, str], now_s: int) -> list[NodeRow]:
    """Every node with what each team holds of it, by pool and name."""
    held: dict[str, dict[str, int]] = {}
    jobs: dict[str, set[str]] = {}
    for work in snapshot.workloads:
        _seat(work, owners, held, jobs)
    rows = []
    for node in sorted(snapshot.nodes, key=lambda n: (n.pool, n.name)):
        whole = max(node.gpus * MILLI, 1)
        mine = sorted(held.get(node.name, {}).items())
        seats = tuple(Seat(team, amount, round(100 * amount / whole, 2)) for team, amount in mine)
        used = sum(seat.milli_gpus for seat in seats)
        rows.append(NodeRow(node, phase(node, now_s).value, seats, used, len(jobs.get(node.name, ()))))
    return rows


def _seat(work: Workload, owners: dict[str, str], held: dict[str, dict[str, int]], jobs: dict[str, set[str]]) -> None:
    if not work.milli_gpus_per_pod:
        return
    team = owners.get(work.namespace, "no team")
    for node in work.nodes:
        here = held.setdefault(node, {})
        here[team] = here.get(team, 0) + work.milli_gpus_per_pod
        jobs.setdefault(node, set()).add(work.name)
