"""Batch norm and residual blocks in machine code: whole updates, running statistics, rounding."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from engine_cases import points, residual
from test_native import of

from reference_impls.crossbow import SMA
from reference_impls.inverse_law import SGD
from suite.communication.collectives import Alone, Local
from suite.data.order import FixedCycle
from suite.experiment import Context
from suite.models.layers import Linear
from suite.models.network import Chain
from suite.spec import RunSpec
from suite.training.build import Setup
from suite.training.gradients.backend import AutogradGradients
from suite.training.gradients.native import Native, NativeError, NativeStep
from suite.training.gradients.native_check import decide
from suite.training.loop import TrainingRun, rounds
from suite.training.numerics import choose
from suite.training.optimizers import CaffeSGD, TorchSGD

EXACT = 1e-5  # largest error of a gradient against float64, as a share of the norm
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


def test_what_has_no_native_form_beside_batch_norm():
    layers = [*residual().named_children()]
    dropped = Chain([*layers[:-1], ("drop", torch.nn.Dropout()), layers[-1]], (3, 8, 8), 5)
    with pytest.raises(NativeError, match="dropout beside batch norm"):
        Native(of(dropped))
    assert isinstance(layers[-1][1], Linear)
