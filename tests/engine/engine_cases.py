"""Small problems and run specifications that the engine's tests share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from suite.models import build, initialise
from suite.models.initialisers import Constant, Xavier
from suite.models.layers import BatchNorm, Conv2d, Linear, ResidualBlock, ZeroPaddedShortcut
from suite.models.network import Chain
from suite.papers.catalogue import experiment
from suite.runner.execute import RunnerConfig, execute
from suite.runner.workers import RunReport
from suite.runs.run import Run
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.training.flat import FlatModule
from suite.training.problem import Classification


def problem(
    name: str, *, examples: int = 12, dtype: torch.dtype = torch.float64, channels_last: bool = True, **options: Any
) -> Classification:
    """A network on random pictures; GoogLeNet without the heads that only its training has."""
    network = build(name, **({"aux": False} if name == "caffe_googlenet" else {}) | options)
    initialise(network, 7)
    network = network.to(dtype)
    generator = torch.Generator().manual_seed(1)
    pixels = torch.randint(256, (examples, *network.input_shape), generator=generator, dtype=torch.uint8)
    targets = torch.randint(network.classes, (examples, *network.label_shape), generator=generator)
    flat = FlatModule(network, channels_last=channels_last)
    if network.label_shape:  # it reads codes of classes
        return Classification(flat, pixels % network.classes, targets, lambda x: x.to(dtype))
    return Classification(flat, pixels, targets, lambda x: x.to(dtype) / 256 - 0.5)


def residual() -> Chain:
    """A small residual network with every kind of shortcut, at widths of one, two and three vectors."""

    def norm(inputs: int, outputs: int, kernel: int, stride: int) -> list[nn.Module]:
        padding, bias = kernel // 2, Constant(0.1) if inputs == outputs else None
        weight = {"weight": Xavier(), "bias": bias}
        return [Conv2d(inputs, outputs, kernel, stride=stride, padding=padding, **weight), BatchNorm(outputs)]

    def block(inputs: int, outputs: int, stride: int, shortcut: nn.Module) -> nn.Module:
        branch = nn.Sequential(*norm(inputs, outputs, 3, stride), nn.ReLU(), *norm(outputs, outputs, 3, 1))
        return ResidualBlock(branch, shortcut)

    first = zip(("conv1", "norm1", "relu1"), [*norm(3, 16, 3, 1), nn.ReLU()], strict=True)
    layers = [
        *first,
        ("block1", block(16, 16, 1, nn.Identity())),
        ("block2", block(16, 32, 2, nn.Sequential(*norm(16, 32, 1, 2)))),
        ("block3", block(32, 48, 2, ZeroPaddedShortcut(32, 48, 2))),
        ("pool", nn.AvgPool2d(2)),
        ("flatten", nn.Flatten()),
        ("ip", Linear(48, 5, weight=Xavier(), bias=Constant())),
    ]
    made = Chain(layers, (3, 8, 8), 5)
    initialise(made, 7)
    return made


def points(case: Classification, rows: int) -> Tensor:
    """``rows`` points around the initial one."""
    generator = torch.Generator().manual_seed(2)
    x0 = case.flat.point()
    moves = torch.randn(rows, case.d, generator=generator, dtype=x0.dtype).to(x0.device)
    return x0 + 0.01 * x0.abs().mean() * moves


def bound(reference: Tensor, d: int) -> float:
    """Largest norm of the difference of two gradients (or losses) that rounding explains: sums of up to d terms in
    another order err by about sqrt(d) eps of their size, a few times over on the way through a network."""
    return 32 * math.sqrt(d) * torch.finfo(reference.dtype).eps * float(reference.norm())


def agree(ours: tuple[Tensor, ...], twins: tuple[Tensor, ...], d: int) -> None:
    for name, a, b in zip(("losses", "gradients", "buffers"), ours, twins, strict=True):
        assert a.shape == b.shape, name
        assert float((a - b).norm()) <= bound(b, d), (name, float((a - b).norm()), bound(b, d))


def digits(seed: int, **changes: Any) -> RunSpec:
    """A training run of a second or less."""
    settings = {
        "data": {"name": "digits", "transform": "scale", "size": 28},
        "model": {"name": "digits_lenet"},
        "descent": {"rule": "caffe", "momentum": 0.9, "decay": 5e-4, "multipliers": True},
        "algorithm": {"name": "sgd"},
        "order": {"kind": "fixed-cycle"},
        "rate": 0.01,
        "batch": 4,
        "updates": 12,
        "evaluate": {"every": 6},
    }
    return RunSpec("train", settings | changes, seed)


def compute(store: Path, *specs: RunSpec, **around: Any) -> list[RunReport]:
    """Run specifications one after another."""
    return [execute(spec, experiment, RunnerConfig(store, **around)) for spec in specs]


def stored(store: Path, spec: RunSpec) -> Run:
    return Store(store).read(spec.id)


def digest(store: Path, spec: RunSpec) -> str:
    return stored(store, spec).results["weights_digest"]
