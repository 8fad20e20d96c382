"""From stored uint8 pixels to what a network reads, computed where the batch lies.

A :class:`Transform` is fitted once on the training set and then only multiplies, adds and gathers. Random
choices come from a counter (seed, worker, batch number, place in the batch), so the augmentation of any
batch can be recomputed alone.

Random crops and flips are part of a batch order. An order that augments answers with codes instead of examples. A
code holds the example, the corner of its crop and whether it is mirrored, so batches can be joined, split and
recomputed without carrying anything else along.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from suite.data import counter
from suite.data.order import Order

RULES: dict[str, str] = {
    "as-is": "x (inputs that are floats already)",
    "scale": "x / 256 (Caffe's and Crossbow's MNIST)",
    "unit": "x / 255",
    "signed": "x / 127.5 - 1 (Crossbow's CIFAR)",
    "mean-image": "x minus the training set's mean picture, in 0..255 (Caffe's CIFAR)",
    "standardise": "x minus mean over deviation, each per channel (of rows: per column) of the training set",
    "standardise-global": "x minus mean over deviation of all of the training set's pixels (Torch7's MNIST)",
}

# Shift and scale of the rules that look at no picture
FIXED = {"as-is": (0.0, 1.0), "scale": (0.0, 1 / 256), "unit": (0.0, 1 / 255), "signed": (127.5, 1 / 127.5)}
_FIT_ROWS = 4096  # pictures summed at a time, bounding the float64 copy to about 100 MB for CIFAR


@dataclass(frozen=True)
class Transform:
    """Affine in the pixel: ``(x - shift) * scale`` in float32, then a margin of zeros, as ``dtype``.

    The margin is zero *after* scaling, as Crossbow pads CIFAR, and is what turns 28x28 into 32x32. ``enlarge`` is the
    height and width to which pictures are enlarged between their pixels (bilinear), 0 for as they are.
    """

    shift: Tensor  # [C, H, W], [C, 1, 1] or [1, 1, 1]; of rows [C] or [1]
    scale: Tensor  # the same, or 0-d
    margin: int = 0  # pixels added on each side
    dtype: torch.dtype = torch.float32
    enlarge: int = 0

    def __call__(self, pixels: Tensor) -> Tensor:
        """Network input [..., C, H + 2 margin, W + 2 margin] of uint8 pixels [..., C, H, W]."""
        scaled = (pixels.to(torch.float32) - self.shift) * self.scale
        if self.enlarge:
            scaled = functional.interpolate(scaled, self.enlarge, mode="bilinear")
        return (functional.pad(scaled, (self.margin,) * 4) if self.margin else scaled).to(self.dtype)

    def to(self, device: torch.device | str, dtype: torch.dtype = torch.float32) -> Self:
        """The same transform for pixels on ``device``, to numbers of this type."""
        return replace(self, shift=self.shift.to(device), scale=self.scale.to(device), dtype=dtype)


def check_rule(rule: str) -> None:
    """Raise ValueError for a transform that does not exist."""
    if rule not in RULES:
        raise ValueError(f"transform {rule!r} does not exist; choose one of {', '.join(RULES)}")


def fit(rule: str, inputs: Tensor, size: int | None = None) -> Transform:
    """The transform called ``rule``, its statistics taken from the training set.

    Args:
        rule: one of :data:`RULES`.
        inputs: training pixels [N, C, H, W] uint8, or examples [N, ...]; the fixed rules look at their shape alone.
        size: height and width wanted; a margin of zeros on all sides makes up for smaller pictures.

    Raises:
        ValueError: unknown rule, a size that no equal margin reaches, or pixels without any variation.
    """
    check_rule(rule)
    margin = 0
    if size is not None:
        height, width = inputs.shape[-2:]
        if height != width or size < height or (size - height) % 2:
            raise ValueError(f"pictures of {height}x{width} cannot be padded equally to size={size}")
        margin = (size - height) // 2

    shift, scale = _statistics(rule, inputs)
    return Transform(shift.to(torch.float32), scale.to(torch.float32), margin)


def _statistics(rule: str, inputs: Tensor) -> tuple[Tensor, Tensor]:
    if rule in FIXED:
        shift, scale = FIXED[rule]
        return torch.full((1,) * (inputs.dim() - 1), shift), torch.tensor(scale)
    if not len(inputs):
        raise ValueError(f"transform {rule!r} needs a training set and got no pictures")
    total = torch.zeros(inputs.shape[1:], dtype=torch.float64)
    squares = torch.zeros_like(total)
    for rows in inputs.split(_FIT_ROWS):
        values = rows.to(torch.float64)
        total += values.sum(0).cpu()
        squares += values.square().sum(0).cpu()
    mean_image, square_image = total / len(inputs), squares / len(inputs)
    if rule == "mean-image":
        return mean_image, torch.ones(())
    over = tuple(range(1 if rule == "standardise" else 0, total.dim()))
    # torch takes the mean over no axis for one over all of them; a column of a table is its own mean
    mean, square = (each.mean(over, keepdim=True) if over else each for each in (mean_image, square_image))
    deviation = (square - mean.square()).clamp(min=0).sqrt()
    if not (deviation > 0).all():
        raise ValueError(f"transform {rule!r} divides by the deviation of the pixels, which is 0 in this set")
    return mean, 1 / deviation


@dataclass(frozen=True)
class CropFlip:
    """Random crop of ``crop`` pixels out of pictures with a margin of zeros, mirrored with probability 1/2.

    Crossbow's CIFAR: margin 4 (stored as 40x40), crop 32, flip. Caffe's ImageNet: margin 0, crop 227 of 256.
    Apply it after the :class:`Transform`, so that the margin holds zeros of the network's input.
    """

    crop: int
    margin: int = 0
    flip: bool = True

    def __post_init__(self) -> None:
        if self.crop < 1 or self.margin < 0:
            raise ValueError(f"crop={self.crop} must be at least 1 and margin={self.margin} at least 0")

    def places(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns at which a crop's corner can lie in the padded picture. Raises ValueError for none."""
        rows, columns = (extent + 2 * self.margin - self.crop + 1 for extent in (height, width))
        if rows < 1 or columns < 1:
            raise ValueError(
                f"crop={self.crop} exceeds pictures of {height}x{width} with margin={self.margin}; "
                f"choose a smaller crop"
            )
        return rows, columns

    def choices(
        self,
        height: int,
        width: int,
        batch: int,
        seed: int,
        numbers: Tensor,
        workers: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Row and column of the crop's corner in the padded picture, whether to mirror: [n, batch] each."""
        rows, columns = self.places(height, width)
        worker = torch.zeros_like(numbers) if workers is None else workers
        where = (worker[:, None], numbers[:, None], torch.arange(batch, device=numbers.device))
        choice = torch.arange(3, device=numbers.device)
        top = counter.below(rows, seed, *where, choice[0])
        left = counter.below(columns, seed, *where, choice[1])
        mirror = counter.below(2, seed, *where, choice[2]).bool()
        return top, left, mirror if self.flip else torch.zeros_like(mirror)

    def cut(self, inputs: Tensor, top: Tensor, left: Tensor, mirror: Tensor) -> Tensor:
        """Crops [b, C, crop, crop] of inputs [b, C, H, W] that the transform has scaled."""
        padded = functional.pad(inputs, (self.margin,) * 4) if self.margin else inputs
        steps = torch.arange(self.crop, device=inputs.device)
        rows = top[:, None] + steps  # [b, crop]
        columns = left[:, None] + torch.where(mirror[:, None], self.crop - 1 - steps, steps)
        example, channel = (torch.arange(size, device=inputs.device) for size in inputs.shape[:2])
        return padded[
            example[:, None, None, None], channel[:, None, None], rows[:, None, :, None], columns[:, None, None, :]
        ]

    def __call__(self, inputs: Tensor, seed: int, numbers: Tensor, workers: Tensor | None = None) -> Tensor:
        """Augmented [n, b, C, crop, crop] of inputs [n, b, C, H, W], the batches ``numbers`` [n]."""
        batch, height, width = inputs.shape[1], *inputs.shape[-2:]
        choices = self.choices(height, width, batch, seed, numbers, workers)
        found = self.cut(inputs.flatten(0, 1), *(choice.flatten() for choice in choices))
        return found.unflatten(0, inputs.shape[:2])


def centre_crop(inputs: Tensor, crop: int) -> Tensor:
    """The middle [..., C, crop, crop] of inputs [..., C, H, W].

    Raises:
        ValueError: the pictures are smaller than the crop.
    """
    height, width = inputs.shape[-2:]
    if crop > min(height, width):
        raise ValueError(f"crop={crop} exceeds pictures of {height}x{width}; choose a smaller one")
    top, left = (height - crop) // 2, (width - crop) // 2
    return inputs[..., top : top + crop, left : left + crop]


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


class Augmented(Order):
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
