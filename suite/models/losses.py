"""What a network's outputs cost: mean cross-entropy, as in Caffe's SoftmaxWithLoss and torch's NLL."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

AUXILIARY_WEIGHT = 0.3  # of each of GoogLeNet's auxiliary heads: loss_weight in bvlc_googlenet/train_val.prototxt


def loss(module: nn.Module, outputs: Tensor | tuple[Tensor, ...], targets: Tensor) -> Tensor:
    """Mean cross-entropy of logits ``[B, classes]`` against class numbers ``[B]`` int64; a 0-d tensor.

    A tuple is ``(main, auxiliary, ...)``, as GoogLeNet returns it in training; an auxiliary head counts 0.3.
    """
    if isinstance(outputs, Tensor):
        return F.cross_entropy(outputs, targets)
    main, *auxiliary = outputs
    total = F.cross_entropy(main, targets)
    for head in auxiliary:
        total = total + AUXILIARY_WEIGHT * F.cross_entropy(head, targets)
    return total


def sequence_loss(logits: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
    """Mean cross-entropy per target word; padding counts nothing.

    ``logits [B, T, V]``, ``targets [B, T]`` int64, ``mask [B, T]`` true where there is a word; a 0-d tensor.
    """
    each = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    weights = mask.flatten().to(each.dtype)
    return (each * weights).sum() / weights.sum()
