"""Recording a body as a CUDA graph, which one call launches again and again.

A body is a function without arguments that reads and writes tensors which stay where they are, never asks the device
for a value and does the same operations every time. :class:`CudaGraphs` turns it into a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

Body = Callable[[], None]
STREAMS = 8  # branches of a graph that may run side by side
WARM = 3  # calls before the capture: libraries allocate their workspaces in the first ones


class CudaGraphs:
    """CUDA graphs, their branches on ``STREAMS`` streams."""

    def __init__(self) -> None:
        self._streams: list[torch.cuda.Stream] = []

    def record(self, body: Body) -> Body:
        """A call that does what the body does, with the tensors that it holds; it runs the body some times before."""
        side = torch.cuda.Stream()  # what runs before a capture must not run on the stream that is captured
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM):
                body()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with workspaces_of_its_own(), torch.cuda.graph(graph):
            body()
        return graph.replay

    def side_by_side(self, branches: Sequence[Body]) -> None:
        """Run branches that touch nothing in common; what follows may use what they wrote. Used inside a body."""
        while len(self._streams) < min(STREAMS, len(branches)):
            self._streams.append(torch.cuda.Stream())
        streams = self._streams[: len(branches)]
        current = torch.cuda.current_stream()
        for stream in streams:
            stream.wait_stream(current)
        for i, branch in enumerate(branches):
            with torch.cuda.stream(streams[i % len(streams)]):
                branch()
        for stream in streams:
            current.wait_stream(stream)


@contextmanager
def workspaces_of_its_own() -> Iterator[None]:
    """Let what is captured inside allocate cuBLAS's workspaces anew, in the memory of its own graph.

    torch keeps one workspace per stream. A graph replays with the address it was captured with, so that a workspace
    that an earlier graph or an ordinary call allocated is freed under it once that graph goes, or when
    ``torch.compile``'s own graphs clear them all: an illegal memory access, or products in memory that others use.
    """
    torch._C._cuda_clearCublasWorkspaces()
    try:
        yield
    finally:
        torch._C._cuda_clearCublasWorkspaces()  # nor may a later graph take this one's


def refusal(problem: Any) -> str | None:
    """Why what a problem computes cannot be recorded on its device, or None."""
    if not hasattr(problem, "flat"):
        return "it is no network"
    if problem.flat.x.device.type != "cuda":
        return f"CUDA graphs need CUDA, and the network lies on {problem.flat.x.device.type}"
    return "dropout's masks are drawn turn by turn" if problem.dropout else None
