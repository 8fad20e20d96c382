"""One worker's plain SGD in place: the general update to a few roundings, and for nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from engine_cases import problem

from reference_impls.inverse_law import SGD
from reference_impls.isgd import ISGD
from reference_impls.rudra import Softsync
from suite.communication.collectives import Alone, in_process
from suite.data.order import FixedCycle
from suite.experiment import Context
from suite.spec import RunSpec
from suite.training.build import Setup
from suite.training.gradients import native
from suite.training.gradients.backend import ForeachStep, laid_as
from suite.training.gradients.native import NativeStep
from suite.training.gradients.paths import backend
from suite.training.loop import TrainingRun, rounds
from suite.training.numerics import choose
from suite.training.optimizers import Adam, CaffeSGD, TorchSGD, in_place

UPDATES, RATE = 20, 0.01


def session(
    name: str, path: str, rule: type, *, multipliers: bool, channels_last: bool = True, **solver
) -> TrainingRun:
    case = problem(name, dtype=torch.float32, channels_last=channels_last)
    if multipliers:  # of rate and decay, and different along the network
        solver |= {
            "lr_scale": case.flat.scale({case.flat.names[1]: 2.0, case.flat.names[-1]: 0.5}),
            "decay_scale": case.flat.scale({case.flat.names[-1]: 0.0}),
        }
    settings = {"rate": RATE, "drops": ((UPDATES // 2, 0.5),), "updates": UPDATES, "evaluate": {"every": UPDATES}}
    spec = RunSpec("train", {"model": {"name": name}, "batch": 4, **settings})
    order = FixedCycle(len(case.targets), 4, 0)
    algorithm = SGD(optimizer=rule(**solver), collective=Alone())
    made = Setup(case, case.flat.point(), order, algorithm, case.inputs, case.targets)
    # Winograd's rounding makes a maximum flip in some of 20 updates, after which no two trainings stay together.
    gradients = native.Native(case, direct=True) if path == "native" else backend(path, case)
    return TrainingRun(spec, Context(Path(), choose(spec, "cpu", 1) | {"path": path}), made, gradients)


def trained(one: TrainingRun) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    for turn, _ in zip(rounds(1), range(UPDATES), strict=False):
        one.update(turn)
    one.recorder.settle()
    return one.state.x, torch.tensor(one.recorder.updates["loss"]), one.buffers


RULES = [(TorchSGD, 0.9, False), (CaffeSGD, 0.9, True), (TorchSGD, 0.0, True), (CaffeSGD, 0.0, False)]
KINDS = [
    ("digits_lenet", "looped", True, ForeachStep),
    ("digits_lenet", "native", True, NativeStep),
    ("digits_lenet", "looped", False, ForeachStep),
    ("tiny_bn", "looped", True, ForeachStep),
    ("crossbow_lenet", "native", True, NativeStep),  # drops out
]


@pytest.mark.usefixtures("hastily")
@pytest.mark.parametrize(
    ("name", "path", "channels_last", "kind", "rule", "momentum", "multipliers"),
    [
        pytest.param(*kind, *rule, marks=pytest.mark.compiler if kind[1] == "native" else ())
        for place, kind in enumerate(KINDS)
        for rule in (RULES if place < 2 else RULES[1:2])
    ],
)
def test_it_is_the_general_update_to_a_few_roundings(name, path, channels_last, kind, rule, momentum, multipliers):
    options = {"momentum": momentum, "decay": 0.01, "multipliers": multipliers, "channels_last": channels_last}
    ours, general = (session(name, path, rule, **options) for _ in range(2))
    assert type(ours.step) is kind
    general.step, general.algorithm = None, general.made.algorithm  # the pure solver
    at = ours.state.x.data_ptr()
    found, expected = trained(ours), trained(general)
    assert ours.state.x.data_ptr() == at
    scale = float(general.made.x0.abs().max())
    torch.testing.assert_close(found[0], expected[0], rtol=0, atol=2e-5 * scale)
    torch.testing.assert_close(found[1], expected[1], rtol=2e-5, atol=0)
    torch.testing.assert_close(found[2], expected[2], rtol=1e-4, atol=1e-6)
    moved = float((found[0] - general.made.x0).abs().max())
    assert moved > 100 * 2e-5 * scale  # the bound is small beside what was learnt


@pytest.mark.compiler
@pytest.mark.usefixtures("hastily")
@pytest.mark.parametrize("momentum", [0.9, 0.0])
def test_threads_that_share_a_batch_step_as_one_does(monkeypatch, momentum):
    """One must not move weights that another has yet to read."""
    found = []
    for threads in (1, 2, 4):
        monkeypatch.setattr(native, "threads", lambda examples, threads=threads: threads)
        found.append(trained(session("digits_lenet", "native", CaffeSGD, multipliers=True, momentum=momentum)))
    scale = float(found[0][0].abs().max())
    for weights, losses, _ in found[1:]:
        torch.testing.assert_close(weights, found[0][0], rtol=0, atol=2e-5 * scale)
        torch.testing.assert_close(losses, found[0][1], rtol=2e-5, atol=0)


def test_a_state_that_was_loaded_is_the_one_advanced():
    one = session("digits_lenet", "looped", TorchSGD, multipliers=False, momentum=0.9)
    turns = rounds(1)
    for _ in range(4):
        one.state = one.state._replace(x=one.state.x.clone(), memory=one.state.memory.clone())
        before = one.state.x.clone()
        one.update(next(turns))
        assert not torch.equal(one.state.x, before)


def test_only_plain_sgd_of_one_worker_in_single_precision_is_advanced_so():
    case, double = problem("digits_lenet", dtype=torch.float32), problem("digits_lenet")
    looped, device, solver = backend("looped", case), torch.device("cpu"), TorchSGD(0.9)
    sgd = in_place(SGD(optimizer=solver, collective=Alone()), device)
    assert looped.step(sgd) is not None
    assert backend("vectorised", case).step(sgd) is None
    assert backend("looped", double).step(sgd) is None
    others = (
        SGD(optimizer=solver, collective=in_process(2)),
        SGD(optimizer=Adam(), collective=Alone()),
        ISGD(optimizer=solver, collective=Alone(), batches=3, zeta=0.1),
        Softsync(optimizer=solver, collective=Alone(), workers=1),
    )
    for other in others:
        assert looped.step(in_place(other, device)) is None


def test_gradients_lie_as_their_parameters_do():
    part = torch.zeros(4, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    grad = torch.randn(4, 3, 2, 2)
    laid = laid_as(part, grad)
    assert laid.stride() == part.stride()
    assert torch.equal(laid, grad)
    assert laid_as(part, laid) is laid
    assert torch.equal(laid_as(part, None), part)
