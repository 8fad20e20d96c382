"""What is minimised: a network on a data set, or a quadratic, as a loss of flat parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from suite.data.transforms import Augmentation
from suite.training.flat import FlatModule
from suite.training.gradients.backend import Batch
from suite.training.numerics import ONEDNN


@dataclass
class QuadraticProblem:
    """Mean over a batch of sum_j h_j (x_j - b_ij)^2 / 2, with rows b [N, d] and curvatures h [d]."""

    rows: Tensor
    curvature: Tensor
    q: int = 0
    batch_norm: bool = False
    dropout: bool = False
    kernels: AbstractContextManager[Any] = ONEDNN

    @property
    def d(self) -> int:
        return self.rows.shape[1]

    def b0(self) -> Tensor:
        return self.rows.new_zeros(0)

    def fetch(self, examples: Tensor) -> Batch:
        return (self.rows[examples],)

    def loss(self, x: Tensor, buffers: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        return 0.5 * (self.curvature * (x - batch[0]) ** 2).sum(-1).mean(), buffers


class Classification:
    """A network and images that stay on the device as uint8; ``transform`` decodes a gathered batch.

    ``inputs`` uint8 [N, C, H, W], ``targets`` int64 [N]; the loss is ``criterion(outputs, targets)``, the mean
    cross-entropy (nats). With ``augmentation``, what ``fetch`` is given are its codes, not examples.
    """

    def __init__(
        self,
        flat: FlatModule,
        inputs: Tensor,
        targets: Tensor,
        transform: Callable[[Tensor], Tensor],
        augmentation: Augmentation | None = None,
        kernels: AbstractContextManager[Any] = ONEDNN,
    ):
        self.flat, self.inputs, self.targets = flat, inputs, targets
        self.transform, self.criterion, self.augmentation = transform, F.cross_entropy, augmentation
        self.kernels, self.d, self.q = kernels, flat.d, flat.q
        self.batch_norm, self.dropout = flat.batch_norm, flat.dropout
        self.layout = flat.layout if inputs.dim() == 4 else torch.contiguous_format
        self._initial_buffers = flat.buffers.clone()

    def b0(self) -> Tensor:
        """Initial buffers [q]."""
        return self._initial_buffers.clone()

    def under(self, kernels: AbstractContextManager[Any]) -> Classification:
        """The same network and pictures, differentiated by other kernels."""
        other = copy.copy(self)
        other.kernels = kernels
        return other

    def fetch(self, examples: Tensor) -> Batch:
        if self.augmentation is not None:
            examples, *choices = self.augmentation.decode(examples)
            inputs = self.augmentation.rule.cut(self.transform(self.inputs.index_select(0, examples)), *choices)
        else:
            inputs = self.transform(self.inputs.index_select(0, examples))
        return inputs.contiguous(memory_format=self.layout), self.targets.index_select(0, examples)

    def loss(self, x: Tensor, buffers: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """Functional form; the looped path uses the bound module instead."""
        return self.loss_of(self.flat.named(x), buffers, batch)

    def loss_of(self, parameters: Mapping[str, Tensor], buffers: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The same of parameters by name, for vmap."""
        inputs, targets = batch
        fresh = {name: view.clone() for name, view in self.flat.named_buffers(buffers).items()}
        state = {**parameters, **self.flat.counters(), **fresh}
        outputs = torch.func.functional_call(self.flat.module, state, (inputs,))
        after = torch.cat([b.reshape(-1) for b in fresh.values()]) if fresh else buffers
        return self.criterion(outputs, targets), after

    def recomputed_buffers(self, x: Tensor, inputs: Tensor, *, chunk: int = 500) -> Tensor:
        """Batch-norm statistics [q] of a point on images [N, C, H, W]: the mean over chunks of ``chunk`` images.

        Statistics averaged over replicas belong to the replicas' activations, these to the point's own. Dropout is
        off. Without batch norm the buffers are returned as they are.
        """
        flat, module = self.flat, self.flat.module
        norms = [m for m in module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
        kept = [norm.momentum for norm in norms]
        total, chunks = torch.zeros_like(flat.buffers), inputs.split(chunk)
        with flat.evaluating():
            flat.load(x)
            try:
                for norm in norms:
                    norm.train()
                    norm.momentum = 1.0  # running statistics become those of the chunk
                for images in chunks:
                    module(self.transform(images).contiguous(memory_format=self.layout))
                    total += flat.buffers
            finally:
                for norm, momentum in zip(norms, kept, strict=True):
                    norm.momentum = momentum
        return total / len(chunks)
