"""Convolutions by fewer multiplications are as exact as float32 allows, alone and in a whole gradient."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from engine_cases import problem
from torch import Tensor, nn
from torch.nn import functional as F

from paper_figures.isgd import settings as isgd
from suite.experiment import Context
from suite.spec import RunSpec
from suite.training.build import random_classification
from suite.training.gradients import native
from suite.training.gradients.native import Native, plan
from suite.training.loop import train
from suite.training.machine_code import FLAGS, Source
from suite.training.numerics import apply, choose

HERE = Path(__file__).parent
WITH_LAYERS = (*FLAGS, f"-I{native.FILE.parent}")
EXACT = 1e-5  # largest error against float64, as a share of the norm

# Height and width, channels in and out, kernel, padding: those of the networks, and tiles that the output cuts.
SHAPES = [(16, 16, 32, 32, 5, 2), (2, 2, 256, 128, 3, 1), (13, 10, 16, 48, 5, 0), (7, 9, 48, 16, 3, 1)]
SOURCES = tuple(native.SOURCE.headers)


@cache
def layers(numbers: str) -> ctypes.CDLL:
    written = ", ".join("Winograd<{}, {}, {}, {}, {}, {}>".format(*shape) for shape in SHAPES)
    flags = (*WITH_LAYERS, *(["-O1"] if numbers == "double" else []))  # compiled sooner; the formulas are the same
    source = Source(HERE / "convolutions.cpp", SOURCES, flags)
    return source.library({"REAL": numbers, "LAYERS": written}, lambda path, _: ctypes.CDLL(str(path)))


def drawn(shape: tuple[int, ...], inputs: str, examples: int) -> tuple[Tensor, Tensor, Tensor]:
    """Parameters [O, C, K, K], pictures and gradients of the outputs, in float32 numbers.

    "pixels" are raw, from 0 to 255, and their gradients sparse, as below a pool; "rectified" ones half of each.
    """
    height, width, channels, out, k, p = shape
    g = torch.Generator().manual_seed(height)
    weights = torch.randn(out, channels, k, k, generator=g) / math.sqrt(channels * k * k)
    x = torch.randn(examples, channels, height, width, generator=g)
    dy = torch.randn(examples, out, height + 2 * p - k + 1, width + 2 * p - k + 1, generator=g)
    if inputs == "pixels":
        x = torch.randint(256, x.shape, generator=g).float()
        dy *= torch.rand(dy.shape, generator=g) < 0.05
    elif inputs == "rectified":
        x, dy = x.relu(), dy * (torch.rand(dy.shape, generator=g) < 0.5)
    return weights, x, dy


def native_convolution(which: int, weights: Tensor, bias: Tensor, x: Tensor, dy: Tensor) -> list[Tensor]:
    """Output, gradients of input, weights and bias by the native layer."""
    laid = [t.contiguous(memory_format=torch.channels_last) for t in (weights, x, dy)]
    flat = torch.cat([laid[0].permute(0, 2, 3, 1).reshape(-1), bias])
    y, dx, dw = torch.empty_like(laid[2]), torch.empty_like(laid[1]), torch.empty_like(flat)
    tensors = [flat, laid[1], laid[2], y, dx, dw]
    numbers = "float" if x.dtype == torch.float32 else "double"
    layers(numbers).convolution(which, ctypes.c_long(len(x)), *(ctypes.c_void_p(t.data_ptr()) for t in tensors))
    out, channels, k, _ = weights.shape
    return [y, dx, dw[: -len(bias)].view(out, k, k, channels).permute(0, 3, 1, 2), dw[-len(bias) :]]


def autograd_convolution(padding: int, weights: Tensor, bias: Tensor, x: Tensor, dy: Tensor) -> list[Tensor]:
    """The same by autograd in float64."""
    leaves = [t.double().requires_grad_() for t in (x, weights, bias)]
    y = F.conv2d(leaves[0], leaves[1], leaves[2], padding=padding)
    return [y.detach(), *torch.autograd.grad(y, leaves, dy.double())]


def error(ours: Tensor, exact: Tensor) -> float:
    return float((ours.double() - exact).norm() / exact.norm())


@pytest.mark.compiler
@pytest.mark.parametrize("inputs", ["normal", "rectified", "pixels"])
@pytest.mark.parametrize("which", range(len(SHAPES)), ids=map(str, SHAPES))
def test_a_convolution_is_as_exact_as_float32_allows(which: int, inputs: str):
    """Five examples: blocks and a part of one where a block is of two or eight."""
    weights, x, dy = drawn(SHAPES[which], inputs, 5)
    bias = torch.linspace(-1, 1, len(weights))
    exact = autograd_convolution(SHAPES[which][-1], weights, bias, x, dy)
    errors = [error(a, b) for a, b in zip(native_convolution(which, weights, bias, x, dy), exact, strict=True)]
    print(SHAPES[which], inputs, " ".join(f"{e:.1e}" for e in errors))
    assert max(errors) <= EXACT


@pytest.mark.compiler
@pytest.mark.parametrize("which", range(len(SHAPES)), ids=map(str, SHAPES))
def test_a_convolution_in_double_precision_differs_by_rounding_alone(which: int):
    weights, x, dy = (t.double() for t in drawn(SHAPES[which], "normal", 3))
    bias = torch.linspace(-1, 1, len(weights), dtype=torch.float64)
    exact = autograd_convolution(SHAPES[which][-1], weights, bias, x, dy)
    ours = native_convolution(which, weights, bias, x, dy)
    assert max(error(a, b) for a, b in zip(ours, exact, strict=True)) <= 1e-13


# ---------------------------------------------------------------- whole gradients


def in_native_order(module: nn.Module) -> list[nn.Module]:
    """Layers as the native step takes them: a ReLU after the maximum that follows it."""
    found: list[nn.Module] = []
    for layer in module.children():
        found.append(layer)
        if isinstance(layer, nn.MaxPool2d) and isinstance(found[-2], nn.ReLU):
            found[-2:] = [layer, found[-2]]
    return found


def decided(module: nn.Module, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Outputs, and the decisions of each ReLU and maximum, channels-last [examples, outputs]."""
    found: list[Tensor] = []

    def note(mask: Tensor) -> None:
        laid = mask.permute(0, 2, 3, 1) if mask.dim() == 4 else mask
        found.append(laid.reshape(len(x), -1).int().contiguous())

    for layer in in_native_order(module):
        if isinstance(layer, nn.MaxPool2d):
            x, places = F.max_pool2d(
                x, layer.kernel_size, layer.stride, layer.padding, ceil_mode=layer.ceil_mode, return_indices=True
            )
            note(places)
        else:
            if isinstance(layer, nn.ReLU):
                note(x > 0)
            x = layer(x)
    return x, found


def numbered() -> Callable[[re.Match[str]], str]:
    """Names the masked form of the next ReLU or maximum of a plan."""
    count = iter(range(99))
    return lambda match: f"Masked{match[1]}<{next(count)}, "


@pytest.mark.compiler
@pytest.mark.parametrize("name", ["caffe_cifar_full", pytest.param("vgg_medium", marks=pytest.mark.slow)])
def test_a_whole_gradient_is_as_exact_where_nothing_flips(name: str):
    """ReLUs and maxima are decided by the float64 pass; how many float32 would decide otherwise is printed."""
    examples = 16
    exact = problem(name, examples=examples)
    x = 0.05 * torch.randn(exact.d, generator=torch.Generator().manual_seed(0))
    exact.flat.load(x.double())
    inputs, targets = exact.fetch(torch.arange(examples))
    outputs, decisions = decided(exact.flat.module, inputs.float().double())
    wanted = torch.autograd.grad(F.cross_entropy(outputs, targets), list(exact.flat.module.parameters()))

    masked = re.sub(r"(Relu|MaxPool)<", numbered(), plan(exact.flat.module))
    source = Source(HERE / "masked.cpp", (native.FILE, *SOURCES), WITH_LAYERS)
    library = source.library({"REAL": "float", "MASKED": masked}, lambda path, _: ctypes.CDLL(str(path)))
    found, laid = torch.empty_like(x), inputs.float().contiguous(memory_format=torch.channels_last)
    given = (ctypes.c_void_p * len(decisions))(*(mask.data_ptr() for mask in decisions))
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, found, laid, targets)]
    library.masked.restype = ctypes.c_long
    flips = library.masked(*pointers, ctypes.c_long(examples), given, len(decisions))

    pairs = list(zip(exact.flat.views(found), wanted, strict=True))
    whole = math.sqrt(sum(float((a - b).norm()) ** 2 for a, b in pairs) / sum(float(b.norm()) ** 2 for _, b in pairs))
    worst = max(error(a, b) for a, b in pairs)
    print(f"{name}: {whole:.1e} of the norm, {worst:.1e} of a tensor's at most,", end=" ")
    print(f"{flips} of {sum(mask.numel() for mask in decisions)} decisions flip")
    assert whole <= EXACT


@pytest.mark.compiler
@pytest.mark.usefixtures("hastily")
def test_a_build_says_by_itself_which_form_it_is():
    """A run that was begun by direct sums goes on by them."""
    case = problem("crossbow_lenet", dtype=torch.float32)
    fewest, direct = Native(case), Native(case, direct=True)
    assert fewest.library.winograd
    assert not direct.library.winograd
    for made in (fewest, direct):
        assert Native(case, made.library.build).library is made.library


@pytest.mark.slow
@pytest.mark.compiler
def test_trainings_by_both_forms_end_within_the_spread_of_seeds(tmp_path: Path):
    """2,000 updates on CIFAR-10 from three seeds: rounding moves the end no further than another seed does."""
    settings = {**isgd.CIFAR, "algorithm": {"name": "sgd"}, "batch": 20, "updates": 2000, "evaluate": {"every": 2000}}
    ends: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for seed in range(3):
        spec = RunSpec("train", settings, seed)
        execution = choose(spec, "cpu", 1) | {"path": "native"}
        apply(execution)
        network = random_classification(settings["model"], 1, execution, execution["channels_last"])
        for direct, found in ends.items():
            build = Native(network, direct=direct).library.build
            folder = tmp_path / f"{seed}-{build}"  # of the checkpoint
            folder.mkdir()
            results = train(spec, Context(folder, {**execution, "build": build})).results
            found.append((results["test_loss"], results["test_error"]))
            print(f"seed {seed}, direct sums {direct}: loss {found[-1][0]:.4f}, error {found[-1][1]:.4f}", flush=True)
    for at in range(2):
        direct, fewest = ([end[at] for end in ends[form]] for form in (True, False))
        spread = max(direct) - min(direct)
        assert all(abs(a - b) <= spread for a, b in zip(direct, fewest, strict=True))
