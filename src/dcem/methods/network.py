"""Methods made of neural networks: what they share, and their way into a fleet.

A network method implements one function, `_train`, for M problems at once; fitting one model is the
case M = 1. Torch is loaded when a network is fitted or asked, not before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dcem.extras import extra_needed
from dcem.learners.preprocess import Preprocessor
from dcem.methods.base import SelectiveClassifier
from dcem.methods.registry import WITHOUT_NETWORKS
from dcem.methods.training_table import TrainingTable
from dcem.table.labels import SelectiveLabels

if TYPE_CHECKING:
    from dcem.engine import Fleet
    from dcem.engine.fleet import Architecture
    from dcem.methods.fleets import FleetData, Trained

VARIANTS = ("corrected", "published")


class NetworkClassifier(SelectiveClassifier):
    """Base of the methods that are networks: multilayer perceptrons on selectively labelled rows.

    Parameters
    ----------
    hidden
        Widths of the hidden layers.
    network
        A function from the number of inputs to a `torch.nn.Module`, in place of `hidden`.
    preprocess
        "standard" (missing values to the median plus an indicator, then mean 0 and sd 1, fitted on
        training rows) or None for numbers as they are.
    input_scale
        Standard deviation that "standard" scales features to. Networks on smaller inputs learn
        smoother functions, which extrapolate more cautiously.
    n_members
        Networks in the ensemble; probabilities are averaged.
    batch_size
        Rows per step; "auto" is all of them up to 50,000 and 16,384 beyond; None is always all.
    device
        "auto", "cpu" or "cuda".
    dtype
        "float32", or "float64" where rounding must not matter (slower, and unfused on CUDA).
    """

    hidden: tuple[int, ...] = (64, 64)
    network: Callable[[int], Any] | None = None  # to a `torch.nn.Module`
    preprocess: str | None = "standard"
    input_scale: float = 1.0
    n_members: int = 1
    batch_size: int | str | None = "auto"
    device: str = "auto"
    dtype: str = "float32"

    needs_networks: ClassVar[bool] = True
    # whether problems of several lengths may train on batches in one fleet: `_train` then hands
    # `Rows.lengths` on, or batches would be drawn from padding
    batches_together: ClassVar[bool] = False

    def _fit_each(self, *given: Any, **options: Any) -> None:
        """All problems as one fleet."""
        with extra_needed(self.name, WITHOUT_NETWORKS):
            from dcem.methods.fleets import fit_fleet
        fit_fleet(*given, **options)

    def _pace(self, table: TrainingTable) -> int | None:
        """A number that depends on the rows and that all networks of a fleet must share."""
        return None

    def _train(self, data: FleetData) -> Trained:
        """Train one network for each seed in `data`; every method writes its own."""
        raise NotImplementedError

    def _architecture(self, n_inputs: int) -> Architecture:
        from dcem.engine import MLP, FromModule

        if self.network is not None:
            return FromModule(self.network, n_inputs)
        return MLP(n_inputs, tuple(self.hidden))

    def _preprocessor(self, problem: SelectiveLabels, rows: np.ndarray) -> Preprocessor:
        return Preprocessor.fit(problem.X, self.preprocess, self.input_scale, rows, problem.person)

    @property
    def _precision(self) -> str:
        return self.dtype

    def members(self, X: np.ndarray, rows: np.ndarray, *, exact: bool = True) -> np.ndarray:
        """Scores `[members, n]`, a network each."""
        import torch

        fleet = self.fleet_ if exact else self._quick_fleet()
        return fleet.predict(torch.from_numpy(rows)).double().cpu().numpy()

    def _quick_fleet(self) -> Fleet:
        """The networks in the precision they were trained in: for scores by the million."""
        import torch

        from dcem.engine import Fleet

        quick: tuple[Fleet, Fleet] | None = self.__dict__.get("_quick")
        if quick is None or quick[0] is not self.fleet_:
            flat = self.fleet_.flat.to(getattr(torch, self.dtype))
            quick = self.fleet_, Fleet(self.fleet_.architecture, flat)
            self._quick = quick
        return quick[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.preprocess is not None
        return tags
