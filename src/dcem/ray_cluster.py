"""A Ray cluster: joined or started here, and given tasks whose workers may be lost.

A worker or a machine that dies takes nothing with it: Ray gives its tasks to another. Every machine
needs dcem installed.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from dcem.extras import extra_needed
from dcem.table.messages import InputError, require_one_of

BACKENDS = ("local", "ray")
RETRIES = 5  # of a task whose worker died
_ANSWER = 5.0  # seconds that a cluster may take to answer
TOKEN = (
    "Set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to what 'ray get-auth-token' prints on its first "
    "machine."
)


@contextmanager
def joined(address: str | None) -> Iterator[Any]:
    """Be connected to the cluster at an address, or to one started here; yields `ray`."""
    if address is not None:
        _require_listener(address)
    with extra_needed("the backend ray"):
        import ray

    ours = not ray.is_initialized()
    if ours:
        if address is not None and not address.startswith("ray://"):
            _require_token(ray, address)
        try:
            ray.init(address=address, log_to_driver=False, configure_logging=False)
        except (ConnectionError, ValueError, ray.exceptions.RayError) as error:
            if address is None:
                raise
            why = f"Ray cannot join the cluster at {address}: {error}."
            raise InputError(f"{why} Does it want a token? {TOKEN}") from error
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


def shared_out(
    ray: Any, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, Any]]:
    """`function(*job)` of every job, one per core: the number of the job and its result.

    Tasks begin at once; results come in any order. What a task raises is raised here.
    """
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(function)
    waiting = {task.remote(*job): number for number, job in enumerate(jobs)}

    def results() -> Iterator[tuple[int, Any]]:
        try:
            while waiting:
                ready, _ = ray.wait(list(waiting))
                for one in ready:
                    yield waiting.pop(one), ray.get(one)
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, InputError) else error from None
        except (ConnectionError, ray.exceptions.RayError) as error:
            raise InputError(
                f"The Ray cluster lost a task {RETRIES + 1} times, or no longer answers "
                f"({type(error).__name__}). Run the same command again when it is back."
            ) from error

    return results()


def connection(backend: str, address: str | None = None) -> AbstractContextManager[Any]:
    """What a backend needs for its work: `ray`, connected, or None where nothing leaves here."""
    require_one_of("backend", backend, BACKENDS)
    return joined(address) if backend == "ray" else nullcontext()


def _require_listener(address: str) -> None:
    """Refuse an address at which nobody answers; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():
        return  # "auto" and the like: Ray knows
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"No Ray cluster answers at {address} ({error}). On its first machine, start it with "
            f"'ray start', as the head and at port {port} (docs/benchmark.md)."
        ) from None


def _require_token(ray: Any, address: str) -> None:
    """Ask the head once: where the token is missing, Ray itself would ask for twenty seconds."""
    refused = getattr(ray.exceptions, "AuthenticationError", ())  # older versions have no tokens
    try:
        from ray._raylet import GcsClient

        GcsClient(address=address)
    except refused as error:
        raise InputError(f"The Ray cluster at {address} wants a token. {TOKEN}") from error
    except (ImportError, ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError):
        return  # joining it says more
