"""Convolutions as products of matrices: each window of a picture becomes a column.

vmap makes one grouped convolution of the convolutions of n networks, for which libraries have no fast kernels;
unfolded, they are one batched product. The pictures' windows overlap, so unfolding moves several times their bytes:
which is faster depends on the network, the batch and the machine, and is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

Extent = int | tuple[int, ...]


def convolve(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Extent = 1,
    padding: Extent = 0,
    dilation: Extent = 1,
    groups: int = 1,
) -> Tensor:
    """``torch.conv2d`` of pictures [b, c, h, w] and kernels [o, c / groups, i, j], as one product a group.

    Returns [b, o, H, W]. Padding is given in numbers.
    """
    extents, outputs = weight.shape[-2:], weight.shape[0]
    steps, pads, spreads = pair(stride), pair(padding), pair(dilation)
    columns = F.unfold(inputs, extents, spreads, pads, steps)  # [b, c i j, H W]
    columns = columns.unflatten(1, (groups, -1)).permute(1, 2, 0, 3).flatten(2)  # [groups, c i j / groups, b H W]
    found = weight.reshape(groups, outputs // groups, -1) @ columns  # [groups, o / groups, b H W]
    found = found.reshape(outputs, inputs.shape[0], -1).transpose(0, 1)
    if bias is not None:
        found = found + bias[:, None]
    size = tuple(
        (extent + 2 * pad - spread * (kernel - 1) - 1) // step + 1
        for extent, kernel, step, pad, spread in zip(inputs.shape[-2:], extents, steps, pads, spreads, strict=True)
    )
    return found.unflatten(2, size)


def pair(extent: Extent) -> tuple[int, ...]:
    """Rows and columns of an extent that may be given once for both."""
    return (extent, extent) if isinstance(extent, int) else tuple(extent) * (2 // len(extent))


class Unfolded(TorchFunctionMode):
    """Inside, two-dimensional convolutions whose padding is given in numbers are ``convolve``."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if func is torch.conv2d and not isinstance(named.get("padding", args[4] if len(args) > 4 else 0), str):
            return convolve(*args, **{"inputs" if name == "input" else name: value for name, value in named.items()})
        return func(*args, **named)
