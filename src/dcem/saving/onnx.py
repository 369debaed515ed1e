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
from dcem.table.checks import InputError

if TYPE_CHECKING:
    from dcem.methods.base import SelectiveClassifier

OPSET = 17
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
            from dcem.saving.onnx_learners import learners_model

            onnx.save(learners_model(estimator, OPSET), str(temporary))
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
