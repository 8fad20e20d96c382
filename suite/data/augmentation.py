"""Random crops and flips as part of a batch order: which example, and how it is cut, in one number.

An order that augments answers with codes instead of examples. A code holds the example, the corner of its crop and
whether it is mirrored, so batches can be joined, split and recomputed without carrying anything else along.
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from suite.data.order import Order
from suite.data.transforms import CropFlip


class Augmentation:
    """What one code says of pictures of ``height`` x ``width``; ``rule`` gives crop, margin and flip."""

    def __init__(self, rule: CropFlip, height: int, width: int) -> None:
        self.rule, self.height, self.width = rule, height, width
        self.rows, self.columns = rule.places(height, width)

    def encode(self, examples: Tensor, top: Tensor, left: Tensor, mirror: Tensor) -> Tensor:
        """Codes int64 of the shape of ``examples``."""
        return ((examples * self.rows + top) * self.columns + left) * 2 + mirror.long()

    def decode(self, codes: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Examples, row and column of the crop's corner in the padded picture, whether to mirror."""
        mirror, rest = (codes % 2).bool(), codes // 2
        left, rest = rest % self.columns, rest // self.columns
        return rest // self.rows, rest % self.rows, left, mirror


class Augmented:
    """An order whose batches are codes; the choices depend on seed, worker, batch number and place alone."""

    def __init__(self, order: Order, augmentation: Augmentation, seed: int) -> None:
        self.order, self.augmentation, self.seed = order, augmentation, seed
        self.batch, self.batches_per_epoch = order.batch, order.batches_per_epoch

    def indices(self, numbers: Tensor, workers: Tensor | None = None) -> Tensor:
        examples = self.order.indices(numbers, workers)
        numbers = numbers.to(examples.device)
        made = self.augmentation
        choices = made.rule.choices(made.height, made.width, self.batch, self.seed, numbers, workers)
        return made.encode(examples, *choices)

    def to(self, device: torch.device | str) -> Self:
        self.order = self.order.to(device)
        return self
