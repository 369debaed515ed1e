"""A fitted model as an ONNX file, for programs that do not run Python.

The graph takes the features as they come (`X`, float64 `[n, d]`, NaN where missing) and returns
`probabilities [n, 2]`; imputation, standardisation and the average over members are part of it.
After writing, the file is run on made-up rows and compared with `predict_proba`: a file that
disagrees is not kept. Needs the extra: `pip install 'dcem[onnx]'`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dcem import __version__
from dcem.extras import extra_needed
from dcem.files import whole_file
from dcem.learners.learner import CLIP
from dcem.learners.preprocess import Preprocessor
from dcem.learners.trees import Trees
from dcem.table.checks import InputError

if TYPE_CHECKING:
    from dcem.methods.base import SelectiveClassifier

OPSET, ML_OPSET = 17, 3
IR_VERSION = 9  # what runtimes of the last years read
TOLERANCE = 1e-5
PROBES = 256


def export_onnx(estimator: SelectiveClassifier, path: str | Path) -> None:
    """Write `estimator` to the file `path`; see the module for what is in it."""
    check_is_fitted(estimator)
    with extra_needed("export_onnx"):
        import onnx
        import onnxruntime as runtime
    if estimator.needs_group:
        raise InputError(
            f"{type(estimator).__name__} predicts with the group of each row, which an exported "
            "file does not take. Export a method that predicts from the features alone (dcem)."
        )
    if hasattr(estimator, "encoder_"):
        raise InputError(
            "This model was fitted to a frame with categories, text or dates, and an exported file "
            "takes numbers. Encode the frame first, and fit to the numbers."
        )
    path = Path(path)
    example = _probes(estimator)
    with whole_file(path) as temporary:
        if hasattr(estimator, "fleet_"):
            from dcem.saving.onnx_networks import write_networks

            write_networks(estimator, example, temporary, OPSET)
        else:
            onnx.save(_learners_model(estimator), str(temporary))
        model = onnx.load(str(temporary))
        onnx.helper.set_model_props(model, _properties(estimator))
        onnx.checker.check_model(model)
        onnx.save(model, str(temporary))
        session = runtime.InferenceSession(str(temporary), providers=["CPUExecutionProvider"])
        exported = session.run(["probabilities"], {"X": example})[0]
        off = float(np.abs(exported - estimator.predict_proba(_named(estimator, example))).max())
        if not off <= TOLERANCE:
            raise RuntimeError(
                f"the exported file differs from predict_proba by {off:.1e} (at most {TOLERANCE} "
                f"is allowed): {type(estimator).__name__} cannot be exported"
            )


def _probes(estimator: SelectiveClassifier) -> np.ndarray:
    """Made-up rows around the training mean, some values missing where the model allows it."""
    rng = np.random.default_rng(0)
    fitted = estimator.preprocessor_
    rows = fitted.mean + 2 * fitted.scale * rng.normal(size=(PROBES, len(fitted.mean)))
    if not fitted.identity:
        rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def _named(estimator: SelectiveClassifier, rows: np.ndarray) -> Any:
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=names)


def _properties(estimator: SelectiveClassifier) -> dict[str, str]:
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "dcem_version": __version__,
        "method": estimator.name,
        "classes": json.dumps(estimator.classes_.tolist()),
        "features": json.dumps(None if names is None else list(names)),
    }


# -- linear models and trees, node by node -------------------------------------------------------


class _Graph:
    """Nodes and constants of a graph, each result with a name of its own."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation; the name of its result."""
        from onnx import helper

        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, values: Any) -> str:
        """Add an array; its name."""
        from onnx import numpy_helper

        name = f"c_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def prepared(self, fitted: Preprocessor) -> str:
        """The features `X` as a preprocessor has them."""
        missing = self.node("IsNaN", "X")
        filled = self.node("Where", missing, self.constant(fitted.median), "X")
        centred = self.node("Sub", filled, self.constant(fitted.mean))
        rows = self.node("Div", centred, self.constant(fitted.scale))
        if not len(fitted.indicators):
            return rows
        chosen = self.node("Gather", missing, self.constant(fitted.indicators), axis=1)
        return self.node("Concat", rows, self.node("Cast", chosen, to=11), axis=1)

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
        return self.node("Cast", total, to=11)

    def probability(self, learner: Any) -> str:
        """The probability `[n, 1]` that a learner gives."""
        name = getattr(learner, "name", type(learner).__name__)
        if name == "linear":
            rows = self.prepared(learner.preprocessor)
            z = self.node("MatMul", rows, self.constant(learner.coefficients[:, None]))
            z = self.node("Add", z, self.constant(np.array(learner.intercept)))
        elif name == "boost":
            z = self.trees(self._filled(learner), learner.trees, "float64")
        elif name == "forest":
            rows = self.node("Cast", self.prepared(learner.preprocessor), to=1)
            z = self.trees(rows, learner.trees, "float32")
        else:
            raise InputError(
                f"A model with the learner {name} cannot be exported; linear, boost, forest and "
                "network can."
            )
        if name == "forest" or learner.squared:
            return self.node(
                "Clip", z, self.constant(np.array(CLIP)), self.constant(np.array(1 - CLIP))
            )
        return self.node("Sigmoid", z)

    def _filled(self, learner: Any) -> str:
        """Medians where a column is missing that never was in training."""
        fitted = learner.preprocessor
        median = fitted.median.copy()
        median[fitted.indicators] = np.nan
        return self.node("Where", self.node("IsNaN", "X"), self.constant(median), "X")


def _learners_model(estimator: SelectiveClassifier) -> Any:
    """The mean of an estimator's learners, as an ONNX model."""
    from onnx import TensorProto, helper

    models = getattr(estimator, "models_", None)
    if models is None or not hasattr(estimator, "learner"):
        raise InputError(f"{estimator.name} cannot be exported: save it as a folder instead.")
    graph = _Graph()
    parts = [graph.probability(model) for model in models]
    every = graph.node("Concat", *parts, axis=1)
    positive = graph.node("ReduceMean", every, axes=[1], keepdims=1)
    negative = graph.node("Sub", graph.constant(np.array(1.0)), positive)
    graph.nodes.append(helper.make_node("Concat", [negative, positive], ["probabilities"], axis=1))
    n_features = len(estimator.preprocessor_.mean)
    made = helper.make_graph(
        graph.nodes,
        estimator.name,
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["rows", n_features])],
        [helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["rows", 2])],
        graph.constants,
    )
    sets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    return helper.make_model(made, opset_imports=sets, ir_version=IR_VERSION)


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
