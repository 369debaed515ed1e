"""Work on one thread, with the caller's numbers of threads as they were afterwards.

Products of small matrices gain little from more threads, and on a busy machine lose much: threads
that share one product wait for each other by spinning. Results do not depend on the number of
cores, either.

NumPy's and SciPy's BLAS has one number of threads for the whole process. So open limits are
counted: the first one sets it, the last one to end puts the caller's number back. PyTorch has a
number for each thread that uses it, and a usual one for threads that are begun later; a limit
changes the number of its own thread alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, Thread
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_open_limits = 0
_caller: Any = None  # the numbers of BLAS threads from before the first open limit


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for the products of BLAS and PyTorch in this block; also a decorator."""
    torch = sys.modules.get("torch")  # if nothing has loaded it, nothing uses it
    number = torch.get_num_threads() if torch else 1
    _limit_blas()
    try:
        if number > 1:
            _set_torch_threads(torch, 1)
        yield
    finally:
        _release_blas()
        if number > 1:
            _set_torch_threads(torch, number)


def _limit_blas() -> None:
    global _open_limits, _caller
    with _lock:
        if _open_limits == 0:
            _caller = _libraries().limit(limits=1, user_api="blas")
        _open_limits += 1


def _release_blas() -> None:
    global _open_limits
    with _lock:
        _open_limits -= 1
        if _open_limits == 0:
            _caller.restore_original_limits()


@cache
def _libraries() -> ThreadpoolController:
    """The libraries behind NumPy and SciPy, looked for once: that takes longer than some calls."""
    import scipy.linalg  # noqa: F401  # loads its BLAS

    return ThreadpoolController()


def _set_torch_threads(torch: Any, number: int) -> None:
    """`torch.set_num_threads` for this thread alone.

    It also sets the usual number of new threads, which another new thread sets back.
    """
    with _lock:
        usual: list[int] = []
        _in_new_thread(lambda: usual.append(torch.get_num_threads()))
        torch.set_num_threads(number)
        _in_new_thread(lambda: torch.set_num_threads(usual[0]))


def _in_new_thread(work: Callable[[], object]) -> None:
    thread = Thread(target=work)
    thread.start()
    thread.join()
