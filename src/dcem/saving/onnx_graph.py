"""Encoder, linear models, trees, small networks and their ensemble as ONNX nodes, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dcem.learners.learner import COUNT_CLIP
from dcem.learners.preprocess import REACH, SPREAD, Preprocessor, Scaling
from dcem.learners.trees import Trees
from dcem.methods.base import SMALLEST
from dcem.table import values
from dcem.table.encoder import Encoder, Encoding
from dcem.table.messages import InputError

FLOAT, INT64, STRING, DOUBLE = 1, 7, 8, 11  # the types of tensors, as ONNX numbers them
INPUT = "X"  # the numbers that a model reads; the input, where nothing is encoded


class Graph:
    """Nodes and constants of a graph, each result with a name of its own.

    With an `encoder`, the inputs are the raw columns, each `[n, 1]`; without, `n_features` numbers
    per row, `[n, d]`.
    """

    def __init__(self, n_features: int, encoder: Encoder | None = None) -> None:
        from onnx import helper

        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        if encoder is None:
            self.inputs = [helper.make_tensor_value_info(INPUT, DOUBLE, ["rows", n_features])]
            self.features = INPUT
        else:
            self.inputs = [
                helper.make_tensor_value_info(
                    one.name, STRING if enters_as_text(one) else DOUBLE, ["rows", 1]
                )
                for one in encoder.encodings
            ]
            columns = [self.encoded(one, encoder.missing_in(one.name)) for one in encoder.encodings]
            self.features = self.node("Concat", *columns, axis=1)

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation; the name of its result."""
        from onnx import helper

        name = f"dcem/{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, array: Any) -> str:
        """Add an array; its name."""
        from onnx import numpy_helper

        name = f"dcem/c_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    # -- raw columns to features -------------------------------------------------------------

    def encoded(self, one: Encoding, missing: Sequence[str]) -> str:
        """The features `[n, k]` of a raw column, as `Encoding.encode` has them."""
        if not enters_as_text(one):
            return self._number(one.name, missing if one.kind == "number" else [])
        if one.kind == "boolean":
            marks = _cased(dict.fromkeys(values.YES, 1) | dict.fromkeys(values.NO, 0))
            marks |= {"1.0": 1, "0.0": 0} | dict.fromkeys(missing, 2)
            return self._looked_up(one.name, marks, 2, np.array([[0.0], [1.0], [np.nan]]))
        n_marks = len(one.levels) + one.other + one.missing
        absent = n_marks - 1 if one.missing else n_marks
        marks = {level: mark for mark, level in enumerate(one.levels)}
        if one.from_numbers:
            names = zip(values.number_names(one.levels), range(len(one.levels)), strict=True)
            marks = dict(names) | marks
            marks |= {f"{level}.0": mark for level, mark in marks.items()}
            marks = _cased(dict.fromkeys(values.NOT_A_NUMBER, absent)) | {"NaN": absent} | marks
        marks |= dict.fromkeys(["", *missing, *(f"{code}.0" for code in missing)], absent)
        rest = len(one.levels) if one.other else n_marks
        table = np.vstack([np.eye(n_marks), np.zeros(n_marks)])
        if one.is_single:
            table = np.array([[0.0], [1.0], [np.nan]])
        return self._looked_up(one.name, marks, rest, table)

    def _number(self, name: str, missing: Sequence[str]) -> str:
        too_large = self.node(
            "Greater", self.node("Abs", name), self.constant(values.LARGEST_VALUE)
        )
        nan = self.constant(np.nan)
        column = self.node("Where", too_large, nan, name)
        codes = values.parsed(missing)
        for code in codes[~np.isnan(codes)]:
            column = self.node(
                "Where", self.node("Equal", column, self.constant(code)), nan, column
            )
        return column

    def _looked_up(self, name: str, marks: dict[str, int], rest: int, table: np.ndarray) -> str:
        """Rows of `table` by what a text says; `rest` is the row for a text that is not known."""
        mark = self.node(
            "LabelEncoder",
            name,
            domain="ai.onnx.ml",
            keys_strings=list(marks),
            values_int64s=list(marks.values()),
            default_int64=rest,
        )
        flat = self.node("Reshape", mark, self.constant(np.array([-1])))
        return self.node("Gather", self.constant(table), flat, axis=0)

    # -- features to probabilities -----------------------------------------------------------

    def prepared(self, fitted: Preprocessor) -> str:
        """The features as a preprocessor has them."""
        missing = self.node("IsNaN", self.features)
        filled = self.node("Where", missing, self.constant(fitted.median), self.features)
        centred = self.node("Sub", filled, self.constant(fitted.mean))
        rows = self.node("Div", centred, self.constant(fitted.scale))
        if not len(fitted.indicators):
            return rows
        chosen = self.node("Gather", missing, self.constant(fitted.indicators), axis=1)
        return self.node("Concat", rows, self.node("Cast", chosen, to=DOUBLE), axis=1)

    def scaled(self, scaling: Scaling) -> str:
        """The features as small networks have them, in the precision of `Scaling`."""
        centred = self.node(
            "Sub", self.prepared(scaling.preprocessor), self.constant(scaling.center)
        )
        rows = self.node("Div", centred, self.constant(scaling.scale))
        far = self.node("Div", rows, self.constant(REACH))
        bent = self.node("Add", self.node("Mul", far, far), self.constant(1.0))
        drawn = self.node("Div", self.node("Mul", rows, self.constant(SPREAD)),
                          self.node("Sqrt", bent))  # fmt: skip
        return self.node("Cast", self.node("Cast", drawn, to=FLOAT), to=DOUBLE)

    def trees(self, rows: str, trees: Trees, dtype: str) -> str:
        """The sum of trees `[n, 1]` over rows of that type ("float32" or "float64")."""
        from onnx import numpy_helper

        attributes: dict[str, Any] = {}
        for name, array in _nodes(trees, dtype).items():
            if array.dtype.kind != "f":
                attributes[name] = array.tolist()
            elif dtype == "float32":
                attributes[name] = array.astype(np.float32).tolist()
            else:
                attributes[f"{name}_as_tensor"] = numpy_helper.from_array(array)
        total = self.node(
            "TreeEnsembleRegressor",
            rows,
            domain="ai.onnx.ml",
            n_targets=1,
            aggregate_function="SUM",
            **attributes,
        )
        return self.node("Cast", total, to=DOUBLE)

    def raw(self, learner: Any) -> str:
        """What a learner computes `[n, 1]`: log-odds, or a probability where `is_counted`."""
        name = getattr(learner, "name", type(getattr(learner, "model", learner)).__name__)
        if name in ("linear", "smooth"):
            scaling = learner.scaling
            rows = self.prepared(learner.preprocessor) if scaling is None else self.scaled(scaling)
            if name == "smooth":
                rows = self.node("Concat", rows, self._bumps(rows, learner), axis=1)
            return self._layer(rows, learner.coefficients[:, None], np.array(learner.intercept))
        if name == "boost":
            return self.trees(self._filled(learner), learner.trees, "float64")
        if name == "forest":
            rows = self.node("Cast", self.prepared(learner.preprocessor), to=FLOAT)
            return self.trees(rows, learner.trees, "float32")
        if name == "perceptron":
            rows = self.scaled(learner.scaling)
            weights, biases = (
                [layer[0].astype(np.float64) for layer in layers]
                for layers in (learner.stack.weights, learner.stack.biases)
            )
            for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
                rows = self.node("Relu", self._layer(rows, weight, bias))
            return self._layer(rows, weights[-1], biases[-1])
        raise InputError(
            f"A model with the learner {name} cannot be exported; linear, boost, forest, "
            "smooth, perceptron and network can."
        )

    def probability(self, learner: Any) -> str:
        """The probability `[n, 1]` that a learner gives."""
        z = self.raw(learner)
        return self._clipped(z, COUNT_CLIP) if is_counted(learner) else self.node("Sigmoid", z)

    def log_odds(self, learner: Any) -> str:
        """The log-odds `[n, 1]` that a learner gives."""
        z = self.raw(learner)
        return self._logit(z, COUNT_CLIP) if is_counted(learner) else z

    def mean(self, columns: Sequence[str]) -> str:
        """The mean of columns `[n, 1]`."""
        every = self.node("Concat", *columns, axis=1)
        return self.node("ReduceMean", every, axes=[1], keepdims=1)

    def ensemble(self, estimator: Any) -> str:
        """The risk `[n, 1]` of a `SelectiveEnsembleClassifier`: see its `_members`, `_combined`."""
        line, folds = estimator.calibration_, len(estimator.models_) // len(estimator.parts)
        parts = []
        for start in range(0, len(estimator.models_), folds):
            z = self.mean([self.log_odds(one) for one in estimator.models_[start : start + folds]])
            z = self._layer(z, np.array([[line["slope"]]]), np.array(line["intercept"]))
            parts.append(self._logit(self.node("Sigmoid", z), SMALLEST))
        weights = np.array([[estimator.weights_[part]] for part in estimator.parts])
        z = self.node("MatMul", self.node("Concat", *parts, axis=1), self.constant(weights))
        return self.node("Sigmoid", z)

    def probits(self, fitted: Preprocessor, lines: np.ndarray) -> str:
        """The mean `[n, 1]` of probits with coefficients `[members, 1 + d]`, intercepts first."""
        scaled = lines / np.sqrt(2)
        z = self._layer(self.prepared(fitted), scaled[:, 1:].T, scaled[:, 0])
        single = self.node("Erf", self.node("Cast", z, to=FLOAT))  # runtimes have no other
        mean = self.node("ReduceMean", self.node("Cast", single, to=DOUBLE), axes=[1], keepdims=1)
        return self._layer(mean, np.array([[0.5]]), np.array(0.5))

    def _bumps(self, rows: str, learner: Any) -> str:
        """See `dcem.learners.smooth.bumps`."""
        centers = learner.centers
        scale = -1 / (centers.shape[1] * (SPREAD * learner.width) ** 2)
        own = self.node("Mul", rows, rows)
        squares = self.node(
            "Add",
            self.node("MatMul", own, self.constant(np.ones((centers.shape[1], 1)))),
            self._layer(rows, -2 * centers.T, (centers**2).sum(axis=1)),
        )
        return self.node("Exp", self.node("Mul", squares, self.constant(scale)))

    def _layer(self, rows: str, weight: np.ndarray, bias: np.ndarray) -> str:
        return self.node(
            "Add", self.node("MatMul", rows, self.constant(weight)), self.constant(bias)
        )

    def _clipped(self, p: str, margin: float) -> str:
        return self.node("Clip", p, self.constant(margin), self.constant(1 - margin))

    def _logit(self, p: str, margin: float) -> str:
        kept = self._clipped(p, margin)
        odds = self.node("Div", kept, self.node("Sub", self.constant(1.0), kept))
        return self.node("Log", odds)

    def _filled(self, learner: Any) -> str:
        """Medians where a column is missing that never was in training."""
        fitted = learner.preprocessor
        median = fitted.median.copy()
        median[fitted.indicators] = np.nan
        return self.node(
            "Where", self.node("IsNaN", self.features), self.constant(median), self.features
        )


def _cased(words: dict[str, int]) -> dict[str, int]:
    """Words as they are usually written: yes, Yes and YES."""
    return {f(w): m for w, m in words.items() for f in (str.lower, str.title, str.upper)}


def enters_as_text(one: Encoding) -> bool:
    """Whether a raw column goes into the graph as text; numbers and days go as numbers."""
    return one.kind in ("category", "boolean")


def is_counted(learner: Any) -> bool:
    """Whether a learner computes probabilities by counting or by squares, not log-odds."""
    return bool(learner.name == "forest" or learner.squared)


def _nodes(trees: Trees, dtype: str) -> dict[str, np.ndarray]:
    """Attributes of the operator: every split, then every leaf of a tree, is a node of it."""
    leaves = trees.leaves.astype(np.int64)
    tree_of_split = np.repeat(np.arange(len(leaves)), leaves - 1)
    tree_of_leaf = np.repeat(np.arange(len(leaves)), leaves)
    split = np.arange(len(tree_of_split)) - (np.cumsum(leaves - 1) - (leaves - 1))[tree_of_split]
    leaf = np.arange(len(tree_of_leaf)) - (np.cumsum(leaves) - leaves)[tree_of_leaf]
    leaf = leaf + (leaves - 1)[tree_of_leaf]  # leaves are numbered after the splits

    def child(at: np.ndarray) -> np.ndarray:
        return np.where(at >= 0, at, -at - 1 + (leaves - 1)[tree_of_split])

    threshold = trees.threshold
    if dtype == "float32":  # at most the threshold in single precision as well
        rounded = threshold.astype(np.float32)
        above = rounded > threshold
        threshold = np.where(above, np.nextafter(rounded, np.float32(-np.inf)), rounded)
    none = np.zeros(len(leaf), np.int64)
    left_if_missing = ((trees.decision & 10) == 10).astype(np.int64)
    nodes = {
        "nodes_treeids": np.concatenate([tree_of_split, tree_of_leaf]),
        "nodes_nodeids": np.concatenate([split, leaf]),
        "nodes_featureids": np.concatenate([trees.feature, none]),
        "nodes_values": np.concatenate([threshold, np.zeros(len(leaf))]),
        "nodes_modes": np.array([*["BRANCH_LEQ"] * len(split), *["LEAF"] * len(leaf)]),
        "nodes_truenodeids": np.concatenate([child(trees.left), none]),
        "nodes_falsenodeids": np.concatenate([child(trees.right), none]),
        "nodes_missing_value_tracks_true": np.concatenate([left_if_missing, none]),
    }
    order = np.lexsort((nodes["nodes_nodeids"], nodes["nodes_treeids"]))  # tree after tree
    return {name: array[order] for name, array in nodes.items()} | {
        "target_treeids": tree_of_leaf,
        "target_nodeids": leaf,
        "target_ids": none,
        "target_weights": trees.value,
    }
