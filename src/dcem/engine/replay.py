"""Work that is done many times over: on CUDA it is captured as a graph and replayed."""

from __future__ import annotations

from collections.abc import Callable

import torch

# Runs before the capture: kernels get compiled and workspaces made. They count.
WARM_UP = 3


class Replay:
    """Does one piece of work again and again; on CUDA captured as a graph after a few times.

    The host then launches one graph instead of dozens of small kernels. The work must read and
    write the same tensors each time, in place, and must not look at their values on the host.
    `device` is where these are: anywhere but on CUDA the work is just done.
    """

    def __init__(self, device: torch.device):
        self._device, self._runs = device, 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, work: Callable[[], None]) -> None:
        """Do `work`, which must be the same one every time."""
        if self._device.type != "cuda":
            work()
        elif self._graph is not None:
            self._graph.replay()
        else:
            self._run_and_perhaps_capture(work)

    def _run_and_perhaps_capture(self, work: Callable[[], None]) -> None:
        self._runs += 1
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            work()
        torch.cuda.current_stream().wait_stream(stream)
        if self._runs < WARM_UP:
            return
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        self._graph = graph
