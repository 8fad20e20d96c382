"""Random numbers by counter: a pure function of seed and coordinates, each obtainable alone.

The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) is applied once per coordinate, in int64
tensor arithmetic: the same bits on every device, no state and no synchronisation with the host.
"""

from __future__ import annotations

import torch
from torch import Tensor

# SplitMix64's increment and multipliers, as the signed integers that torch multiplies modulo 2**64
_INCREMENT = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def _shifted(x: Tensor, places: int) -> Tensor:
    """Logical shift right, which torch has only for unsigned values."""
    return (x >> places) & ((1 << (64 - places)) - 1)


def _mixed(x: Tensor) -> Tensor:
    x = (x ^ _shifted(x, 30)) * _FIRST
    x = (x ^ _shifted(x, 27)) * _SECOND
    return x ^ _shifted(x, 31)


def bits(seed: int, *coordinates: Tensor) -> Tensor:
    """53 random bits, int64 in [0, 2**53), for each point of the broadcast int64 coordinates.

    Args:
        seed: any integer; only its lowest 64 bits count.
        coordinates: at least one; their order matters.
    """
    state = (seed + 2**63) % 2**64 - 2**63
    # a 0-d CPU tensor combines with tensors of any device without a transfer
    mixed = _mixed(torch.tensor(state) + _INCREMENT)
    for coordinate in coordinates:
        mixed = _mixed((mixed ^ coordinate) + _INCREMENT)
    return _shifted(mixed, 11)


def below(bound: int | Tensor, seed: int, *coordinates: Tensor) -> Tensor:
    """int64 in [0, bound), see :func:`bits`; the bias of the remainder is below bound / 2**53."""
    return bits(seed, *coordinates) % bound


def generator(seed: int, *coordinates: int) -> torch.Generator:
    """A CPU generator for draws that are made once, seeded by the same coordinates."""
    points = [torch.tensor(coordinate) for coordinate in (*coordinates, len(coordinates))]
    return torch.Generator().manual_seed(int(bits(seed, *points)))
