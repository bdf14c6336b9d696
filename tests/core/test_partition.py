"""MIG layouts against NVIDIA's MIG user guide: what fits together on one GPU and what does not."""

from __future__ import annotations

from itertools import product

import pytest

from controller.core.partition import PROFILES, family, fits, profile


@pytest.mark.parametrize(
    ("model", "names", "expected"),
    [
        # From the guide's table of A100-40GB combinations.
        ("A100-40GB", ["7g.40gb"], True),
        ("A100-40GB", ["4g.20gb", "3g.20gb"], True),
        ("A100-40GB", ["4g.20gb", "2g.10gb", "1g.5gb"], True),
        ("A100-40GB", ["4g.20gb", "1g.5gb", "1g.5gb", "1g.5gb"], True),
        ("A100-40GB", ["3g.20gb", "3g.20gb"], True),
        ("A100-40GB", ["3g.20gb", "2g.10gb", "1g.5gb"], True),
        ("A100-40GB", ["2g.10gb", "2g.10gb", "3g.20gb"], True),
        ("A100-40GB", ["2g.10gb", "2g.10gb", "2g.10gb", "1g.5gb"], True),
        ("A100-40GB", ["1g.5gb"] * 7, True),
        # And what it does not list.
        ("A100-40GB", ["1g.5gb"] * 8, False),
        ("A100-40GB", ["4g.20gb", "4g.20gb"], False),
        ("A100-40GB", ["3g.20gb", "3g.20gb", "1g.5gb"], False),
        ("A100-40GB", ["7g.40gb", "1g.5gb"], False),
        ("A100-40GB", ["2g.10gb"] * 4, False),
        ("A100-40GB", ["4g.20gb", "3g.20gb", "1g.5gb"], False),
        ("A30-24GB", ["2g.12gb", "2g.12gb"], True),
        ("A30-24GB", ["1g.6gb"] * 4, True),
        ("A30-24GB", ["2g.12gb", "1g.6gb", "1g.6gb"], True),
        ("A30-24GB", ["4g.24gb", "1g.6gb"], False),
        ("A30-24GB", ["1g.6gb"] * 5, False),
        ("H100-80GB", ["1g.20gb"] * 4, True),
        ("H100-80GB", ["1g.20gb"] * 5, False),
        ("H200-141GB", ["3g.71gb", "3g.71gb"], True),
        ("H200-141GB", ["1g.10gb"], False),
    ],
)
def test_profiles_fit_together_as_the_guide_says(model: str, names: list[str], expected: bool) -> None:
    assert fits(model, tuple(sorted(names))) is expected


def _brute(model: str, names: list[str]) -> bool:
    """Try every start of every profile at once."""
    found = [p for p in (profile(model, name) for name in names) if p]
    for starts in product(*(p.starts for p in found)):
        taken = [s for p, start in zip(found, starts, strict=True) for s in range(start, start + p.slices)]
        if len(set(taken)) == len(taken):
            return sum(p.compute for p in found) <= (4 if model.startswith("A30") else 7)
    return False


@pytest.mark.parametrize("model", sorted(PROFILES))
def test_the_search_agrees_with_trying_everything(model: str) -> None:
    names = [p.name for p in PROFILES[model]]
    for size in (1, 2, 3):
        for combination in product(names, repeat=size):
            assert fits(model, tuple(sorted(combination))) == _brute(model, list(combination)), combination


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("NVIDIA-A100-SXM4-40GB", "A100-40GB"),
        ("NVIDIA-A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA-A100-PCIE-40GB", "A100-40GB"),
        ("NVIDIA-H100-80GB-HBM3", "H100-80GB"),
        ("NVIDIA-H100-PCIe", "H100-80GB"),
        ("NVIDIA-H200", "H200-141GB"),
        ("NVIDIA-A30", "A30-24GB"),
        ("NVIDIA-A100", ""),
        ("Tesla-V100-SXM2-16GB", ""),
        ("", ""),
    ],
)
def test_models_are_known_by_the_labels_of_nodes(label: str, expected: str) -> None:
    assert family(label) == expected
