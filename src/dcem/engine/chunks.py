"""Running out of memory must not lose a run: split the fleet and go on."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


def in_chunks(
    run: Callable[[Sequence[Item]], list[Result]],
    items: Sequence[Item],
    *,
    limit: int | None = None,
) -> list[Result]:
    """`run(items)`, split in halves as often as memory demands; results in the order of `items`.

    `run` trains one fleet and returns one result per item. `limit` is the most items a fleet may
    have. An item that does not fit alone raises its error.
    """
    if limit is not None and len(items) > limit:
        parts = [items[start : start + limit] for start in range(0, len(items), limit)]
        return [result for part in parts for result in in_chunks(run, part)]
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
    return in_chunks(run, items[:half]) + in_chunks(run, items[half:])
