"""``tidegate decide`` makes one decision from files; ``tidegate explain`` says why, and proves that it would again."""

from __future__ import annotations

import sys
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from controller.cli.output import write_json
from controller.cli.values import iso_time
from controller.core.errors import InputError

if TYPE_CHECKING:
    from controller.core.actions import Decision

DEFAULT_STORE = ".tidegate/demo.sqlite"
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("decide")(decide)
    app.command("explain")(explain)


def decide(
    snapshot: Annotated[Path, typer.Option(help="A snapshot (JSON).")],
    policy: Annotated[Path, typer.Option(help="A policy file (YAML).")],
    now: Annotated[str, typer.Option(help="The moment of the decision, ISO 8601; without an offset it is UTC.")],
    forecasts: Annotated[Path | None, typer.Option(help="Forecasts (JSON); without them the rule decides.")] = None,
    advice: Annotated[Path | None, typer.Option(help="Advice (JSON); without it the rule's defaults hold.")] = None,
    as_json: Json = False,
) -> None:
    """Make one decision from files: with --json its canonical bytes, else the decision in sentences.

    Example: tidegate decide --snapshot s.json --policy p.yaml --now 2026-12-01T09:00:00Z --json
    """
    from controller.core.advice import Advice
    from controller.core.decide import decide as make
    from controller.core.forecast import Forecasts
    from controller.resources import codec
    from controller.resources.parse import load_policy

    seen = codec.read_snapshot(_bytes(snapshot), str(snapshot))
    rules = load_policy(policy)
    ahead = codec.read_forecasts(_bytes(forecasts), str(forecasts)) if forecasts else Forecasts()
    advised = codec.read_advice(_bytes(advice), str(advice)) if advice else Advice()
    _show(make(seen, ahead, rules, _instant(now), advised), as_json)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError.one("(file)", "", f"cannot be read: {error.strerror}", source=str(path)) from error


def _instant(text: str) -> int:
    given = iso_time(text, "--now", "2026-12-01T09:00:00Z")
    return int((given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp())


def _show(decision: Decision, as_json: bool) -> None:
    from controller.core.canonical import canonical_bytes
    from controller.core.explain import explain as sentences

    if as_json:
        sys.stdout.buffer.write(canonical_bytes(decision) + b"\n")
        return
    for line in sentences(decision):
        typer.echo(line)


def explain(
    what: Annotated[str, typer.Argument(help="A decision's id in the store, or a record file (--dump writes one).")],
    store: Annotated[str, typer.Option(help="The store that holds the id.")] = DEFAULT_STORE,
    dump: Annotated[
        Path | None, typer.Option(help="Also write the whole record here: the file for a bug report.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say why a decision was made, and make it again from its recorded inputs: the bytes must be the same.

    Exit code 1: the decision could not be derived again (another version made it, or it is damaged).

    Examples:

      tidegate explain 3f2a9c0d11e4b7aa

      tidegate explain 3f2a9c0d11e4b7aa --dump record.json && tidegate explain record.json
    """
    record = _record_file(Path(what)) if Path(what).is_file() else _record_of(what, store)
    made, same = _again(record)
    if dump is not None:
        dump.write_bytes(_dumped(record))
    if as_json:
        write_json(
            {
                "id": record["id"],
                "re_derived": same,
                "sentences": _sentences(made),
                "decision": _plain(record["decision"]),
            }
        )
    else:
        for line in _sentences(made):
            typer.echo(line)
        typer.echo(
            "Re-derived from its inputs bit for bit."
            if same
            else "NOT re-derived: the recorded bytes differ from these."
        )
    if not same:
        raise typer.Exit(1)


PARTS = ("policy", "snapshot", "forecasts", "advice", "decision")


def _record_of(identity: str, url: str) -> dict[str, Any]:
    from controller.store import open_store

    path = Path(url.removeprefix("sqlite:///"))
    if "://" not in url.replace("sqlite:///", "") and not path.exists():
        raise InputError.one(
            "--store", url, f"a store, or give a record file; {identity} is neither file nor in a store"
        )
    with open_store(url) as store:
        found = store.record(identity)
    if found is None:
        raise InputError.one("id", identity, f"an id that {url} holds (the dashboard's Decisions page shows them)")
    return {
        "id": found.id,
        "at_s": found.at_s,
        "policy": found.policy_bytes,
        "snapshot": found.snapshot,
        "forecasts": found.forecasts,
        "advice": found.advice,
        "decision": found.decision,
    }


def _record_file(path: Path) -> dict[str, Any]:
    import json

    try:
        document = json.loads(_bytes(path))
    except ValueError as error:
        raise InputError.one("(file)", "not JSON", str(error), source=str(path)) from error
    missing = [part for part in (*PARTS, "at_s") if not isinstance(document, dict) or part not in document]
    if missing:
        raise InputError.one(
            missing[0], "missing", "required in a record; `tidegate explain ID --dump` writes one", source=str(path)
        )
    return {"id": document.get("id", path.name), "at_s": document["at_s"]} | {p: _packed(document[p]) for p in PARTS}


def _packed(value: Any) -> bytes:
    from controller.core.canonical import canonical_bytes

    return canonical_bytes(value)


def _dumped(record: dict[str, Any]) -> bytes:
    return _packed({"id": record["id"], "at_s": record["at_s"]} | {part: _plain(record[part]) for part in PARTS})


def _plain(data: bytes) -> Any:
    import json

    return json.loads(data)


def _again(record: dict[str, Any]) -> tuple[Decision, bool]:
    from controller.core.canonical import canonical_bytes
    from controller.core.decide import decide as make
    from controller.resources import codec

    decision = make(
        codec.read_snapshot(record["snapshot"]),
        codec.read_forecasts(record["forecasts"]),
        codec.read_policy(record["policy"]),
        record["at_s"],
        codec.read_advice(record["advice"]),
    )
    return decision, canonical_bytes(decision) == record["decision"]


def _sentences(decision: Decision) -> list[str]:
    from controller.core.explain import explain as sentences

    return sentences(decision)
