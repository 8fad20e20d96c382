"""The paper's Algorithm 1 by hand, its update (Eq. 1-2), and what averaging in the middle of it does."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor

Weights = list[tuple[Tensor, Tensor]]  # (W [out, in], b [out]) from first to last layer
Average = Callable[[Tensor, int], Tensor]  # (bias gradient, layer) -> what stands in its memory afterwards


def weights(widths: tuple[int, ...], seed: int) -> Weights:
    draw = torch.Generator().manual_seed(seed)
    return [
        (
            torch.randn(m, n, generator=draw, dtype=torch.float64) / n**0.5,
            torch.randn(m, generator=draw).double() / 10,
        )
        for n, m in itertools.pairwise(widths)
    ]


def relu(x: Tensor) -> Tensor:
    """As printed at the end of section 3.1.1: max(0, x)."""
    return torch.maximum(torch.zeros_like(x), x)


def cost(layers: Weights, x: Tensor, y: Tensor) -> Tensor:
    """Squared error |y - a|^2 / 2 of one example, ReLU in every layer but the last."""
    a = x
    for place, (w, b) in enumerate(layers):
        z = w @ a + b
        a = z if place == len(layers) - 1 else relu(z)
    return 0.5 * ((y - a) ** 2).sum()


def gradients(
    layers: Weights, x: Tensor, y: Tensor, average: Average = lambda g, layer: g
) -> tuple[Weights, list[int]]:
    """Algorithm 1 for one example, with the lost transpose and derivative marks restored.

    The bias gradient *is* delta (line 9), in the same memory. ``average`` is called with each as soon as it is
    there; if it writes into that memory, the layers below back-propagate what it wrote.
    Returns the gradients from first to last layer, and the layers in the order their gradients were ready.
    """
    activations, inner = [x], []
    for place, (w, b) in enumerate(layers):
        inner.append(w @ activations[-1] + b)
        activations.append(inner[-1] if place == len(layers) - 1 else relu(inner[-1]))
    delta = -(y - activations[-1])
    found: Weights = []
    ready = []
    for place in reversed(range(len(layers))):
        weight_gradient = torch.outer(delta, activations[place])
        bias_gradient = average(delta, place)
        found.append((weight_gradient, bias_gradient))
        ready.append(place)
        if place:
            delta = (layers[place][0].T @ delta) * (inner[place - 1] > 0)
    return found[::-1], ready


def flat(layers: Weights) -> Tensor:
    return torch.cat([part.reshape(-1) for pair in layers for part in pair])


def numerical(layers: Weights, x: Tensor, y: Tensor, step: float = 1e-6) -> Tensor:
    """Central differences of the cost in every weight [d]."""
    base = flat(layers)
    found = torch.empty_like(base)
    for i in range(base.numel()):
        ends = []
        for sign in (1, -1):
            moved = base.clone()
            moved[i] += sign * step
            ends.append(cost(shaped(moved, layers), x, y))
        found[i] = (ends[0] - ends[1]) / (2 * step)
    return found


def shaped(vector: Tensor, like: Weights) -> Weights:
    """Inverse of ``flat``."""
    made, start = [], 0
    for w, b in like:
        end = start + w.numel()
        made.append((vector[start:end].view_as(w), vector[end : end + b.numel()]))
        start = end + b.numel()
    return made


def averaged_in_place(layers: Weights, examples: list[tuple[Tensor, Tensor]], *, copy: bool) -> float:
    """Largest error of layer-wise averaged gradients over workers with one example each.

    The workers go through backward in step. With ``copy`` each bias gradient is averaged on a copy; without, the
    average is written where the gradient lies, which is where the next layer reads delta.
    """
    alone = [gradients(layers, x, y)[0] for x, y in examples]
    true = torch.stack([flat(g) for g in alone]).mean(0)

    averages: dict[int, Tensor] = {}
    if copy:
        averages = {place: torch.stack([g[place][1] for g in alone]).mean(0) for place in range(len(layers))}
    else:
        # every worker's delta of a layer depends on the averages written above it: fill them in from the top
        for place in reversed(range(len(layers))):
            held: list[Tensor] = []

            def look(delta: Tensor, layer: int, place: int = place, held: list[Tensor] = held) -> Tensor:
                if layer == place:
                    held.append(delta.clone())
                elif layer in averages:
                    delta.copy_(averages[layer])
                return delta

            for x, y in examples:
                gradients(layers, x, y, look)
            averages[place] = torch.stack(held).mean(0)

    def average(delta: Tensor, layer: int) -> Tensor:
        return averages[layer].clone() if copy else delta.copy_(averages[layer])

    found = torch.stack([flat(gradients(layers, x, y, average)[0]) for x, y in examples]).mean(0)
    return float((found - true).abs().max())
