"""Statements of MaTEx on its algorithms, its printed table and its settings, which no experiment decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from paper_figures.matex_agd.exchanges import GOOGLENET
from paper_figures.matex_agd.settings import EFFECTIVE_BATCH
from paper_figures.matex_agd.table1 import printed_table
from suite.cost_models import DGX1
from suite.data.catalogue import DATASETS
from suite.papers.catalogue import printed_value

Weights = list[tuple[Tensor, Tensor]]  # (W [out, in], b [out]) from first to last layer


def relu(x: Tensor) -> Tensor:
    """As printed at the end of section 3.1.1."""
    return torch.maximum(torch.zeros_like(x), x)


def cost(layers: Weights, x: Tensor, y: Tensor) -> Tensor:
    """Squared error |y - a|^2 / 2 of one example, ReLU in every layer but the last."""
    for w, b in layers[:-1]:
        x = relu(w @ x + b)
    w, b = layers[-1]
    return 0.5 * ((y - (w @ x + b)) ** 2).sum()


def algorithm_1(
    layers: Weights, x: Tensor, y: Tensor, average: Callable[[Tensor, int], Tensor] = lambda g, layer: g
) -> tuple[list[Tensor], list[int]]:
    """Gradients, and the layers in the order in which theirs were ready, with lost transpose and derivative marks.

    The bias gradient is delta (line 9), in the same memory. ``average`` is called with each as soon as it is there;
    if it writes into that memory, the layers below back-propagate what it wrote.
    """
    activations, inner = [x], []
    for place, (w, b) in enumerate(layers):
        inner.append(w @ activations[-1] + b)
        activations.append(inner[-1] if place == len(layers) - 1 else relu(inner[-1]))
    delta, found, ready = activations[-1] - y, list[Tensor](), []
    for place in reversed(range(len(layers))):
        weight = torch.outer(delta, activations[place])
        found[:0] = [weight, average(delta, place)]
        ready.append(place)
        if place:
            delta = (layers[place][0].T @ delta) * (inner[place - 1] > 0)
    return found, ready


def example(seed: int) -> tuple[Weights, Tensor, Tensor]:
    """Weights that are the same for every seed, and an example of its own."""
    draw = torch.Generator().manual_seed(0)
    made = lambda *shape: torch.randn(*shape, generator=draw, dtype=torch.float64)
    layers = [(made(m, n) / n**0.5, made(m) / 10) for n, m in ((6, 8), (8, 7), (7, 3))]
    draw.manual_seed(seed + 1)
    return layers, made(6), made(3)


def test_algorithm_1_differentiates_the_squared_error() -> None:
    layers, x, y = example(0)
    found, ready = algorithm_1(layers, x, y)
    flat = [part for pair in layers for part in pair]
    for gradient, part in zip(found, flat, strict=True):
        numerical = torch.empty_like(part)
        for at in range(part.numel()):
            ends = []
            for sign in (1, -1):
                part.view(-1)[at] += sign * 1e-6
                ends.append(cost(layers, x, y))
                part.view(-1)[at] -= sign * 1e-6
            numerical.view(-1)[at] = (ends[0] - ends[1]) / 2e-6
        torch.testing.assert_close(gradient, numerical, rtol=0, atol=1e-7)
    assert ready == [2, 1, 0]


def test_relu_is_torchs() -> None:
    grid = torch.linspace(-5, 5, 1001, dtype=torch.float64)
    assert torch.equal(relu(grid), torch.relu(grid))


def test_gradients_of_autograd_come_from_the_last_layer_to_the_first() -> None:
    network, seen = nn.Sequential(*(nn.Linear(5, 5) for _ in range(4))), list[int]()
    for place, layer in enumerate(network.children()):
        weight: Any = layer.weight
        weight.register_post_accumulate_grad_hook(lambda _, place=place: seen.append(place))
    network(torch.ones(1, 5)).sum().backward()
    assert seen == [3, 2, 1, 0]


def test_the_cost_rises_with_the_printed_plus_sign_and_falls_with_a_minus() -> None:
    layers, x, y = example(0)
    found, _ = algorithm_1(layers, x, y)
    after = {}
    for sign in (1, -1):
        stepped = iter(
            part + sign * 1e-3 * g for part, g in zip((p for pair in layers for p in pair), found, strict=True)
        )
        after[sign] = cost(list(zip(stepped, stepped, strict=True)), x, y)
    assert after[-1] < cost(layers, x, y) < after[1]


def test_averaging_in_place_spoils_other_layers_gradients_and_averaging_a_copy_does_not() -> None:
    """Four workers with an example each; their average replaces delta of the last layer, where the next reads it."""
    workers = [example(seed) for seed in range(4)]
    alone = [algorithm_1(*worker)[0] for worker in workers]
    mean = [torch.stack(parts).mean(0) for parts in zip(*alone, strict=True)]
    last = mean[-1]
    spoilt: dict[bool, float] = {}
    for copy in (True, False):
        write = lambda delta, layer, copy=copy: delta if layer < 2 else (last.clone() if copy else delta.copy_(last))
        found = [algorithm_1(*worker, write)[0] for worker in workers]
        below = [torch.stack(parts).mean(0) for parts in zip(*found, strict=True)][:4]  # the two layers beneath
        spoilt[copy] = max(float((a - b).abs().max()) for a, b in zip(below, mean, strict=False))
    assert spoilt[True] < 1e-12
    assert spoilt[False] > 0.01


# ---------------------------------------------------------------- printed numbers and settings


def test_the_printed_table_counts_images_of_the_validation_set() -> None:
    """All twenty are whole counts of 50,000 images and of no fewer; the first of AGD 2 is what guessing gives."""
    table = printed_table()
    scaled = [round(value * 10**5) for row in table.values() for value in row]
    whole = lambda images: all(value * images % 10**5 == 0 for value in scaled)
    assert next(images for images in range(1, 50_001) if whole(images)) == 50_000
    chance = 1 / 1000
    assert abs(table["agd2"][0] - chance) < 2 * (chance * (1 - chance) / 50_000) ** 0.5
    assert [table[row][-1] / table["serial"][-1] for row in ("agd1", "agd2")] == pytest.approx(
        [0.4474, 0.1026], abs=5e-5
    )


def test_efficiency_and_speed_up_together_imply_synchronous_descents_rate() -> None:
    best, speedup = printed_value("matex_agd/fig1a/efficiency"), printed_value("matex_agd/fig1a/speedup")
    assert best / speedup == pytest.approx(48.2, abs=0.05)


def test_data_batches_and_devices_are_the_printed_ones() -> None:
    images = DATASETS["imagenet"]
    assert images.sizes["train"] == pytest.approx(1.3e6, abs=5e4)
    assert (images.sizes["validation"], images.classes) == (50_000, 1000)
    assert images.sizes["train"] * 3 * 256 * 256 / 1e9 == pytest.approx(250, abs=5), "256 x 256 pixels as bytes"
    assert (EFFECTIVE_BATCH[GOOGLENET], max(DGX1.devices), EFFECTIVE_BATCH[GOOGLENET] / 8) == (32, 8, 4)
