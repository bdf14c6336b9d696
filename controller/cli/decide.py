"""``tidegate decide`` makes one decision from files; ``tidegate explain`` says why, and proves that it would again."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from controller.cli.output import write_json
from controller.cli.values import iso_time
from controller.core.errors import InputError, Problem

if TYPE_CHECKING:
    from controller.core.actions import Decision
    from controller.store import Store

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
    what: Annotated[str, typer.Argument(help="An id in the store, a record (--dump writes one), or a decision.")],
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

      tidegate decide --snapshot s.json --policy p.yaml --now 2026-12-01 --json > d.json && tidegate explain d.json
    """
    story = _of_file(Path(what)) if Path(what).is_file() else _of_store(what, store)
    if dump is not None:
        _dump(dump, story)
    if as_json:
        document = {"id": story.id, "re_derived": story.same, "sentences": story.lines, "problem": story.problem}
        write_json(document | {"decision": _plain(story.parts["decision"])})
    else:
        for line in (*story.lines, story.verdict):
            typer.echo(line)
    if story.same is False:
        raise typer.Exit(1)


EARLIEST_S, LATEST_S = 31_536_000, 221_845_391_999
"""1971-01-01 and the last second of 8999: the years that ``--now`` takes too."""
PARTS = ("policy", "snapshot", "forecasts", "advice", "decision")
LEARNED = "learning"
"""The part that a record has where a learner was at work: what its advice came from, by pool."""


@dataclass(frozen=True, slots=True)
class Story:
    """A decision in sentences. ``same``: whether its inputs gave its bytes again; None where the inputs are not here.

    ``parts`` are the canonical bytes by name, those of ``PARTS`` or only the decision's.
    """

    id: str
    at_s: int
    parts: dict[str, bytes]
    lines: list[str]
    same: bool | None
    problem: str = ""

    @property
    def verdict(self) -> str:
        """The last line: whether to believe the rest."""
        if self.problem:
            return f"NOT re-derived: {self.problem}."
        if self.same is None:
            return "Not re-derived: a decision without its inputs; `tidegate explain ID --dump` writes both."
        if self.same:
            return "Re-derived from its inputs bit for bit."
        return "NOT re-derived: the recorded bytes differ from these."


def _of_store(identity: str, url: str) -> Story:
    from controller.store import open_store

    path = Path(url.removeprefix("sqlite:///"))
    if "://" not in url.replace("sqlite:///", "") and not path.exists():
        raise InputError.one(
            "--store", url, f"a store, or give a record file; {identity} is neither file nor in a store"
        )
    with open_store(url) as store:
        found = store.record(identity)
        learned = _learned(store, identity)
    if found is None:
        raise InputError.one("id", identity, f"an id that {url} holds (the dashboard's Decisions page shows them)")
    data = (found.policy_bytes, found.snapshot, found.forecasts, found.advice, found.decision)
    parts = dict(zip(PARTS, data, strict=True)) | learned
    try:
        return _again(found.id, found.at_s, parts, "record")
    except InputError as error:
        # The store is ours: what it holds and we cannot read was written by another version, or is damaged.
        said = f"its inputs cannot be read ({error.lines()[0]}); another version wrote them, or they are damaged"
        return Story(found.id, found.at_s, parts, [], False, said)


def _learned(store: Store, identity: str) -> dict[str, bytes]:
    """What each pool's advice was computed from, model file included; nothing where no learner was at work."""
    from controller.core.canonical import canonical_bytes

    rows = []
    for tick in store.learning_tick(identity):
        model = store.model(tick.model)
        if tick.inputs and model is not None:
            rows.append({"inputs": _plain(tick.inputs), "model": _plain(model.body), "pool": tick.pool})
    return {LEARNED: canonical_bytes(rows)} if rows else {}


def _of_file(path: Path) -> Story:
    from controller.core.canonical import canonical_bytes
    from controller.core.explain import explain as sentences
    from controller.resources import codec
    from controller.resources.problems import shown

    source = str(path)
    document = codec.read_json(_bytes(path), source)
    if "snapshot" not in document and "actions" in document:
        data = canonical_bytes(document)
        decision = codec.read_decision(data, source)
        return Story(path.name, decision.at_s, {"decision": data}, sentences(decision), None)
    missing = [part for part in (*PARTS, "at_s") if part not in document]
    if missing:
        allowed = "required in a record; `tidegate explain ID --dump` writes one"
        raise InputError([Problem(part, "missing", allowed) for part in missing], source=source)
    at_s = document["at_s"]
    if not isinstance(at_s, int) or isinstance(at_s, bool) or not EARLIEST_S <= at_s <= LATEST_S:
        raise InputError.one("at_s", shown(at_s), "whole seconds since 1970, of the years 1971 to 8999", source=source)
    parts = {part: canonical_bytes(document[part]) for part in (*PARTS, LEARNED) if part in document}
    return _again(str(document.get("id", path.name)), at_s, parts, source)


def _again(identity: str, at_s: int, parts: dict[str, bytes], source: str) -> Story:
    """Decide again from recorded inputs and compare the bytes."""
    from controller.core.canonical import canonical_bytes
    from controller.core.decide import decide as make
    from controller.core.explain import explain as sentences
    from controller.resources import codec

    decision = make(
        codec.read_snapshot(parts["snapshot"], f"{source}: snapshot"),
        codec.read_forecasts(parts["forecasts"], f"{source}: forecasts"),
        codec.read_policy(parts["policy"], f"{source}: policy"),
        at_s,
        codec.read_advice(parts["advice"], f"{source}: advice"),
    )
    told, same = _advised_again(parts, source)
    lines = [*sentences(decision), *told]
    return Story(identity, at_s, parts, lines, same and canonical_bytes(decision) == parts["decision"])


def _advised_again(parts: dict[str, bytes], source: str) -> tuple[list[str], bool]:
    """Compute each pool's advice again from its recorded inputs and model file: sentences, and whether all agree."""
    from controller.core.canonical import canonical_bytes
    from controller.learning import advise
    from controller.resources import codec

    lines, same = [], True
    recorded = codec.read_advice(parts["advice"], f"{source}: advice")
    rows = json.loads(parts.get(LEARNED, b"[]"))
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError.one(LEARNED, "something else", "a list of mappings with inputs and model", source=source)
    for i, row in enumerate(rows):
        at = f"{source}: {LEARNED}[{i}]"
        inputs = advise.read_inputs(canonical_bytes(row.get("inputs")), at)
        body = canonical_bytes(row.get("model"))
        advice = advise.advice(inputs, advise.read_model(body, at))
        agrees = advice == recorded.of(inputs.pool) and sha256(body).hexdigest()[:16] == inputs.model
        same = same and agrees
        who = "the learner's" if inputs.acts else "the rule's"
        found = "was computed again from its inputs and model" if agrees else "could NOT be computed again: model"
        lines.append(f"Advice for {inputs.pool}, {who}, {found} {inputs.model}.")
    return lines, same


def _plain(data: bytes) -> Any:
    """What a part holds; null where a damaged one is no JSON."""
    try:
        return json.loads(data)
    except ValueError:
        return None


def _dump(path: Path, story: Story) -> None:
    from controller.core.canonical import canonical_bytes

    document = {"id": story.id, "at_s": story.at_s} | {name: _plain(data) for name, data in story.parts.items()}
    try:
        path.write_bytes(canonical_bytes(document))
    except OSError as error:
        raise InputError.one("--dump", path, f"a file that can be written ({error.strerror})") from error
