"""Work that is done many times over: on CUDA it is captured as a graph and replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

# Runs before the capture: kernels get compiled and workspaces made. They count.
WARM_UP = 3


class Replay:
    """Does one piece of work again and again; on CUDA captured as a graph after a few times.

    The host then launches one graph instead of dozens of small kernels. The work must read and
    write the same tensors each time, in place, and must not look at their values on the host.

    Parameters
    ----------
    device
        Where the tensors of the work are. Anywhere but on CUDA the work is just done.
    generators
        Generators that it draws from on CUDA, so that a captured graph advances them.
    """

    def __init__(self, device: torch.device, generators: Sequence[torch.Generator] = ()):
        self._device, self._generators = device, generators
        self._runs = 0
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
        for generator in self._generators:
            graph.register_generator_state(generator)
        with torch.cuda.graph(graph):
            work()
        self._graph = graph
