"""Batch norm and residual blocks in machine code: whole updates, running statistics, rounding."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
import torch
from engine_cases import points, residual
from test_native import of
from test_winograd import EXACT, error, native_layer
from torch.nn import functional as F

from reference_impls.crossbow import SMA
from reference_impls.inverse_law import SGD
from suite.communication.collectives import Alone, Local
from suite.data.order import FixedCycle
from suite.experiment import Context
from suite.models.network import Chain
from suite.spec import RunSpec
from suite.training.build import Setup
from suite.training.gradients.backend import AutogradGradients
from suite.training.gradients.native import Native, NativeError, NativeStep
from suite.training.gradients.native_check import decide
from suite.training.loop import TrainingRun, rounds
from suite.training.numerics import choose
from suite.training.optimizers import CaffeSGD, TorchSGD

UPDATES = 6


def session(kind: type, learners: int) -> TrainingRun:
    """Plain SGD in single precision, which a step makes whole, or averaged learners in double."""
    case = of(residual(), torch.float32 if learners == 1 else torch.float64)
    averaged, alone = SMA(TorchSGD(0.9), Local(learners)), SGD(optimizer=CaffeSGD(0.9), collective=Alone())
    algorithm = averaged if learners > 1 else alone
    settings = {"batch": 4, "workers": learners, "rate": 0.01, "updates": UPDATES, "evaluate": {"every": UPDATES}}
    spec = RunSpec("train", {"model": {"name": "residual"}, **settings})
    made = Setup(case, case.flat.point(), FixedCycle(40, 4, 0), algorithm, case.inputs, case.targets)
    return TrainingRun(spec, Context(Path(), choose(spec, "cpu", 1)), made, kind(case))


@pytest.mark.compiler
@pytest.mark.usefixtures("hastily")
@pytest.mark.parametrize(("learners", "closeness"), [(1, 1e-4), (4, 1e-10)])
def test_trainings_and_what_they_test_are_autograds(learners, closeness):
    """Weights, each learner's running statistics, and the test of their average by these."""
    found = []
    for kind in (AutogradGradients, Native):
        one = session(kind, learners)
        assert isinstance(one.step, NativeStep) is (learners == 1 and kind is Native)
        for turn, _ in zip(rounds(learners), range(UPDATES), strict=False):
            one.update(turn)
        x = one.model()
        found.append((x, one.buffers, torch.tensor(list(one.on_images(x, one.buffers.mean(0)).values()))))
        assert float((x - one.made.x0).norm()) > 0.01 * float(x.norm())
        assert one.buffers.shape == (learners, one.made.problem.flat.q)
    for ours, theirs in zip(*found, strict=True):
        assert float((ours - theirs).norm()) <= closeness * float(theirs.norm())


@pytest.mark.compiler
@pytest.mark.usefixtures("hastily")
@pytest.mark.parametrize("off", [0.0, 100.0])
def test_a_gradient_and_statistics_are_as_exact_as_float32_allows(off):
    """Where rounding decides no ReLU, with means that are far from 0 beside their deviations, too."""
    exact, case = (of(residual(), dtype) for dtype in (torch.float64, torch.float32))
    x = points(exact, 1)
    decide(exact.flat, x[0])
    exact.flat.named(x[0])["conv1.weight"].mul_(1 + off)
    x = x.float()
    wanted = AutogradGradients(exact)(x.double(), exact.b0()[None], [exact.fetch(torch.arange(11))])
    ours = Native(case)(x, case.b0()[None], [case.fetch(torch.arange(11))])
    errors = [float((a - b).norm() / b.norm()) for a, b in zip(ours, wanted, strict=True)]
    print(" ".join(f"{error:.1e}" for error in errors))
    assert max(errors) <= EXACT


# Batch norm of narrow and wide maps, then a convolution and a projection that skip every other pixel.
LAYERS = [
    *(f"Norm<64, 48, std::ratio<1, 100000>, std::ratio<1, 10>, {relu}>" for relu in ("false", "true")),
    "Norm<256, 16, std::ratio<1, 100000>, std::ratio<1, 10>, true>",
    "Pictures<Direct<16, 16, 16, 32, 3, 2, 1, false>>",
    "Pictures<Direct<16, 16, 32, 64, 1, 2, 0, false>>",
    "Pictures<Direct<7, 7, 16, 32, 3, 2, 1, false>>",
]


@pytest.mark.compiler
@pytest.mark.parametrize("which", range(3), ids=LAYERS[:3])
def test_batch_norm_alone_is_as_exact_as_float32_allows(which):
    """Output, running statistics, and gradients of input, weights and biases, for means that are off 0."""
    pixels, channels = (int(number) for number in LAYERS[which].removeprefix("Norm<").split(",")[:2])
    g = torch.Generator().manual_seed(which)
    side = math.isqrt(pixels)
    x = 2 * torch.randn(13, channels, side, side, generator=g) + torch.linspace(-4, 4, channels)[:, None, None]
    w, dy = torch.randn(2, channels, generator=g), torch.randn(x.shape, generator=g)
    running = torch.rand(2, channels, generator=g)
    leaves, statistics = [t.double().requires_grad_() for t in (x, *w)], running.double()
    y = F.batch_norm(leaves[0], *statistics, *leaves[1:], training=True, momentum=0.1, eps=1e-5)
    dy[y.abs() < 1e-4] = 0  # where rounding may decide the ReLU
    y = y.relu() if "true" in LAYERS[which] else y
    dx, *dw = torch.autograd.grad(y, leaves, dy.double())
    found = native_layer(LAYERS, which, w.reshape(-1), x, dy, running)
    ours = (found[0], running[0], running[1], found[1], *found[2].view(2, channels))
    errors = [error(a, b) for a, b in zip(ours, (y.detach(), *statistics, dx, *dw), strict=True)]
    print(LAYERS[which], " ".join(f"{e:.1e}" for e in errors))
    assert max(errors) <= EXACT


@pytest.mark.compiler
@pytest.mark.parametrize("which", range(3, 6), ids=LAYERS[3:])
def test_a_strided_convolution_alone_is_as_exact_as_float32_allows(which):
    height, _, channels, out, kernel, stride, padding = (int(n) for n in re.findall(r"\d+", LAYERS[which]))
    g = torch.Generator().manual_seed(which)
    x, weights = (
        torch.randn(shape, generator=g) for shape in ((5, channels, height, height), (out, channels, kernel, kernel))
    )
    leaves = [t.double().requires_grad_() for t in (x, weights)]
    y = F.conv2d(*leaves, stride=stride, padding=padding)
    dy = torch.randn(y.shape, generator=g)
    dx, dw = torch.autograd.grad(y, leaves, dy.double())
    found = native_layer(LAYERS, which, weights.permute(0, 2, 3, 1).reshape(-1), x, dy, x)
    ours = (*found[:2], found[2].view(out, kernel, kernel, channels).permute(0, 3, 1, 2))
    errors = [error(a, b) for a, b in zip(ours, (y.detach(), dx, dw), strict=True)]
    print(LAYERS[which], " ".join(f"{e:.1e}" for e in errors))
    assert max(errors) <= EXACT


def test_what_has_no_native_form_beside_batch_norm():
    layers = [*residual().named_children()]
    dropped = Chain([*layers[:-1], ("drop", torch.nn.Dropout()), layers[-1]], (3, 8, 8), 5)
    with pytest.raises(NativeError, match="dropout beside batch norm"):
        Native(of(dropped))
