"""A fitted model as an ONNX file, for programs that do not run Python.

The graph of a model of numbers takes them as they come (`X`, float64 `[n, d]`, NaN where missing).
That of a model of a table or a frame has the encoder inside and takes the raw columns by their
names, each `[n, 1]`: numbers as float64, NaN where missing; categories, yes and no as text without
blanks around it, empty where missing; dates as days since 1970 and times of day as hours, float64,
since ONNX cannot read them. Both return `probabilities [n, 2]`; imputation, standardisation, the
average over members and recalibration are part of it. After writing, the file is run on made-up
rows and compared with `predict_proba`: a file that disagrees is not kept. Needs the extra:
`pip install 'dcem[onnx]'`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.utils.validation import check_is_fitted

from dcem import __version__
from dcem.extras import extra_needed
from dcem.files import whole_file
from dcem.saving.onnx_graph import DOUBLE, INPUT, Graph, enters_as_text
from dcem.table.encoder import Encoder
from dcem.table.messages import InputError

if TYPE_CHECKING:
    from dcem.methods.base import SelectiveClassifier

OPSET, ML_OPSET = 17, 3
OUTPUT = "probabilities"
IR_VERSION = 9  # what runtimes of the last years read
TOLERANCE = 1e-5
PROBES = 256


def export_onnx(
    estimator: SelectiveClassifier, path: str | Path, encoder: Encoder | None = None
) -> None:
    """Write `estimator` to the file `path`; see the module for what is in it.

    `encoder` is that of the table it was fitted to; one fitted to a frame has its own.
    """
    check_is_fitted(estimator)
    with extra_needed("export_onnx"):
        import onnx
        import onnxruntime as runtime
    if estimator.needs_group:
        raise InputError(
            f"{type(estimator).__name__} needs the group of each row to predict, which an exported "
            "file cannot take. Export a method that predicts from the features alone (dcem)."
        )
    if hasattr(estimator, "known_"):
        raise InputError(
            "A model that was adjusted to a known prevalence cannot be exported. Fit one without."
        )
    encoder = getattr(estimator, "encoder_", encoder)
    if encoder is not None and OUTPUT in encoder.columns:
        raise InputError(f"Rename the column {OUTPUT!r}: the file's output has the same name.")
    path = Path(path)
    features = _probes(estimator)
    with whole_file(path) as temporary:
        if hasattr(estimator, "fleet_"):
            from dcem.saving.onnx_networks import write_networks

            graph = Graph(features.shape[1], encoder)
            write_networks(estimator, features, temporary, OPSET, graph.features)
            model = onnx.load(str(temporary))
            if encoder is not None:
                graph.constants += model.graph.initializer
                model = _model(graph, [*graph.nodes, *model.graph.node], estimator.name)
        else:
            model = _learners_model(estimator, Graph(features.shape[1], encoder))
        onnx.helper.set_model_props(model, _properties(estimator, encoder))
        onnx.checker.check_model(model)
        onnx.save(model, str(temporary))
        session = runtime.InferenceSession(str(temporary), providers=["CPUExecutionProvider"])
        given: dict[str, np.ndarray] = {INPUT: features}
        rows: Any = features
        if encoder is not None:
            given, rows = _raw_probes(encoder, features)
            if not hasattr(estimator, "encoder_"):
                rows = encoder.transform(rows)
        exported = session.run([OUTPUT], given)[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the rows were made to be odd, and have no names
            ours = estimator.predict_proba(rows)
        off = float(np.abs(exported - ours).max())
        if not off <= TOLERANCE:
            raise RuntimeError(
                f"the exported file differs from predict_proba by {off:.1e} (at most {TOLERANCE} "
                f"is allowed): {type(estimator).__name__} cannot be exported"
            )


def _probes(estimator: SelectiveClassifier) -> np.ndarray:
    """Made-up rows around the training mean, some values missing where the model allows it."""
    rng = np.random.default_rng(0)
    fitted = estimator.preprocessor_
    scale = np.where(np.isfinite(fitted.scale), fitted.scale, 1.0)  # infinite: it is not used
    rows = fitted.mean + 2 * scale * rng.normal(size=(PROBES, len(fitted.mean)))
    if not fitted.identity:
        rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def _raw_probes(
    encoder: Encoder, features: np.ndarray
) -> tuple[dict[str, np.ndarray], pd.DataFrame]:
    """Made-up raw columns, for the graph and as a table: levels, unknown ones, missing values."""
    rng, given, columns, at = np.random.default_rng(1), {}, {}, 0
    for one in encoder.encodings:
        if enters_as_text(one):
            levels = ["yes", "No", "", "?"] if one.kind == "boolean" else [*one.levels, "", "(?)"]
            cells = rng.choice(
                np.array([*levels, *encoder.missing_in(one.name)], object), len(features)
            )
            columns[one.name] = pa.array(cells, pa.string())
        else:
            cells = features[:, at]
            columns[one.name] = pa.array(cells)
            if one.kind == "date":
                seconds = np.floor(cells * 86_400)
                stamps = pa.array(seconds, from_pandas=True).cast(pa.int64())
                columns[one.name] = stamps.cast(pa.timestamp("s"))
                cells = seconds / 86_400
            elif one.kind == "time":
                seconds = np.floor(cells * 3_600) % 86_400
                clock = pa.array(seconds, from_pandas=True).cast(pa.int32())
                columns[one.name] = clock.cast(pa.time32("s"))
                cells = seconds / 3_600
        given[one.name] = cells[:, None]
        at += len(one.features)
    return given, pa.table(columns).to_pandas()


def _properties(estimator: SelectiveClassifier, encoder: Encoder | None) -> dict[str, str]:
    names = getattr(estimator, "feature_names_in_", None) if encoder is None else encoder.columns
    kinds = {} if encoder is None else {one.name: one.kind for one in encoder.encodings}
    return {
        "dcem_version": __version__,
        "method": estimator.name,
        "classes": json.dumps(estimator.classes_.tolist()),
        "features": json.dumps(None if names is None else list(names)),
        "kinds": json.dumps(kinds),
    }


def _learners_model(estimator: Any, graph: Graph) -> Any:
    """The mean of an estimator's learners, or its ensemble of them, as an ONNX model."""
    from onnx import helper

    if hasattr(estimator, "coefficients_"):
        positive = graph.probits(estimator.preprocessor_, np.atleast_2d(estimator.coefficients_))
    elif not hasattr(estimator, "models_"):
        raise InputError(f"{estimator.name} cannot be exported: save it as a folder instead.")
    elif estimator.members_alike:
        positive = graph.mean([graph.probability(model) for model in estimator.models_])
    else:
        positive = graph.ensemble(estimator)
    negative = graph.node("Sub", graph.constant(1.0), positive)
    last = helper.make_node("Concat", [negative, positive], [OUTPUT], axis=1)
    return _model(graph, [*graph.nodes, last], estimator.name)


def _model(graph: Graph, nodes: Sequence[Any], name: str) -> Any:
    from onnx import helper

    answer = helper.make_tensor_value_info(OUTPUT, DOUBLE, ["rows", 2])
    made = helper.make_graph(nodes, name, graph.inputs, [answer], graph.constants)
    sets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    return helper.make_model(made, opset_imports=sets, ir_version=IR_VERSION)
