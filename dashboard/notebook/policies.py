"""A policy in a notebook: shown, changed field by field, compared, written back; the author keeps the comments."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from controller.core.errors import InputError
from controller.core.policy import ZERO, Bounds, Mode, Policy, Pool, PoolLimits, Team
from controller.core.quantities import MILLI, Amount
from controller.resources.parse import parse_policy, read_text
from controller.resources.policy_text import policy_text
from controller.worlds.simulated.trace import BUILTIN, builtin_folder
from dashboard.notebook.history import History
from dashboard.notebook.said import Note
from dashboard.notebook.yaml_edit import edited

GPUS_PER_NODE = 8
LONGEST_NAME = 63


@dataclass(frozen=True, slots=True)
class Draft:
    """A policy's text that has passed the check; ``origin`` says where it came from. Changing it makes a new one."""

    text: str
    origin: str

    def __post_init__(self) -> None:
        parse_policy(self.text, self.origin)

    @property
    def policy(self) -> Policy:
        """The policy that the text stands for."""
        return parse_policy(self.text, self.origin)

    def change(self, changes: dict[str, Any]) -> Draft:
        """With other values: ``{"spec.teams[dev].bounds.floor": "20%", "spec.lending.notice": "5m"}``.

        Everything else, comments too, stays as it is. ``InputError`` names what a field allows.
        """
        text = self.text
        for path, value in changes.items():
            text = edited(text, path, value, self.origin)
        return Draft(text, self.origin)

    def floors(self, times: float) -> dict[str, Any]:
        """Changes that multiply every floor, those of schedule windows too: ``floors(times=0.5)`` halves them."""
        changes: dict[str, Any] = {}
        for team in self.policy.teams:
            place = f"spec.teams[{team.name}]"
            if team.bounds.floor != ZERO:
                changes[f"{place}.bounds.floor"] = _times(team.bounds.floor, times)
            for window in team.schedule:
                if window.floor is not None:
                    changes[f"{place}.schedule[{window.name}].bounds.floor"] = _times(window.floor, times)
        return changes

    def diff(self, other: Draft) -> Note:
        """What ``other`` changes, line by line."""
        lines = difflib.unified_diff(self.text.splitlines(), other.text.splitlines(), "before", "after", "", "", 1, "")
        return Note("```diff\n" + ("\n".join(lines) or "no difference") + "\n```")

    def save(self, path: str) -> Note:
        """Write the text to a file; never over the file that it came from."""
        target = Path(path)
        if target.exists() and Path(self.origin).exists() and target.samefile(self.origin):
            raise InputError.one("save", path, "another file than the policy it came from; rename it when you agree")
        try:
            target.write_text(self.text, "utf-8", newline="")
        except OSError as error:
            raise InputError.one("save", path, f"a file that can be written ({error.strerror})") from error
        return Note(
            f"Written to `{path}`. Check it with `tidegate policy check {path}`, then review it as you would code."
        )

    def _repr_markdown_(self) -> str:
        return f"```yaml\n{self.text.rstrip()}\n```"


def _times(amount: Amount, factor: float) -> int | str:
    """A bound multiplied, as a policy writes it: whole GPUs or a percentage with one decimal."""
    if amount.ppm is not None:
        return f"{round(amount.ppm * factor / 10_000, 1):g}%"
    return int((amount.milli_gpus or 0) * factor) // MILLI


def policy(history: History, file: str = "") -> Draft:
    """The policy to work on: a file, else the one that came with the history, else one to begin with.

    A store gives the policy of its newest decision; a trace folder may hold a ``policy.yaml``. One to begin with reads
    only (``mode: observe``), has the teams of the history and their median demand as floors.
    """
    if file:
        path = builtin_folder(file) / "policy.yaml" if file.startswith(BUILTIN) else Path(file)
        return Draft(read_text(path), str(path))
    if history.policy_text:
        return Draft(history.policy_text, history.policy_origin)
    return Draft(policy_text(_to_begin_with(history)), "a policy to begin with")


def _to_begin_with(history: History) -> Policy:
    total = history.total
    nodes = max(1, int(np.ceil(np.nanmax(total) / GPUS_PER_NODE)))
    most = nodes * GPUS_PER_NODE
    limits = PoolLimits(min_gpus=0, max_gpus=most)
    pool = Pool("gpus", (("nvidia.com/gpu.present", "true"),), limits, gpus_per_node=GPUS_PER_NODE)
    medians = np.floor(np.nan_to_num(np.nanmedian(history.team_values, axis=0)))
    medians = np.floor(medians * min(1.0, most / max(1.0, medians.sum())))
    teams, taken = [], set[str]()
    for name, floor in zip(history.teams, medians.tolist(), strict=True):
        written = _name(name, taken)
        taken.add(written)
        bounds = Bounds(floor=Amount(milli_gpus=int(floor) * MILLI))
        teams.append(Team(written, (name,), bounds=bounds))
    return Policy("to-begin-with", Mode.OBSERVE, history.zone, (pool,), tuple(teams))


def _name(team: str, taken: set[str]) -> str:
    """A team's name as a policy can write it: lower-case letters, digits, dots and dashes; each once."""
    plain = re.sub(r"[^a-z0-9.-]+", "-", team.lower()).strip("-.")[: LONGEST_NAME - 4] or "team"
    number = 1
    written = plain
    while written in taken:
        number += 1
        written = f"{plain}-{number}"
    return written
