"""Every optimiser equals the reference implementation it is the face of, over 18 updates with batch norm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import optim_bodies as bodies
import pytest
import torch
from door import DECAY, METHODS, MOMENTUM, RATE, UPDATES, Method, Reference, network, train, weights

from suite.communication.launch import spawn
from suite.optim import ISGD, DelayedSGD


def over(method: Method, processes: int) -> Method:
    """The method as all processes together see it: devices are counted in each."""
    devices = getattr(method.algorithm, "keywords", {}).get("devices")
    if devices is None:
        return method
    return method._replace(algorithm=partial(method.algorithm, devices=processes * devices))


@pytest.mark.parametrize(
    ("dtype", "fused"), [(torch.float64, False), (torch.float32, True)], ids=["figures' solver", "fused solver"]
)
@pytest.mark.parametrize("name", METHODS)
def test_one_process_equals_the_reference_to_the_bit(name: str, dtype: torch.dtype, fused: bool):
    method = METHODS[name]
    module = network(dtype)
    opt = method.make(module, fused=fused)
    train(opt, module)
    if method.drains:
        opt.finish()
    solver = {"fused": fused and opt.core.in_place}  # an update that makes new vectors has the figures' solver
    assert torch.equal(weights(opt.average()), Reference(method, dtype, method.learners, **solver).train())
    if isinstance(opt, ISGD):
        assert opt.t > UPDATES + 5, "no batch was trained on again"


class _Alone(NamedTuple):
    """What ``train`` asks of an optimiser, for torch's own."""

    size: int = 1
    rank: int = 0


def test_one_process_without_delay_has_the_bits_of_torchs_fused_sgd():
    """The gradient is stepped from where backward left it, tensor by tensor, as torch does."""
    ends = []
    settings = {"lr": RATE, "momentum": MOMENTUM, "weight_decay": DECAY}
    for make in (DelayedSGD, lambda module, **given: torch.optim.SGD(module.parameters(), fused=True, **given)):
        module = network()
        opt = make(module, **settings)
        opt.group, opt.learners = _Alone() if not isinstance(opt, DelayedSGD) else opt.group, 1
        train(opt, module)
        ends.append(weights(module))
    assert torch.equal(*ends)


def test_a_gradient_in_another_layout_is_gathered():
    """Channels-last gradients of row-major weights, and a parameter without one, give the bits of plain ones."""
    ends = []
    for last in (False, True):
        module = network()
        opt = DelayedSGD(module, lr=RATE, momentum=MOMENTUM)
        for number in range(5):
            draw = torch.Generator().manual_seed(number)
            for parameter in module.parameters():
                grad = torch.randn(parameter.shape, generator=draw)
                kept = {"memory_format": torch.channels_last} if last and grad.dim() == 4 else {}
                parameter.grad = grad.contiguous(**kept)
            if number == 3:
                module[-1].bias.grad = None if last else torch.zeros_like(module[-1].bias)
            opt.step()
        ends.append(weights(module))
    assert torch.equal(*ends)


OF_THREE = (
    "SMA, tau 3",
    "SMA, 2 devices of 2",
    "DiLoCo",
    "ISGD",
    "DelayedSGD, layer-wise in buckets",
    "DelayedSGD, delay 3",
)


ALONE = [name for name, method in METHODS.items() if method.learners == 1]  # one learner a process
SEVERAL = [name for name in METHODS if name not in ALONE]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("workers", "dtype", "names"),
    [(2, "float32", ALONE), (2, "float64", SEVERAL), (3, "float64", OF_THREE)],
    ids=["one learner each", "several", "three processes"],
)
def test_processes_equal_the_reference(workers: int, dtype: str, names: Sequence[str]):
    """Two learners to the bit; sums of more differ in order, and in float32 a processor's order can turn a ReLU."""
    said = spawn(bodies.equal_to_reference, workers, list(names), dtype, timeout=120)
    for name in names:
        method = METHODS[name]
        learners = workers * method.learners
        reference = Reference(over(method, workers), getattr(torch, dtype), learners).train()
        for worker in said:
            values = torch.tensor(worker[name], dtype=reference.dtype)
            if learners == 2:
                assert torch.equal(values, reference), name
            else:
                assert (values - reference).abs().max() < 1e-12, name
