"""Convolutions by fewer multiplications are as exact as float32 allows, alone and in a whole gradient."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
import torch
from engine_cases import problem
from test_native import of
from torch import Tensor, nn
from torch.nn import functional as F

from paper_figures.isgd import settings as isgd
from suite.experiment import Context
from suite.models.initialisers import Xavier
from suite.models.layers import Conv2d, ResidualBlock
from suite.models.network import Chain
from suite.spec import RunSpec
from suite.training.build import random_classification
from suite.training.gradients import native
from suite.training.gradients.backend import AutogradGradients
from suite.training.gradients.native import Native, plan
from suite.training.loop import train
from suite.training.machine_code import FLAGS, Source
from suite.training.numerics import apply, choose

HERE = Path(__file__).parent
# -O1 compiles in half the time, and rounds as more does: no flag lets the compiler reorder a sum.
WITH_LAYERS = (*FLAGS, "-O1", f"-I{native.FILE.parent}")
EXACT = 1e-5  # largest error against float64, as a share of the norm

# Height and width, channels in and out, kernel, padding: those of the networks, and tiles that the output cuts.
SHAPES = [(16, 16, 32, 32, 5, 2), (2, 2, 256, 128, 3, 1), (13, 10, 16, 48, 5, 0), (7, 9, 48, 16, 3, 1)]
SOURCES = tuple(native.SOURCE.headers)
SLOW = [("vgg_medium", 16), ("crossbow_resnet32", 64)]  # networks whose code takes long to compile, and examples


PICTURES = ["Pictures<Winograd<{}, {}, {}, {}, {}, {}>>".format(*shape) for shape in SHAPES]


@cache
def layers(numbers: str, *written: str) -> ctypes.CDLL:
    """Layers of a whole batch, each alone."""
    source = Source(HERE / "alone.cpp", (native.FILE, *SOURCES), WITH_LAYERS)
    return source.library({"REAL": numbers, "LAYERS": ", ".join(written)}, lambda path, _: ctypes.CDLL(str(path)))


def native_layer(
    written: list[str], which: int, w: Tensor, x: Tensor, dy: Tensor, beside: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Output and gradients of input and of parameters w [n] by a native layer; what lies beside them is advanced."""
    laid = [t.contiguous(memory_format=torch.channels_last) for t in (x, dy)]
    y, dx, dw = torch.empty_like(laid[1]), torch.empty_like(laid[0]), torch.empty_like(w)
    numbers = "float" if x.dtype == torch.float32 else "double"
    pointers = (ctypes.c_void_p(t.data_ptr()) for t in (w, *laid, y, dx, dw, beside))
    layers(numbers, *written).alone(which, ctypes.c_long(len(x)), *pointers)
    return y, dx, dw


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
    flat = torch.cat([weights.permute(0, 2, 3, 1).reshape(-1), bias])
    y, dx, dw = native_layer(PICTURES, which, flat, x, dy, bias)
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
    """Outputs, and the decisions of each ReLU and maximum, channels-last [examples, outputs], as plans name them."""
    found: list[Tensor] = []

    def noted(mask: Tensor) -> Tensor:
        laid = mask.permute(0, 2, 3, 1) if mask.dim() == 4 else mask
        return laid.reshape(len(x), -1).int().contiguous()

    for layer in in_native_order(module):
        if isinstance(layer, nn.MaxPool2d):
            x, places = F.max_pool2d(
                x, layer.kernel_size, layer.stride, layer.padding, ceil_mode=layer.ceil_mode, return_indices=True
            )
            found.append(noted(places))
        elif isinstance(layer, ResidualBlock):
            branch, within = decided(layer.branch, x)
            x = branch + layer.shortcut(x)
            found += [noted(x > 0), *within]
            x = x.relu()
        else:
            if isinstance(layer, nn.ReLU):
                found.append(noted(x > 0))
            x = layer(x)
    return x, found


def masked(written: str) -> str:
    """A plan with the masked form of each ReLU and maximum; one that batch norm makes itself stands after it."""
    count = iter(range(99))

    def numbered(match: re.Match[str]) -> str:
        if match["kind"]:
            return f"Masked{match['kind']}<{next(count)}, "
        numbers = int(match["pixels"]) * int(match["channels"])
        return f"{match['norm']}>, Pictures<MaskedRelu<{next(count)}, {numbers}>>"

    norm = r"(?P<norm>Norm<(?P<pixels>\d+), (?P<channels>\d+), [^>]*>, [^>]*>), true>"
    return re.sub(rf"(?P<kind>Relu|MaxPool|Residual)<|{norm}", numbered, written)


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("name", "examples"), [("caffe_cifar_full", 16), *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_a_whole_gradient_is_as_exact_where_nothing_flips(name: str, examples: int):
    """ReLUs and maxima are decided by the float64 pass; how many float32 would decide otherwise is printed."""
    exact = problem(name, examples=examples)
    x = 0.05 * torch.randn(exact.d, generator=torch.Generator().manual_seed(0))
    if exact.flat.q:  # batch norm is no more than its bias at such weights
        x = exact.flat.point().float()
    exact.flat.load(x.double())
    inputs, targets = exact.fetch(torch.arange(examples))
    outputs, decisions = decided(exact.flat.module, inputs.float().double())
    wanted = torch.autograd.grad(F.cross_entropy(outputs, targets), list(exact.flat.module.parameters()))

    source = Source(HERE / "masked.cpp", (native.FILE, *SOURCES), WITH_LAYERS)
    plans = {"REAL": "float", "MASKED": masked(plan(exact.flat.module))}
    library = source.library(plans, lambda path, _: ctypes.CDLL(str(path)))
    found, laid = torch.empty_like(x), inputs.float().contiguous(memory_format=torch.channels_last)
    running = exact.b0().float()
    given = (ctypes.c_void_p * len(decisions))(*(mask.data_ptr() for mask in decisions))
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, found, laid, targets, running)]
    library.masked.restype = ctypes.c_long
    flips = library.masked(*pointers, ctypes.c_long(examples), given, len(decisions))

    single = problem(name, examples=examples, dtype=torch.float32)
    _, rounded, _ = AutogradGradients(single)(x[None], single.b0()[None], [single.fetch(torch.arange(examples))])
    whole, autograds = (apart(exact.flat.views(gradient), wanted) for gradient in (found, rounded[0]))
    worst = max(error(a, b) for a, b in zip(exact.flat.views(found), wanted, strict=True))
    print(f"{name}: {whole:.1e} of the norm, {worst:.1e} of a tensor's at most,", end=" ")
    print(f"{flips} of {sum(mask.numel() for mask in decisions)} decisions flip; autograd in float32 {autograds:.1e}")
    assert whole <= EXACT


def apart(ours: Sequence[Tensor], exact: Sequence[Tensor]) -> float:
    """The norm of a difference as a share of the exact one, over all tensors."""
    pairs = list(zip(ours, exact, strict=True))
    return math.sqrt(sum(float((a - b).norm()) ** 2 for a, b in pairs) / sum(float(b.norm()) ** 2 for _, b in pairs))


@pytest.mark.compiler
@pytest.mark.usefixtures("hastily")
def test_a_build_says_by_itself_which_form_it_is():
    """A run that was begun by direct sums goes on by them."""
    layers = [("conv", Conv2d(16, 16, 3, weight=Xavier(), bias=Xavier())), ("flatten", nn.Flatten())]
    case = of(Chain(layers, (16, 6, 6), 256))
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
