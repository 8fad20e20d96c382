"""Local solvers: what a parameter vector does with a gradient. Each satisfies ``contract.Optimizer``.

Memory keeps the parameters on its last axis, so ``memory[..., part]`` is the memory of a part of them.

:class:`InPlace` overwrites what it is given, by torch's fused SGD kernel: one pass and no new vectors.

The solvers are pure and written with whole vectors: each of their operations reads and writes all parameters, which
for a few hundred thousand of them costs as much as the gradient of one example. A session that owns its state may
hand over what the algorithm no longer reads after the step. The kernel rounds a product and a sum once
where the solver rounds twice, so the two agree to a few units in the last place a step and not to the bit.

One worker of plain SGD has nothing to sum over workers. There a backend steps along a gradient that it has not
written to a row yet: along autograd's own tensors, or layer by layer in machine code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor

from reference_impls.contract import Algorithm
from reference_impls.inverse_law import SGD

ALL = slice(None)
Stepped: TypeAlias = tuple[Tensor, Tensor]


class Solver:
    """The ranges of a solver's settings, and a memory as large as the parameters.

    Raises ValueError for a setting outside its range.
    """

    below_one: ClassVar[tuple[str, ...]] = ()  # settings in [0, 1)
    not_negative: ClassVar[tuple[str, ...]] = ("decay",)

    def __post_init__(self) -> None:
        for name in (*self.below_one, *self.not_negative):
            value, bound = getattr(self, name), 1.0 if name in self.below_one else math.inf
            if not 0 <= value < bound:
                raise ValueError(f"{type(self).__name__}: {name}={value} must lie in [0, {bound:g})")

    def init(self, parameters: Tensor) -> Tensor:
        return torch.zeros_like(parameters)


@dataclass(frozen=True)
class Momentum(Solver):
    """What Caffe's and PyTorch's SGD have in common."""

    below_one = ("momentum",)

    momentum: float = 0.0
    decay: float = 0.0  # L2: decay * parameter is added to the gradient
    lr_scale: Tensor | None = None  # [d] multiplies the learning rate (Caffe's lr_mult)
    decay_scale: Tensor | None = None  # [d] multiplies the decay (Caffe's decay_mult)

    def _decayed(self, parameters: Tensor, gradients: Tensor, part: slice) -> Tensor:
        if not self.decay:
            return gradients
        if self.decay_scale is None:
            return gradients + self.decay * parameters
        return gradients + self.decay * self.decay_scale[part] * parameters

    def _rate(self, lr: Tensor, part: slice) -> Tensor:
        return lr if self.lr_scale is None else lr * self.lr_scale[part]


@dataclass(frozen=True)
class CaffeSGD(Momentum):
    """v <- mu v + lr (g + decay x);  x <- x - v. A new learning rate acts on new gradients only."""

    def step(self, memory: Tensor, parameters: Tensor, gradients: Tensor, lr: Tensor, part: slice = ALL) -> Stepped:
        velocity = self.momentum * memory + self._rate(lr, part) * self._decayed(parameters, gradients, part)
        return parameters - velocity, velocity


@dataclass(frozen=True)
class TorchSGD(Momentum):
    """v <- mu v + g + decay x;  x <- x - lr v. A new learning rate acts on the whole velocity."""

    def step(self, memory: Tensor, parameters: Tensor, gradients: Tensor, lr: Tensor, part: slice = ALL) -> Stepped:
        velocity = self.momentum * memory + self._decayed(parameters, gradients, part)
        return parameters - self._rate(lr, part) * velocity, velocity


@dataclass(frozen=True)
class Adam(Solver):
    """Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, Algorithm 1; L2 as in PyTorch.

    Memory is [..., 3, d]: first moment, second moment, and the step count, kept for each parameter so that a
    part of them can be stepped alone. In float32 the count is exact up to 2^24 steps.
    """

    below_one = ("beta1", "beta2")
    not_negative = ("epsilon", "decay")

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decay: float = 0.0

    def init(self, parameters: Tensor) -> Tensor:
        return torch.zeros_like(parameters).unsqueeze(-2).repeat_interleave(3, -2)

    def step(self, memory: Tensor, parameters: Tensor, gradients: Tensor, lr: Tensor, part: slice = ALL) -> Stepped:
        g = gradients + self.decay * parameters if self.decay else gradients
        direction, memory = self.direction(memory, g)
        return parameters - lr * direction, memory

    def direction(self, memory: Tensor, g: Tensor) -> Stepped:
        """What the rate multiplies [..., s], and the new memory."""
        m, v, t = memory.unbind(-2)
        t = t + 1
        m = self.beta1 * m + (1 - self.beta1) * g
        v = self.beta2 * v + (1 - self.beta2) * g * g
        steps = t[..., :1]  # a part is stepped as one, so that its parameters have the same count
        m_hat, v_hat = m / (1 - self.beta1**steps), v / (1 - self.beta2**steps)
        return m_hat / (v_hat.sqrt() + self.epsilon), torch.stack([m, v, t], -2)


@dataclass(frozen=True)
class AdamW(Adam):
    """Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, Algorithm 2.

    x <- x - lr (m_hat / (sqrt(v_hat) + epsilon) + decay x). The decay is multiplied by the learning rate, as in
    libraries; the paper multiplies it by the schedule's factor alone.
    """

    decay: float = 0.01

    def step(self, memory: Tensor, parameters: Tensor, gradients: Tensor, lr: Tensor, part: slice = ALL) -> Stepped:
        direction, memory = self.direction(memory, gradients)
        return parameters * (1 - lr * self.decay) - lr * direction, memory


@dataclass(frozen=True)
class AdaGrad(Solver):
    """Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning", JMLR 2011, diagonal form.

    s <- s + g^2;  x <- x - lr g / (sqrt(s) + epsilon). Memory is s [..., d]; L2 as in PyTorch.
    """

    not_negative = ("epsilon", "decay")

    epsilon: float = 1e-10
    decay: float = 0.0

    def step(self, memory: Tensor, parameters: Tensor, gradients: Tensor, lr: Tensor, part: slice = ALL) -> Stepped:
        g = gradients + self.decay * parameters if self.decay else gradients
        squares = memory + g * g
        return parameters - lr * g / (squares.sqrt() + self.epsilon), squares


@dataclass(frozen=True)
class LARS(Solver):
    """You, Gitman and Ginsburg, "Large Batch Training of Convolutional Networks", arXiv 1708.03888, Algorithm 1.

    For the weights x of each layer, with gradient g,

        ratio <- trust |x| / (|g| + decay |x|);  v <- mu v + lr ratio (g + decay x);  x <- x - v

    A layer is one parameter tensor. Where x or g is zero the ratio is 1, which the paper leaves open.
    """

    below_one = ("momentum",)
    not_negative = ("trust", "decay")

    trust: float = 0.001
    momentum: float = 0.9
    decay: float = 0.0
    layers: tuple[slice, ...] = ()  # where each layer lies in [d], one behind the other; none: all are one

    def step(self, memory: Tensor, parameters: Tensor, gradients: Tensor, lr: Tensor, part: slice = ALL) -> Stepped:
        """As of any solver; a part must hold whole layers. Raises ValueError for one that cuts a layer."""
        sizes = self._sizes(part, parameters.shape[-1])
        pairs = zip(parameters.split(sizes, -1), gradients.split(sizes, -1), strict=True)
        steps = torch.cat([self._ratio(x, g) * (g + self.decay * x) for x, g in pairs], -1)
        velocity = self.momentum * memory + lr * steps
        return parameters - velocity, velocity

    def _ratio(self, x: Tensor, g: Tensor) -> Tensor:
        """[..., 1] of one layer."""
        weight, gradient = (value.norm(dim=-1, keepdim=True) for value in (x, g))
        ratio = self.trust * weight / (gradient + self.decay * weight)
        return torch.where((weight > 0) & (gradient > 0), ratio, torch.ones_like(ratio))

    def _sizes(self, part: slice, length: int) -> list[int]:
        """Sizes of the layers in a part of so many parameters."""
        start = part.start or 0
        inside = [layer for layer in self.layers if start <= layer.start and layer.stop <= start + length]
        sizes = [layer.stop - layer.start for layer in inside] if self.layers else [length]
        if sum(sizes) != length:
            raise ValueError(f"lars: parameters {start} to {start + length} cut a layer; step along whole layers")
        return sizes


def fused_sgd(
    x: list[Tensor],
    grads: list[Tensor],
    memory: list[Any],
    momentum: float,
    decay: float,
    lr: float,
    dampening: float = 0.0,
) -> None:
    """torch's fused step of SGD: parameters x and, with momentum, their memory in place, all of one type and device.

    torch.optim's function around it sorts tensors by device anew each time, a third of a small network's step.
    """
    torch._fused_sgd_(
        x,
        grads,
        memory if momentum else [],
        momentum=momentum,
        weight_decay=decay,
        lr=lr,
        dampening=dampening,
        nesterov=False,
        maximize=False,
        is_first_step=False,
    )


MOST_PIECES = 512  # of a vector with multipliers; beyond, calls would cost more than they save


EqualMultipliers: TypeAlias = tuple[float, float, tuple[int, ...]]  # of rate and decay; the pieces that have them


class InPlace:
    """``CaffeSGD`` or ``TorchSGD`` in place: memory, and parameters if asked for, hold the new values afterwards.

    Without momentum there is nothing to remember, and the memory stays what it was. Takes the pure step of anything
    but whole float32 vectors [d], and rows [r, d] of them where there are no multipliers.
    """

    def __init__(self, optimizer: CaffeSGD | TorchSGD, overwrites: bool = True):
        self.optimizer, self.overwrites = optimizer, overwrites

    def init(self, parameters: Tensor) -> Tensor:
        return self.optimizer.init(parameters)

    def step(self, memory: Tensor, parameters: Tensor, gradients: Tensor, lr: Tensor, part: slice = ALL) -> Stepped:
        """New parameters and the memory itself."""
        sizes, groups = self._split
        vectors = (parameters, gradients, memory)
        if (
            not groups
            or part != ALL
            or any(v.dtype != torch.float32 or v.shape != parameters.shape or not v.is_contiguous() for v in vectors)
            or (parameters.dim() > 1 and sizes)
        ):
            return self.optimizer.step(memory, parameters, gradients, lr, part)
        new = parameters if self.overwrites else parameters.clone()
        x, g, v = (vector.split_with_sizes(sizes) if sizes else (vector,) for vector in (new, gradients, memory))
        rate = lr.item()
        for lr_scale, decay_scale, mine in groups:
            points, grads, velocity = ([vector[i] for i in mine] for vector in (x, g, v))
            self.advance(points, grads, velocity, rate * lr_scale, decay_scale)
        return new, memory

    def advance(
        self, x: list[Tensor], grads: list[Tensor], memory: list[Any], rate: float, decay_scale: float
    ) -> None:
        """Parameters x and their memory in place, at one rate; a gradient must lie as its parameter does.

        The kernel's velocity is mu v + (1 - dampening) g: with 1 - dampening the rate, it is Caffe's.
        """
        rule = self.optimizer
        inside = isinstance(rule, CaffeSGD) and rule.momentum > 0
        rates = (1.0, 1.0 - rate) if inside else (rate, 0.0)
        fused_sgd(x, grads, memory, rule.momentum, rule.decay * decay_scale, *rates)

    def multipliers(self, segments: Sequence[slice]) -> list[tuple[float, float]]:
        """The multipliers of rate and decay of each parameter tensor."""
        one, starts = torch.ones(segments[-1].stop), [part.start for part in segments]
        scales = (self.optimizer.lr_scale, self.optimizer.decay_scale)
        rates, decays = (one if scale is None else scale for scale in scales)
        return list(zip(rates[starts].tolist(), decays[starts].tolist(), strict=True))

    @cached_property
    def _split(self) -> tuple[list[int], tuple[EqualMultipliers, ...]]:
        """Sizes of pieces of equal multipliers, none of a whole vector; no groups where there are too many."""
        given = (self.optimizer.lr_scale, self.optimizer.decay_scale)
        known = next((scale for scale in given if scale is not None), None)
        if known is None:
            return [], ((1.0, 1.0, (0,)),)
        scales = torch.stack([torch.ones_like(known) if scale is None else scale for scale in given])
        values, counts = scales.unique_consecutive(dim=1, return_counts=True)
        if len(counts) > MOST_PIECES:
            return [], ()
        return counts.tolist(), alike([(rate, decay) for rate, decay in values.T.tolist()])


def alike(multipliers: Sequence[tuple[float, float]]) -> tuple[EqualMultipliers, ...]:
    """The places of equal multipliers of rate and decay, in the order of their first."""
    members: dict[tuple[float, float], list[int]] = {}
    for place, pair in enumerate(multipliers):
        members.setdefault(pair, []).append(place)
    return tuple((*pair, tuple(places)) for pair, places in members.items())


def in_place(algorithm: Algorithm[Any], device: torch.device) -> Algorithm[Any]:
    """The algorithm with a solver that overwrites what it no longer reads, where there is one here."""
    optimizer = algorithm.optimizer
    if algorithm.keeps_memory or not isinstance(optimizer, CaffeSGD | TorchSGD) or device.type != "cpu":
        return algorithm
    return replace(algorithm, optimizer=InPlace(optimizer, overwrites=not algorithm.keeps_parameters))


def alone_in_place(algorithm: Algorithm[Any], dtype: torch.dtype) -> bool:
    """Whether an algorithm is plain SGD of one worker in float32 with a solver in place: nothing is to be summed."""
    plain = type(algorithm) is SGD and algorithm.collective.workers == 1
    return plain and isinstance(algorithm.optimizer, InPlace) and dtype == torch.float32
