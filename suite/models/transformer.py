"""A small transformer on characters: what each next one is, after those of a window that stand before it.

Blocks normalise before attention and before the two inner products (pre-LN; Xiong et al., 2020), with learned places
and GELU. Weights start as GPT-2's (Radford et al., 2019): normal with deviation 0.02 at width 768, in proportion to
1 / sqrt(width) at others. Those that write into the residual stream are smaller by the square root of how many there
are.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor, nn

from suite.models.initialisers import Constant, Gaussian
from suite.models.layers import Add, Embedding, LayerNorm, Linear
from suite.models.network import Network


def deviation_at(width: int) -> float:
    """Of weights at the start: GPT-2's 0.02, scaled from its width."""
    return 0.02 * sqrt(768 / width)


class CausalMixing(nn.Module):
    """Values mixed by the softmax of queries on keys, ``[B, heads, T, part]`` all; no place reads a later one.

    Written out, since PyTorch's fused function is not faster on windows this short, and vmap cannot batch it.
    """

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        length, part = query.shape[-2:]
        later = torch.full((length, length), -torch.inf, dtype=query.dtype, device=query.device).triu(1)
        scores = query / sqrt(part) @ key.transpose(-2, -1) + later  # [B, heads, T, T]
        return scores.softmax(-1) @ value


class Attention(nn.Module):
    """Causal attention ``[B, T, width] -> [B, T, width]`` of several heads."""

    def __init__(self, width: int, heads: int, writers: int) -> None:
        super().__init__()
        self.heads = heads
        deviation = deviation_at(width)
        self.read = Linear(width, 3 * width, weight=Gaussian(deviation), bias=Constant())
        self.mix = CausalMixing()
        self.write = Linear(width, width, weight=Gaussian(deviation / sqrt(writers)), bias=Constant())

    def forward(self, x: Tensor) -> Tensor:
        parts = self.read(x).unflatten(-1, (3, self.heads, -1))  # [B, T, 3, heads, width / heads]
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # [B, heads, T, width / heads] each
        return self.write(self.mix(query, key, value).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """x + attention(norm(x)), then x + perceptron(norm(x)); ``[B, T, width]`` throughout."""

    def __init__(self, width: int, heads: int, writers: int) -> None:
        super().__init__()
        deviation = deviation_at(width)
        self.norm1 = LayerNorm(width)
        self.attention = Attention(width, heads, writers)
        self.add1 = Add()
        self.norm2 = LayerNorm(width)
        self.expand = Linear(width, 4 * width, weight=Gaussian(deviation), bias=Constant())
        self.gelu = nn.GELU()
        self.reduce = Linear(4 * width, width, weight=Gaussian(deviation / sqrt(writers)), bias=Constant())
        self.add2 = Add()

    def forward(self, x: Tensor) -> Tensor:
        x = self.add1(self.attention(self.norm1(x)), x)
        return self.add2(self.reduce(self.gelu(self.expand(self.norm2(x)))), x)


class CharacterTransformer(Network):
    """``[B, 1, 1, T]`` codes of characters -> logits ``[B, classes, T]`` of the next character at each place.

    By default two blocks of width 64 on windows of 64 characters, 116,000 parameters.

    Raises:
        ValueError: the width cannot be shared by so many heads.
    """

    def __init__(
        self, *, width: int = 64, heads: int = 4, blocks: int = 2, context: int = 64, classes: int = 96
    ) -> None:
        if width % heads:
            raise ValueError(f"width={width} must be a multiple of heads={heads}")
        super().__init__((1, 1, context), classes, label_shape=(context,))
        start = Gaussian(deviation_at(width))
        self.characters = Embedding(classes, width, weight=start)
        self.places = Embedding(context, width, weight=start)
        self.blocks = nn.Sequential(*(Block(width, heads, 2 * blocks) for _ in range(blocks)))
        self.norm = LayerNorm(width)
        self.head = Linear(width, classes, weight=start, bias=Constant())

    def forward(self, x: Tensor) -> Tensor:
        codes = x.flatten(1).long()  # [B, T]
        places = torch.arange(codes.shape[1], device=codes.device)
        hidden = self.characters(codes) + self.places(places)  # [B, T, width]
        return self.head(self.norm(self.blocks(hidden))).transpose(1, 2)
