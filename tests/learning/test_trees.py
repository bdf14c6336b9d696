"""Trees as numbers: the same predictions as scikit-learn's, the same bytes, and nothing read that is not a tree."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from controller.learning.trees import TreeFile, Trees, code_fingerprint, data_fingerprint, read

NAMES = ("a", "b", "c")


def rows(count: int = 700, seed: int = 0) -> np.ndarray:
    """Inputs of which some are NaN, infinite or exactly on a threshold."""
    rng = np.random.default_rng(seed)
    out = rng.normal(size=(count, 3)).round(1)
    out[rng.random(out.shape) < 0.1] = np.nan
    out[0], out[1] = np.inf, -np.inf
    return out


def a_model(loss: str = "squared_error", **settings: object) -> HistGradientBoostingRegressor:
    inputs = rows()
    wanted = np.nan_to_num(inputs[:, 0], posinf=9, neginf=-9) ** 2 - 3 * np.isnan(inputs[:, 1]) + 0.1 * np.arange(700)
    made = HistGradientBoostingRegressor(loss=loss, max_iter=30, random_state=1, early_stopping=False, **settings)
    with threadpool_limits(limits=1, user_api="openmp"):
        return made.fit(inputs, wanted)


@pytest.mark.parametrize(
    ("loss", "settings"),
    [
        ("squared_error", {}),
        ("absolute_error", {"max_depth": 2}),
        ("quantile", {"quantile": 0.7}),
        ("squared_error", {"monotonic_cst": [1, 0, -1]}),
        ("squared_error", {"min_samples_leaf": 600}),
    ],
    ids=["squares", "absolute", "quantile", "monotonic", "trees of one leaf"],
)
def test_predictions_are_scikit_learns_bit_for_bit(loss: str, settings: dict[str, object]) -> None:
    model = a_model(loss, **settings)
    ours = read(TreeFile(Trees.of(model, NAMES), "c", "d").body()).trees
    for asked in (rows(), rows(2000, seed=5)):
        assert np.array_equal(ours.predict(asked), model.predict(asked))


def by_hand() -> Trees:
    """10, and 1 more where a ≤ 0.5 or unknown, else 2 or (b > 7) 4 more."""
    return Trees(
        NAMES,
        10.0,
        np.array([5]),
        np.array([0, -1, 1, -1, -1], dtype=np.int32),
        np.array([0.5, 0, 7.0, 0, 0]),
        np.array([1, 0, 3, 0, 0], dtype=np.int32),
        np.array([2, 0, 4, 0, 0], dtype=np.int32),
        np.array([1, 0, 0, 0, 0], dtype=np.uint8),
        np.array([0.0, 1.0, 0.0, 2.0, 4.0]),
    )


def test_a_tree_by_hand() -> None:
    asked = np.array([[0.5, 9, 0], [np.nan, 9, 0], [0.6, 7, 0], [0.6, 7.1, 0], [0.6, np.nan, 0]])
    assert by_hand().predict(asked).tolist() == [11.0, 11.0, 12.0, 14.0, 14.0]


def test_the_same_model_is_the_same_bytes_and_comes_back_whole() -> None:
    one, two = (TreeFile(Trees.of(a_model(), NAMES), "code", "data").body() for _ in range(2))
    assert one == two
    back = read(one)
    assert (back.code, back.data, back.trees.inputs) == ("code", "data", NAMES)
    assert back.body() == one


@pytest.mark.parametrize(
    ("column", "values", "problem"),
    [
        ("left", [0, 0, 3, 0, 0], "behind its parent"),
        ("right", [2, 0, 2, 0, 0], "behind its parent"),
        ("right", [2, 0, 5, 0, 0], "behind its parent"),
        ("split", [3, -1, 1, -1, -1], "one of 3 inputs"),
        ("split", [-2, -1, 1, -1, -1], "one of 3 inputs"),
        ("value", [0, np.nan, 0, 0, 0], "are numbers"),
        ("value", [0, np.inf, 0, 0, 0], "are numbers"),
        ("threshold", [np.nan, 0, 0, 0, 0], "are numbers"),
        ("value", [0.0, 1.0], "one entry a node"),
    ],
)
def test_what_is_no_tree_is_refused(column: str, values: list[float], problem: str) -> None:
    changed = np.array(values, dtype=getattr(by_hand(), column).dtype)
    with pytest.raises(ValueError, match=problem):
        replace(by_hand(), **{column: changed})


def test_a_file_with_a_circle_is_refused_when_read() -> None:
    body = TreeFile(by_hand(), "c", "d").body()
    line, rest = body.split(b"\n", 1)
    left_at = 5 * 4 + 5 * 8  # behind split and threshold
    circle = rest[:left_at] + bytes(4) + rest[left_at + 4 :]
    with pytest.raises(ValueError, match="behind its parent"):
        read(line + b"\n" + circle)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"schema": "tidegate-trees/2"}, "schema"),
        ({"inputs": "abc"}, "is a list"),
        ({"inputs": [1, 2, 3]}, "words"),
        ({"sizes": [5.0]}, "sizes"),
        ({"sizes": [10**9]}, "sizes"),
        ({"sizes": [-5]}, "sizes"),
        ({"sizes": [4]}, "length"),
        ({"first": None}, "first"),
        ({"data": None}, "words"),
    ],
)
def test_a_head_that_promises_something_else_is_refused(change: dict[str, object], problem: str) -> None:
    line, rest = TreeFile(by_hand(), "c", "d").body().split(b"\n", 1)
    with pytest.raises(ValueError, match=problem):
        read(json.dumps(json.loads(line) | change).encode() + b"\n" + rest)


@pytest.mark.parametrize("body", [b"", b"\x80\x04K\x01.", b"[1]\n", b"{}\n"])
def test_other_files_are_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="model file"):
        read(body)


def test_a_cut_file_is_refused() -> None:
    with pytest.raises(ValueError, match="cut"):
        read(TreeFile(by_hand(), "c", "d").body()[:-1])


def test_models_that_need_more_than_trees_are_refused() -> None:
    counts = HistGradientBoostingRegressor(loss="poisson", max_iter=2).fit(np.ones((50, 3)), np.arange(50.0))
    kinds = HistGradientBoostingRegressor(categorical_features=[0], max_iter=2)
    kinds.fit(np.tile([[0.0, 1, 2], [1, 1, 2]], (50, 1)), np.arange(100.0))
    for model in (counts, kinds):
        with pytest.raises(ValueError, match="only regressions"):
            Trees.of(model, NAMES)
    with pytest.raises(ValueError, match="has 3 inputs, not 2"):
        Trees.of(a_model(), ("a", "b"))


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="3 inputs"):
        by_hand().predict(np.zeros((2, 4)))


def test_fingerprints_tell_data_and_code_apart() -> None:
    one = np.array([[1.0, 2.0]])
    assert data_fingerprint(one) == data_fingerprint(one.copy(order="F"))
    assert len({data_fingerprint(one), data_fingerprint(one.T), data_fingerprint(one + 1e-9)}) == 3
    assert code_fingerprint(__file__) != code_fingerprint(code_fingerprint.__code__.co_filename)
