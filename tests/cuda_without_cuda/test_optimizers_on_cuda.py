"""The optimisers for one's own training update on a GPU that is not there: one device, and nobody waits for it.

Not seen here: backward, which needs a driver and is replaced by gradients of the right shapes; the fused kernel, of
which only the devices of its tensors are looked at; sums over processes; ``average()``, as tensors without values
cannot be copied deep; and what a library does inside an operation.
"""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from fake_cuda import Waits, moved
from torch import Tensor, nn

from suite.communication.group import Group
from suite.optim import EASGD, ISGD, SMA, DelayedSGD, Softsync

pytestmark = [
    pytest.mark.usefixtures("gpu"),
    pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor:UserWarning"),
]

OPTIMISERS = {
    "sma": (SMA, {"learners": 2}),
    "sma, 1 learner": (SMA, {"learners": 1, "alpha": 0.1}),
    "sma, 2 devices of 2": (SMA, {"learners": 4, "devices": 2}),
    "easgd": (EASGD, {"learners": 2, "alpha": 0.1}),
    "synchronous": (DelayedSGD, {}),
    "delayed": (DelayedSGD, {"delay": 2}),
    "layer-wise": (DelayedSGD, {"layerwise": True}),
    "softsync": (Softsync, {"n": 2, "learners": 4}),
    "softsync, per gradient": (Softsync, {"n": 2, "learners": 4, "per_gradient": True}),
    "hardsync": (Softsync, {"n": 0, "learners": 2}),
    "isgd": (ISGD, {"batches": 8, "zeta": 0.1}),
}
STEPS = 9  # batches before the watched ones, and as many of these


class Reads(Waits):
    """Counts the numbers read from the device instead of refusing them; all numbers read are 1, the host's too."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default:
            self.count += args[0].device.type == "cuda"
            return 1.0 if args[0].is_floating_point() else 0
        if func is torch.ops.aten._fused_sgd_.default:  # which has no form without values
            assert {part.device.type for parts in args[:3] for part in parts} == {"cuda"}
            return None
        return super().__torch_dispatch__(func, types, args, kwargs)


def network() -> nn.Module:
    return moved(nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.Flatten(), nn.Linear(96, 3)))


def steps(opt, module: nn.Module, in_place: bool = False) -> None:
    def closure() -> Tensor:
        opt.zero_grad(set_to_none=not in_place)
        for place, parameter in enumerate(module.parameters()):
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            if getattr(opt, "_departures", None):
                opt._departures.filled(place)
        return torch.zeros((), device="cuda")

    for _ in range(STEPS):
        opt.step(closure)


def made(name: str, **more):
    kind, settings = OPTIMISERS[name]
    module = network()
    group = Group(dist.HashStore(), 0, 1, 1.0, "gloo")
    return kind(module, lr=0.1, momentum=0.9, weight_decay=1e-3, group=group, **settings, **more), module


@pytest.mark.parametrize(
    ("name", "fused"),
    [
        *((name, True) for name in OPTIMISERS if name != "isgd"),
        ("sma", False),
        ("delayed", False),
        ("softsync", False),
    ],
)
def test_updates_stay_on_the_device_and_wait_for_nothing(name: str, fused: bool):
    opt, module = made(name, fused=fused)
    with Reads() as reads:
        steps(opt, module)
        steps(opt, module, in_place=True)
        if name == "delayed":
            opt.finish()
    assert reads.count == 0
    assert opt.t > 3
    model = opt.core.algorithm.model(opt.core_state)
    assert {value.device.type for value in (*module.parameters(), model)} == {"cuda"}


def test_isgd_reads_the_loss_of_each_batch_and_nothing_else():
    """Which decides whether the closure is called again."""
    opt, module = made("isgd")
    with Reads() as reads:
        steps(opt, module)
    assert reads.count == STEPS == opt.t


def test_a_read_is_noticed():
    opt, module = made("sma")
    opt.register_step_post_hook(lambda *_: module[0].weight.sum().item())
    with Reads() as reads:
        steps(opt, module)
    assert reads.count == STEPS
