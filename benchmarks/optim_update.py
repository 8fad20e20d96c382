"""Each optimiser of ``suite.optim`` beside ``torch.optim.SGD(fused=True)``, in turns: whole updates, and steps alone.

``python -m benchmarks.optim_update [ROUNDS]`` prints the median ratio of rounds, with its quartiles, one thread:
whole updates on Caffe's LeNet with 16 pictures (zero_grad, forward, backward, ``clip_grad_norm_``, step and a step of
one of torch's schedulers), then ``step`` alone on torchvision's ResNet-18, with gradients that lie there, and the
memory that the optimiser has beyond the module and its gradients, in vectors of all parameters (P). A learner's is
what another one of them adds. Seconds are those of the thread, so that other processes count less.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from benchmarks.measuring import Alternation, Side, timed
from suite.models import build, initialise
from suite.optim import EASGD, ISGD, SMA, DelayedSGD, LocalSGD, Softsync

BATCH, RATE, MOMENTUM = 16, 1e-3, 0.9
CLIP, DECAY = 1.0, 0.9999  # norm of a gradient, factor of the rate at every update
RIVAL = "torch.optim.SGD(fused=True)"
MAKERS: dict[str, Callable[..., Any]] = {
    RIVAL: lambda module, **o: torch.optim.SGD(module.parameters(), fused=True, **o),
    "SMA(learners=1, alpha=0.1)": lambda module, **o: SMA(module, learners=1, alpha=0.1, **o),
    "SMA(learners=1, alpha=0.1, tau=4)": lambda module, **o: SMA(module, learners=1, alpha=0.1, tau=4, **o),
    "SMA(learners=4), per batch": lambda module, **o: SMA(module, learners=4, **o),
    "EASGD(learners=1, alpha=0.1)": lambda module, **o: EASGD(module, learners=1, alpha=0.1, **o),
    "ISGD": lambda module, **o: ISGD(module, batches=100, zeta=0.01, stop=0, **o),
    "DelayedSGD": lambda module, **o: DelayedSGD(module, **o),
    "DelayedSGD(delay=1)": lambda module, **o: DelayedSGD(module, delay=1, **o),
    "Softsync(learners=1)": lambda module, **o: Softsync(module, learners=1, **o),
    "Softsync(learners=4), per batch": lambda module, **o: Softsync(module, learners=4, **o),
    "LocalSGD(learners=4), per batch": lambda module, **o: LocalSGD(module, learners=4, **o),
}
CLOSED = ("ISGD",)  # that need the loss of an update, and so have no step alone


def updates(make: Callable[..., Any]) -> Callable[[int], None]:
    """Makes so many updates of a LeNet of its own."""
    module = build("caffe_lenet")
    initialise(module, 0)
    opt = make(module, lr=RATE, momentum=MOMENTUM)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(opt, DECAY)
    inputs, targets = torch.rand(BATCH, 1, 28, 28), torch.randint(10, (BATCH,))

    def closure() -> torch.Tensor:
        opt.zero_grad()
        loss = F.cross_entropy(module(inputs), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), CLIP)
        return loss

    def run(count: int) -> None:
        for _ in range(count):
            opt.step(closure)
            scheduler.step()

    return run


ROUND = 4  # steps that are measured together, so that each of four learners has one


def resnet(make: Callable[..., Any]) -> tuple[torch.nn.Module, Any]:
    """A ResNet-18 of its own with gradients, and its optimiser."""
    from torchvision.models import resnet18

    module = resnet18(num_classes=10)
    opt = make(module, lr=RATE, momentum=MOMENTUM)
    for parameter in module.parameters():
        parameter.grad = torch.full_like(parameter, 1e-4)
    return module, opt


def steps(make: Callable[..., Any]) -> Callable[[int], None]:
    """Makes so many rounds of steps, with the same gradients."""
    _, opt = resnet(make)

    def run(count: int) -> None:
        for _ in range(count * ROUND):
            opt.step()

    return run


def memory(make: Callable[..., Any]) -> float:
    """Tensors on the CPU after some steps that neither a module nor its gradients have, in vectors [d]."""
    gc.collect()
    before = {tensor.untyped_storage().data_ptr() for tensor in _tensors()}
    module, opt = resnet(make)
    for _ in range(2 * ROUND):
        opt.step()
    gc.collect()
    sizes = {}
    for tensor in _tensors():
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in before:
            sizes[storage.data_ptr()] = storage.nbytes()
    module_s = sum(tensor.numel() for tensor in module.parameters()) * 4
    return (sum(sizes.values()) - 2 * module_s) / module_s


def _tensors() -> list[torch.Tensor]:
    return [found for found in gc.get_objects() if issubclass(type(found), torch.Tensor)]


def main(rounds: int) -> None:
    torch.set_num_threads(1)
    compare("whole updates of LeNet", {name: Side(updates(make)) for name, make in MAKERS.items()}, rounds)
    alone = {name: make for name, make in MAKERS.items() if name not in CLOSED}
    compare("steps alone, ResNet-18", {name: Side(steps(make)) for name, make in alone.items()}, max(3, rounds // 3))
    print("memory beyond the module and its gradients")
    for name, make in alone.items():
        print(f"{memory(make):6.2f} P  {name}")


def compare(title: str, sides: dict[str, Side], rounds: int) -> None:
    """Print the ratios of all sides to the rival."""
    print(title)
    alternation = Alternation(sides, timed)
    alternation.warm(4, 0.2, lambda taken: [])
    for _ in range(rounds):
        alternation.round()
    busy = {name: np.array(seconds, dtype=float) for name, seconds in alternation.processor.items()}
    print(
        f"{rounds} rounds of {alternation.updates} updates; {RIVAL}: {np.median(busy[RIVAL]) * 1e3:.2f} ms an update"
    )
    for name, seconds in busy.items():
        low, middle, high = np.quantile(seconds / busy[RIVAL], [0.25, 0.5, 0.75])
        print(f"{middle:6.3f} times ({low:.3f} to {high:.3f})  {name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rounds", type=int, nargs="?", default=30, help="of turns, each side once in every one")
    main(parser.parse_args().rounds)
