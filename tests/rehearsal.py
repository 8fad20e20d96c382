"""What stands in for CUDA graphs where there is no GPU: the same bodies on the same tensors, by a graph's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from suite.training.recording import WARM, Body

# Operations that read a value from the device, or whose result's shape depends on one: a capture fails at them.
WAITING = {"_local_scalar_dense", "item", "nonzero", "equal", "masked_select", "is_nonzero", "_unique2", "unique_dim"}
FRESH = {"lift_fresh", "lift_fresh_copy"}  # a value from the host's memory, copied at every replay


class Refused(RuntimeError):
    """A body did what no graph can replay."""


class Watch(TorchDispatchMode):
    """Lists the operations with their shapes; refuses those that wait for the device or copy from the host."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, tuple[Any, ...]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in WAITING or name in FRESH:
            raise Refused(f"{name} cannot be captured")
        self.seen.append((name, tuple(tuple(a.shape) for a in args if isinstance(a, torch.Tensor))))
        return func(*args, **(kwargs or {}))


class Rehearsal:
    """A recorder that runs bodies at once. Every replay must do the operations that were recorded."""

    def __init__(self) -> None:
        self.recorded = 0
        self.replays = 0
        self.branches: list[int] = []

    def record(self, body: Body) -> Body:
        for _ in range(WARM):
            body()
        with Watch() as first:
            body()  # a capture would not run it, but these tensors are overwritten before each replay
        self.recorded += 1

        def replay() -> None:
            with Watch() as again:
                body()
            if again.seen != first.seen:
                raise Refused("a replay did other operations than were recorded")
            self.replays += 1

        return replay

    def side_by_side(self, branches: Sequence[Body]) -> None:
        """In reverse order, so that a branch which needs what an earlier one wrote fails."""
        self.branches.append(len(branches))
        for branch in reversed(branches):
            branch()
