"""Other processes, without the seconds that a fresh one needs to import."""

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.context import ForkProcess
from typing import Any

FORK = multiprocessing.get_context("fork")


def started(function: Callable[..., Any], *arguments: Any, **named: Any) -> ForkProcess:
    """Another process that does this."""
    child = FORK.Process(target=function, args=arguments, kwargs=named)
    child.start()
    return child


def listens() -> None:
    """For `preexec_fn`: Ctrl-C is heard, although a shell in the background passes it over."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
