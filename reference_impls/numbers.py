"""Plain numbers as tensors on a device, which is never waited for."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def on_device(values: Sequence[float], device: torch.device, dtype: torch.dtype = torch.int64) -> Tensor:
    """``values`` as a vector on a device.

    A copy from ordinary host memory to a GPU waits until the GPU has done all that it was given before; one from
    pinned memory is queued behind it.
    """
    if device.type != "cuda":
        return torch.tensor(values, dtype=dtype, device=device)
    return pinned(values, dtype).to(device, non_blocking=True)


def pinned(values: Sequence[float], dtype: torch.dtype) -> Tensor:
    """A vector in pinned host memory, which torch does not use again before copies from it have ended."""
    return torch.tensor(values, dtype=dtype, pin_memory=True)
