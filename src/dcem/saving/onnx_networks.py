"""Networks as an ONNX graph, by torch's own exporter."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from dcem.engine import Fleet, FromModule
from dcem.engine.fleet import margin

if TYPE_CHECKING:
    from dcem.methods.network import NetworkClassifier


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


def write_networks(
    estimator: NetworkClassifier, example: np.ndarray, path: Path, opset: int, given: str
) -> None:
    """Write the networks of an estimator to `path`, as a graph with the input `given`.

    `example` holds rows to trace them with.
    """
    with warnings.catch_warnings():  # the exporter's own notes on tracing and its successor
        warnings.simplefilter("ignore")
        torch.onnx.export(
            _Graph(estimator).eval(),
            (torch.from_numpy(example[:2]),),
            str(path),
            input_names=[given],
            output_names=["probabilities"],
            dynamic_axes={given: {0: "rows"}, "probabilities": {0: "rows"}},
            opset_version=opset,
            dynamo=False,
        )
