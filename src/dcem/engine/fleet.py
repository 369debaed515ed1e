"""A fleet: M networks of one architecture, their parameters stacked; their rows; their losses.

A loss goes from logits `[M, N, k]` and rows to one number per network, `[M]`: a weighted mean over
rows, by their column `weight` where there is one (`[N]` or `[M, N]`), else all alike. Rows of
weight 0 take no part, which is how tables of different lengths share one fleet.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import softplus

from dcem.parallel import one_thread

Item = TypeVar("Item")

# Rows scored at a time: activations of a block stay small however long the table is.
PREDICT_ROWS = 65_536
SMALL_NETWORK = 100_000  # parameters, up to which a network works on one thread of a CPU


class Architecture(Protocol):
    """What a fleet asks of an architecture: initial parameters, and logits from parameters."""

    n_parameters: int
    n_outputs: int  # logits

    def initial(self, seed: int) -> Tensor:
        """Initial parameters `[P]` of one network."""
        ...

    def logits(self, flat: Tensor, X: Tensor) -> Tensor:
        """Logits `[M, N, k]` of parameters `[M, P]` on rows `[N, d]` or `[M, N, d]`."""
        ...


@dataclass
class Rows:
    """Rows of a table: features `X`, shared `[N, d]` or one table per network `[M, N, d]`, and any
    further columns by name, each `[N]` or `[M, N]`. Shared ones are stored once. Where tables of
    several lengths are padded to one, `lengths` says how many rows each network has.
    """

    X: Tensor
    columns: dict[str, Tensor] = field(default_factory=dict)
    lengths: Sequence[int] | None = None

    def __len__(self) -> int:
        return self.X.shape[-2]

    def __getitem__(self, name: str) -> Tensor:
        return self.columns[name]

    def get(self, name: str) -> Tensor | None:
        """A column, or None where there is none of that name."""
        return self.columns.get(name)

    def plus(self, **columns: Tensor) -> Rows:
        """The same rows with further columns, or others under the same names."""
        return Rows(self.X, self.columns | columns, self.lengths)

    def take(self, index: Tensor) -> Rows:
        """The rows `index [M, B]`, each network its own: features `[M, B, d]`, columns `[M, B]`."""
        wanted = index
        if self.X.dim() == 3:  # rows of the tables one after the other
            first = torch.arange(len(index), device=index.device).unsqueeze(1) * self.X.shape[1]
            wanted = index + first
        rows = self.X.reshape(-1, self.X.shape[-1])
        # whole rows at once: `gather` and plain indexing copy number by number
        X = rows.index_select(0, wanted.reshape(-1)).reshape(*index.shape, -1)
        columns = {
            name: column[index]
            if column.dim() == 1
            else column.expand(len(index), -1).gather(1, index)  # `[1, N]` is shared too
            for name, column in self.columns.items()
        }
        return Rows(X, columns)


class Fleet:
    """M networks of one architecture; `flat [M, P]` holds all their parameters."""

    def __init__(self, architecture: Architecture, flat: Tensor):
        self.architecture = architecture
        self.flat = flat

    @classmethod
    def initial(
        cls,
        architecture: Architecture,
        seeds: Sequence[int],
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> Fleet:
        """Networks at their initial weights, one for each seed; equal seeds, equal networks."""
        drawn: Mapping[int, Tensor] = {seed: architecture.initial(seed) for seed in set(seeds)}
        flat = torch.stack([drawn[seed] for seed in seeds])
        return cls(architecture, flat.to(device, dtype))

    def __len__(self) -> int:
        return self.flat.shape[0]

    def __getitem__(self, members: slice) -> Fleet:
        """Some of the networks, as a fleet of its own: a copy on the CPU."""
        return Fleet(self.architecture, self.flat[members].detach().cpu().clone())

    def clone(self) -> Fleet:
        """A copy that training the original leaves alone."""
        return Fleet(self.architecture, self.flat.clone())

    def load(self, flat: Tensor) -> None:
        """Overwrite the parameters in place: whatever points at them sees the new values."""
        self.flat.copy_(flat)

    @torch.no_grad()
    def logits(self, X: Tensor) -> Tensor:
        """Logits `[M, N, k]`, computed block by block: activations do not grow with the rows."""
        n_rows, step = X.shape[-2], max(1024, PREDICT_ROWS // max(1, len(self) // 8))
        out = self.flat.new_empty(len(self), n_rows, self.architecture.n_outputs)
        for start in range(0, n_rows, step):
            rows = X[..., start : start + step, :].to(self.flat.device, self.flat.dtype)
            out[:, start : start + step] = self.architecture.logits(self.flat, rows)
        return out

    def predict(self, X: Tensor) -> Tensor:
        """The probability of class 1, `[M, N]`: softmax of two logits, or sigmoid of one."""
        few = X.shape[-2] <= PREDICT_ROWS
        with threads_for(self.architecture, self.flat.device) if few else nullcontext():
            return torch.sigmoid(margin(self.logits(X)))


def threads_for(architecture: Architecture, device: torch.device) -> AbstractContextManager[None]:
    """One thread for small networks on a CPU; for others as many as the caller has."""
    small = architecture.n_parameters <= SMALL_NETWORK and device.type == "cpu"
    return one_thread() if small else nullcontext()


def margin(logits: Tensor) -> Tensor:
    """The log-odds of class 1: the difference of two logits, or the one there is."""
    return logits[..., 1] - logits[..., 0] if logits.shape[-1] == 2 else logits[..., 0]


def weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    """The mean of `values [M, N]` over rows, weighted: `[M]`.

    Where all weights are 0 (a minibatch without a tested row, say) the mean does not exist: NaN,
    with gradient 0, so that the network stays what it is instead of turning into NaN itself.
    """
    if weight is None:
        return values.mean(-1)
    total = weight.expand_as(values).sum(-1)
    mean = (values * weight).sum(-1) / total.clamp_min(torch.finfo(values.dtype).tiny)
    return torch.where(total > 0, mean, torch.nan)


def mean_or_zero(values: Tensor, weight: Tensor) -> Tensor:
    """The same, for a part of the rows that may be empty: a mean over nothing is zero."""
    total = weight.expand_as(values).sum(-1)
    return (values * weight).sum(-1) / torch.where(total > 0, total, 1.0)


class _SoftCrossEntropy(torch.autograd.Function):
    """Cross-entropy `[M, N]` of log-odds `z` against probabilities `q`; its gradient is p - q."""

    @staticmethod
    def forward(ctx, z: Tensor, q: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(z, q)
        return softplus(z) - q * z

    @staticmethod
    def backward(ctx, *grads: Tensor) -> tuple[Tensor, None]:  # type: ignore[no-untyped-def]
        z, q = ctx.saved_tensors
        return grads[0] * (torch.sigmoid(z) - q), None


def cross_entropy_rows(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of each row, `[M, N]`, against a label or a probability in `target`."""
    z = margin(logits)
    return _SoftCrossEntropy.apply(z, target.expand_as(z))


def cross_entropy(logits: Tensor, rows: Rows) -> Tensor:
    """Mean cross-entropy `[M]` against column `target`, a label or a probability."""
    return weighted_mean(cross_entropy_rows(logits, rows["target"]), rows.get("weight"))


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    """The device for `"auto"` (CUDA where there is a card, else the CPU), or the one named."""
    if str(device) == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError:
        raise ValueError(f"`device` must be auto, cpu or cuda; got {device!r}.") from None
    if resolved.type == "cuda" and (resolved.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device={str(device)!r} was asked for, but PyTorch sees no such CUDA device here. "
            'Use device="auto" or device="cpu".'
        )
    return resolved


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def in_chunks(
    run: Callable[[Sequence[Item]], None], items: Sequence[Item], *, limit: int | None = None
) -> None:
    """`run(items)`, split in halves as often as memory demands, one after the other in order.

    `run` trains one fleet. `limit` is the most items a fleet may have. An item that does not fit
    alone raises its error.
    """
    if limit is not None and len(items) > limit:
        for start in range(0, len(items), limit):
            in_chunks(run, items[start : start + limit])
        return
    try:
        return run(items)
    except Exception as error:
        if not _is_out_of_memory(error) or len(items) < 2:
            raise
        half = (len(items) + 1) // 2
        warnings.warn(
            f"a fleet of {len(items)} networks does not fit into memory; "
            f"training it as two of {half} and {len(items) - half}",
            RuntimeWarning,
            stacklevel=2,
        )
    gc.collect()  # outside `except`: the traceback no longer holds the failed fleet's tensors
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    in_chunks(run, items[:half])
    in_chunks(run, items[half:])
