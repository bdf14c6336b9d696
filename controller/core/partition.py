"""Stage 8: layouts for GPUs that serve slices, chosen from waiting work and applied to idle GPUs only.

Profile sizes and placements are those of NVIDIA's MIG user guide: a GPU has seven compute slices and eight memory
slices (A30: four and four); a profile occupies a run of memory slices that begins at one of its allowed places.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from controller.core.actions import Repartition
from controller.core.nodes import SERVING, Supply
from controller.core.policy import Sharing
from controller.core.quantities import MILLI, ceil_div
from controller.core.reasons import Reason, ReasonCode, reason
from controller.core.snapshot import GpuDevice, Node, Workload


@dataclass(frozen=True, slots=True)
class Profile:
    """A MIG profile: memory slices it takes, where it may begin, and its compute slices."""

    name: str
    slices: int
    starts: tuple[int, ...]
    compute: int


def _eight(memory: tuple[int, int, int, int, int, int]) -> tuple[Profile, ...]:
    """The profiles of an eight-memory-slice GPU; ``memory`` in GB for 1g, 1g double, 2g, 3g, 4g, 7g."""
    one, double, two, three, four, seven = memory
    return (
        Profile(f"1g.{one}gb", 1, (0, 1, 2, 3, 4, 5, 6), 1),
        Profile(f"1g.{double}gb", 2, (0, 2, 4, 6), 1),
        Profile(f"2g.{two}gb", 2, (0, 2, 4), 2),
        Profile(f"3g.{three}gb", 4, (0, 4), 3),
        Profile(f"4g.{four}gb", 4, (0,), 4),
        Profile(f"7g.{seven}gb", 8, (0,), 7),
    )


PROFILES: dict[str, tuple[Profile, ...]] = {
    "A100-40GB": _eight((5, 10, 10, 20, 20, 40)),
    "A100-80GB": _eight((10, 20, 20, 40, 40, 80)),
    "H100-80GB": _eight((10, 20, 20, 40, 40, 80)),
    "H200-141GB": _eight((18, 35, 35, 71, 71, 141)),
    "A30-24GB": (
        Profile("1g.6gb", 1, (0, 1, 2, 3), 1),
        Profile("2g.12gb", 2, (0, 2), 2),
        Profile("4g.24gb", 4, (0,), 4),
    ),
}
"""By GPU model: NVIDIA Multi-Instance GPU user guide, supported profiles and placements."""


def family(model: str) -> str:
    """The key of ``PROFILES`` for a model as nodes are labelled (``NVIDIA-A100-SXM4-80GB``); "" when it has none."""
    parts = model.upper().split("-")
    memory = next((part for part in parts if part.endswith("GB")), "")
    known = [key for key in PROFILES if key.split("-")[0] in parts]
    # Labels of H100, H200 and A30 do not always name the memory; those of A100 do, and there it matters.
    exact = [key for key in known if not memory or key.endswith(f"-{memory}")]
    return exact[0] if len(exact) == 1 else ""


@lru_cache(maxsize=1024)
def profile(model: str, name: str) -> Profile | None:
    """A model's profile by name."""
    return next((p for p in PROFILES.get(family(model), ()) if p.name == name), None)


@lru_cache(maxsize=4096)
def fits(model: str, names: tuple[str, ...]) -> bool:
    """Whether a multiset of profiles (sorted names) can be placed on one GPU together."""
    known = [profile(model, name) for name in names]
    wanted = [p for p in known if p is not None]
    compute = 4 if family(model).startswith("A30") else 7
    if len(wanted) != len(names) or sum(p.compute for p in wanted) > compute:
        return False
    return _placed(sorted(wanted, key=lambda p: -p.slices), 0)


def _placed(wanted: Sequence[Profile], taken: int) -> bool:
    """Try each allowed start of the first profile; ``taken`` is a bit mask of memory slices."""
    if not wanted:
        return True
    first, rest = wanted[0], wanted[1:]
    return any(
        not taken & (mask := ((1 << first.slices) - 1) << start) and _placed(rest, taken | mask)
        for start in first.starts
    )


def plan(
    supply: Supply, sharing: Sharing, waiting: Iterable[Workload]
) -> tuple[tuple[Repartition, ...], tuple[Reason, ...]]:
    """Layouts for waiting slices: first on GPUs that already have a free instance, then on as few idle GPUs as do."""
    slices = sorted(w.mig_profile for w in waiting for _ in range(w.pods) if w.mig_profile)
    shared = sum(w.pods for w in waiting if w.shared_gpu and not w.mig_profile)
    devices = [(node, device) for node, at in supply.nodes if at in SERVING for device in node.devices]
    moves: list[Repartition] = []
    notes: list[Reason] = []
    if sharing.mig and slices:
        _cut(supply.pool, devices, slices, moves, notes)
    if sharing.max_replicas > 1 and shared:
        _slice_time(supply.pool, devices, sharing.max_replicas, shared, moves)
    return tuple(moves), tuple(notes)


def _cut(
    pool: str,
    devices: Sequence[tuple[Node, GpuDevice]],
    wanted: list[str],
    moves: list[Repartition],
    notes: list[Reason],
) -> None:
    left = list(wanted)
    for node, device in devices:
        for name in _free_instances(node.model, device):
            if name in left:
                left.remove(name)
    whole = [(n, d) for n, d in devices if not d.profiles and not d.used_milli_gpus and d.replicas == 1]
    for node, device in whole:
        if not left:
            return
        layout = _fill(node.model, left)
        if layout:
            why = reason(
                ReasonCode.PARTITION_FOR_SLICES, pool=pool, subject=node.name, gpu=device.index, slices=len(layout)
            )
            moves.append(Repartition(pool, node.name, device.index, layout, 1, why))
    if left:
        busy = sum(1 for _, d in devices if d.used_milli_gpus)
        notes.append(reason(ReasonCode.PARTITION_IN_USE, pool=pool, waiting_slices=len(left), gpus_in_use=busy))


def _free_instances(model: str, device: GpuDevice) -> tuple[str, ...]:
    """Instances that nobody holds. Of a GPU in use that is known only where all its instances are alike."""
    first = profile(model, device.profiles[0]) if device.profiles else None
    if not device.used_milli_gpus or first is None:
        return device.profiles
    if set(device.profiles) != {first.name}:
        return ()
    whole = max(p.slices for p in PROFILES[family(model)])
    return device.profiles[ceil_div(device.used_milli_gpus * whole, first.slices * MILLI) :]


def _fill(model: str, left: list[str]) -> tuple[str, ...]:
    """Take as many of the waiting slices as one GPU holds, the largest first; removes them from ``left``."""
    layout: list[str] = []
    order = sorted(set(left), key=lambda name: -(p.slices * 10 + p.compute if (p := profile(model, name)) else 0))
    for name in order:
        while name in left and fits(model, tuple(sorted([*layout, name]))):
            layout.append(name)
            left.remove(name)
    return tuple(sorted(layout))


def _slice_time(
    pool: str, devices: Sequence[tuple[Node, GpuDevice]], replicas: int, shared: int, moves: list[Repartition]
) -> None:
    changed = {(move.node, move.gpu_index) for move in moves}
    idle = [(n, d) for n, d in devices if not d.used_milli_gpus and not d.profiles and (n.name, d.index) not in changed]
    shared -= sum(d.replicas for _, d in idle if d.replicas > 1)
    for node, device in [(n, d) for n, d in idle if d.replicas == 1][: max(0, ceil_div(shared, replicas))]:
        why = reason(ReasonCode.PARTITION_FOR_SLICES, pool=pool, subject=node.name, gpu=device.index, slices=replicas)
        moves.append(Repartition(pool, node.name, device.index, (), replicas, why))
