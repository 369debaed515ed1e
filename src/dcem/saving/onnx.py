"""A fitted model as an ONNX file, for programs that do not run Python.

The graph takes the features as they come (`X`, float64 `[n, d]`, NaN where missing) and returns
`probabilities [n, 2]`; imputation, standardisation and the average over members are part of it.
After writing, the file is run on made-up rows and compared with `predict_proba`: a file that
disagrees is not kept. Needs the extra: `pip install 'dcem[onnx]'`.
"""

from __future__ import annotations

import importlib
import json
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from dcem import __version__
from dcem.engine import Fleet, FromModule
from dcem.engine.fleet import margin
from dcem.table.checks import InputError

if TYPE_CHECKING:
    from dcem.methods.network import NetworkClassifier

OPSET = 17
TOLERANCE = 1e-5
PROBES = 256


class _Graph(nn.Module):
    """From features to probabilities, in operations that ONNX has."""

    def __init__(self, estimator: NetworkClassifier):
        super().__init__()
        preprocessor = estimator.preprocessor_
        self.identity = preprocessor.identity
        fitted = estimator.fleet_
        self.fleet = Fleet(fitted.architecture, fitted.flat.to(getattr(torch, estimator.dtype)))
        self.own = nn.ModuleList()
        architecture = self.fleet.architecture
        if isinstance(architecture, FromModule):
            self.own.extend(architecture.module(one) for one in self.fleet.flat)
        self.median, self.mean, self.scale, self.indicators = (
            torch.from_numpy(np.array(getattr(preprocessor, name)))
            for name in ("median", "mean", "scale", "indicators")
        )

    def forward(self, X: Tensor) -> Tensor:
        """Probabilities `[n, 2]` of rows `[n, d]`."""
        rows = X
        if not self.identity:
            missing = torch.isnan(X)
            filled = torch.where(missing, self.median, X)
            rows = (filled - self.mean) / self.scale
            if len(self.indicators):
                rows = torch.cat([rows, missing[:, self.indicators].to(X.dtype)], dim=1)
        rows = rows.to(self.fleet.flat.dtype)
        positive = torch.sigmoid(margin(self._logits(rows))).to(torch.float64).mean(0)
        return torch.stack([1 - positive, positive], dim=1)

    def _logits(self, rows: Tensor) -> Tensor:
        """Logits `[M, n, k]`; of a user's own module network by network, as vmap has no trace."""
        if not self.own:
            return self.fleet.architecture.logits(self.fleet.flat, rows)
        logits = torch.stack([module(rows) for module in self.own])
        return logits.unsqueeze(-1) if logits.dim() == 2 else logits


def export_onnx(estimator: NetworkClassifier, path: str | Path) -> None:
    """Write `estimator` to the file `path`; see the module for what is in it."""
    check_is_fitted(estimator)
    onnx, runtime = _extra("onnx"), _extra("onnxruntime")
    if estimator.needs_group:
        raise InputError(
            f"{type(estimator).__name__} predicts with the group of each row, which an exported "
            "file does not take. Export a method that predicts from the features alone (dcem)."
        )
    path = Path(path)
    example = _probes(estimator)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with warnings.catch_warnings():  # the exporter's own notes on tracing and its successor
            warnings.simplefilter("ignore")
            torch.onnx.export(
                _Graph(estimator).eval(),
                (torch.from_numpy(example[:2]),),
                str(temporary),
                input_names=["X"],
                output_names=["probabilities"],
                dynamic_axes={"X": {0: "rows"}, "probabilities": {0: "rows"}},
                opset_version=OPSET,
                dynamo=False,
            )
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
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _probes(estimator: NetworkClassifier) -> np.ndarray:
    """Made-up rows around the training mean, some values missing where the model allows it."""
    rng = np.random.default_rng(0)
    fitted = estimator.preprocessor_
    rows = fitted.mean + 2 * fitted.scale * rng.normal(size=(PROBES, len(fitted.mean)))
    if not fitted.identity:
        rows[rng.random(rows.shape) < 0.1] = np.nan
    return rows


def _named(estimator: NetworkClassifier, rows: np.ndarray) -> Any:
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=names)


def _properties(estimator: NetworkClassifier) -> dict[str, str]:
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "dcem_version": __version__,
        "method": estimator.name,
        "classes": json.dumps(estimator.classes_.tolist()),
        "features": json.dumps(None if names is None else list(names)),
    }


def _extra(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(
            f"export_onnx needs {name}, which is not installed: pip install 'dcem[onnx]'"
        ) from None
