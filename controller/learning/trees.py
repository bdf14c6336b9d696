"""Boosted trees as plain numbers: a model file that is read, checked and evaluated here, and cannot run code.

A file is one line of JSON (schema, names of the inputs, first value, sizes of the trees, fingerprints) and then six
arrays, little-endian, one after the other. Whoever reads one gets numbers within known bounds or a ``ValueError``;
children lie behind their parents, so that no file can make an evaluation run in circles. Predictions equal those of
scikit-learn's ``HistGradientBoostingRegressor`` bit for bit: the same comparisons, summed in the same order.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

from controller.learning.fleet import Array

SCHEMA = "tidegate-trees/1"
KIND = "trees"
"""How the store is told to read such a body."""
MOST_NODES = 1_000_000
COLUMNS = {"split": "<i4", "threshold": "<f8", "left": "<i4", "right": "<i4", "missing_left": "|u1", "value": "<f8"}
"""The arrays of a file in order, with their numpy types."""


@dataclass(frozen=True, slots=True)
class Trees:
    """A sum of regression trees. All arrays but ``sizes`` have one entry a node, tree after tree, each root first.

    ``split``: the input that a node compares, -1 in a leaf; ``left`` where it is at most ``threshold``, or where it is
    NaN and ``missing_left``. ``left`` and ``right``: places within the tree. ``value``: what a leaf adds.
    """

    inputs: tuple[str, ...]
    first: float
    sizes: NDArray[np.int64]
    split: NDArray[np.int32]
    threshold: Array
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    value: Array

    def __post_init__(self) -> None:
        """Raise ``ValueError`` unless the trees are trees and all they compare and add is a number."""
        _check(self)

    @classmethod
    def of(cls, model: HistGradientBoostingRegressor, inputs: tuple[str, ...]) -> Trees:
        """A fitted model. One output, identity link and no categories: else ``ValueError``."""
        if model.loss not in ("squared_error", "absolute_error", "quantile") or model.is_categorical_ is not None:
            raise ValueError("only regressions without a link and without categories can be written as trees")
        if model.n_features_in_ != len(inputs):
            raise ValueError(f"the model has {model.n_features_in_} inputs, not {len(inputs)}")
        nodes = [stage[0].nodes for stage in model._predictors]
        joined: NDArray[np.void] = np.concatenate(nodes)
        leaf = joined["is_leaf"].astype(bool)
        return cls(
            inputs,
            float(model._baseline_prediction[0, 0]),
            np.array([len(tree) for tree in nodes], dtype=np.int64),
            np.where(leaf, -1, joined["feature_idx"]).astype(np.int32),
            np.where(leaf, 0.0, joined["num_threshold"]),
            np.where(leaf, 0, joined["left"]).astype(np.int32),
            np.where(leaf, 0, joined["right"]).astype(np.int32),
            np.where(leaf, 0, joined["missing_go_to_left"]).astype(np.uint8),
            np.where(leaf, joined["value"], 0.0),
        )

    def predict(self, rows: Array) -> Array:
        """Predictions (rows,) for inputs (rows, inputs); NaN is allowed."""
        if rows.ndim != 2 or rows.shape[1] != len(self.inputs):
            raise ValueError(f"rows have {len(self.inputs)} inputs")
        out = np.full(len(rows), self.first)
        for added in self._leaves(rows).T:  # one tree after the other, as scikit-learn sums
            out += added
        return out

    def _leaves(self, rows: Array) -> Array:
        """The value of the leaf that each row reaches in each tree: (rows, trees)."""
        roots = np.cumsum(self.sizes) - self.sizes
        at = np.broadcast_to(roots, (len(rows), len(roots))).copy()
        every = np.arange(len(rows))[:, None]
        while True:
            split = self.split[at]
            inner = split >= 0
            if not inner.any():
                return np.asarray(self.value[at])
            seen = rows[every, np.maximum(split, 0)]
            goes_left = np.where(np.isnan(seen), self.missing_left[at] == 1, seen <= self.threshold[at])
            at = np.where(inner, roots + np.where(goes_left, self.left[at], self.right[at]), at)


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A model and where it comes from: fingerprints of the ``code`` that made it and the ``data`` it was fitted on."""

    trees: Trees
    code: str
    data: str

    def body(self) -> bytes:
        """The file; the same trees are the same bytes on every machine."""
        head = {
            "code": self.code,
            "data": self.data,
            "first": self.trees.first,
            "inputs": list(self.trees.inputs),
            "schema": SCHEMA,
            "sizes": self.trees.sizes.tolist(),
        }
        line = json.dumps(head, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        arrays = [getattr(self.trees, name).astype(kind).tobytes() for name, kind in COLUMNS.items()]
        return b"\n".join([line, b"".join(arrays)])


def read(body: bytes) -> TreeFile:
    """Read a file. Anything that is not one raises ``ValueError``, and says what is wrong."""
    line, _, rest = body.partition(b"\n")
    head = _head(line)
    sizes = np.array(head["sizes"], dtype=np.int64)
    nodes = int(sizes.sum())
    if len(rest) != nodes * sum(np.dtype(kind).itemsize for kind in COLUMNS.values()):
        raise ValueError(f"a file of {nodes} nodes has another length: it was cut or changed")
    columns, at = {}, 0
    for name, kind in COLUMNS.items():
        columns[name] = np.frombuffer(rest, dtype=kind, count=nodes, offset=at)
        at += columns[name].nbytes
    return TreeFile(Trees(tuple(head["inputs"]), float(head["first"]), sizes, **columns), head["code"], head["data"])


def _head(line: bytes) -> dict[str, Any]:
    try:
        head = json.loads(line)
    except ValueError as error:
        raise ValueError("a model file begins with a line of JSON") from error
    if not isinstance(head, dict) or head.get("schema") != SCHEMA:
        raise ValueError(f"not a model file of the schema {SCHEMA}")
    words = [head.get("code"), head.get("data"), *_list(head, "inputs")]
    counts = _list(head, "sizes")
    if not all(isinstance(word, str) for word in words):
        raise ValueError("inputs and fingerprints are words")
    if not all(type(count) is int and count > 0 for count in counts) or sum(counts) > MOST_NODES:
        raise ValueError(f"sizes are numbers of nodes, {MOST_NODES} together at most")
    if type(head.get("first")) not in (int, float):
        raise ValueError("first is a number")
    return head


def _list(head: dict[str, Any], key: str) -> list[Any]:
    if not isinstance(values := head.get(key), list):
        raise ValueError(f"{key} is a list")
    return values


def _check(trees: Trees) -> None:
    nodes = int(trees.sizes.sum())
    columns = [getattr(trees, name) for name in COLUMNS]
    if any(column.shape != (nodes,) for column in columns) or (trees.sizes < 1).any():
        raise ValueError("every array has one entry a node, and every tree a root")
    place = np.arange(nodes) - np.repeat(np.cumsum(trees.sizes) - trees.sizes, trees.sizes)
    size = np.repeat(trees.sizes, trees.sizes)
    inner = trees.split >= 0
    if (trees.split < -1).any() or (trees.split >= len(trees.inputs)).any():
        raise ValueError(f"a node compares one of {len(trees.inputs)} inputs")
    for child in (trees.left, trees.right):
        if ((child <= place) & inner).any() or ((child >= size) & inner).any():
            raise ValueError("a child lies behind its parent and in the same tree")
    if not np.isfinite(trees.value).all() or not np.isfinite(trees.first) or np.isnan(trees.threshold).any():
        raise ValueError("thresholds and values are numbers")


def code_fingerprint(*modules: str) -> str:
    """SHA-256 of the sources of some modules, first 16 hex digits. ``modules``: their ``__file__``."""
    digest = hashlib.sha256()
    for source in sorted(modules):
        digest.update(Path(source).read_bytes())
    return digest.hexdigest()[:16]


def data_fingerprint(*arrays: Array) -> str:
    """SHA-256 of shapes and little-endian bytes of some arrays, first 16 hex digits."""
    digest = hashlib.sha256()
    for array in arrays:
        plain = np.ascontiguousarray(array, dtype="<f8")
        digest.update(repr(plain.shape).encode())
        digest.update(plain.tobytes())
    return digest.hexdigest()[:16]
