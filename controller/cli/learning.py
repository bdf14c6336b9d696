"""``tidegate learning``: how the learner stands in each pool, and the switch that turns it off within one tick."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from controller.cli.decide import DEFAULT_STORE
from controller.cli.output import write_json
from controller.core.errors import InputError

if TYPE_CHECKING:
    from controller.store import Store

app = typer.Typer(help="See how the learner stands; kill or revive it within one tick.", no_args_is_help=True)
Url = Annotated[str, typer.Option("--store", help="The store of the running loop.")]
Cluster = Annotated[str, typer.Option(help="The cluster; needed only where the store holds several.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command()
def kill(store: Url = DEFAULT_STORE, cluster: Cluster = "", as_json: AsJson = False) -> None:
    """Turn learning off, whatever the policy says: from the next tick on the rule acts in every pool.

    Example: tidegate learning kill --store postgresql://tidegate@db/tidegate
    """
    _set(store, cluster, True, as_json)


@app.command()
def revive(store: Url = DEFAULT_STORE, cluster: Cluster = "", as_json: AsJson = False) -> None:
    """Take the kill flag back: the learner begins again in shadow, below the policy's ceiling.

    Example: tidegate learning revive
    """
    _set(store, cluster, False, as_json)


def _set(url: str, cluster: str, killed: bool, as_json: bool) -> None:
    from controller.store import kill_key, open_store

    _existing(url)
    with open_store(url) as store:
        name = _cluster(store, cluster)
        store.kv_set(kill_key(name), killed)
    if as_json:
        write_json({"cluster": name, "killed": killed})
        return
    after = "the rule acts from the next tick on" if killed else "it begins again in shadow with the next tick"
    undo = "`tidegate learning revive`" if killed else "`tidegate learning kill`"
    typer.echo(f"{name}: learning is {'off' if killed else 'allowed'}; {after} ({undo} takes this back)")


@app.command()
def status(store: Url = DEFAULT_STORE, cluster: Cluster = "", as_json: AsJson = False) -> None:
    """Say for each pool who acts, on which rung the learner stands, and what happened last.

    Example: tidegate learning status --json
    """
    from controller.store import kill_key, open_store

    _existing(store)
    with open_store(store) as opened:
        name = _cluster(opened, cluster)
        killed = bool(opened.kv_get(kill_key(name), False))
        rows = [_row(opened, name, pool) for pool in _pools(opened, name)]
    if as_json:
        write_json({"cluster": name, "killed": killed, "pools": rows})
        return
    typer.echo(f"{name}: {'killed; the rule acts everywhere' if killed else 'learning as the policy allows'}")
    for row in rows:
        typer.echo(
            f"{row['pool']}: rung {row['rung']}, {row['acting']} acts.{' Last: ' + row['last'] if row['last'] else ''}"
        )
    if not rows:
        typer.echo("nothing on record yet: learning is off, or the past is shorter than half a day")


def _row(store: Store, cluster: str, pool: str) -> dict[str, Any]:
    from controller.learning.ladder import LadderState
    from controller.store import learning_key

    ladder = LadderState.from_plain(store.kv_get(learning_key(cluster, pool))["ladder"])
    last = store.learning_events(cluster, pool, limit=1)
    return {
        "pool": pool,
        "rung": ladder.rung.value,
        "earned": ladder.earned.value,
        "acting": ladder.acting,
        "good_days": ladder.good_days,
        "holds": [hold.code.value for hold in ladder.holds],
        "last": last[0].sentence if last else "",
    }


def _pools(store: Store, cluster: str) -> list[str]:
    """The pools of the newest tick of which the learner's standing is kept."""
    import json

    from controller.store import learning_key

    newest = store.resume(cluster)
    if newest is None:
        return []
    named = [pool["pool"] for pool in json.loads(newest.decision)["pools"]]
    return [pool for pool in named if store.kv_get(learning_key(cluster, pool)) is not None]


def _cluster(store: Store, asked: str) -> str:
    known = store.clusters()
    if asked in known:
        return asked
    if asked or len(known) != 1:
        raise InputError.one("--cluster", asked or "not given", f"one of: {', '.join(known) or 'none yet'}")
    return known[0]


def _existing(url: str) -> None:
    path = Path(url.removeprefix("sqlite:///"))
    if "://" not in url.removeprefix("sqlite:///") and not path.exists():
        raise InputError.one("--store", url, "a store that exists")
