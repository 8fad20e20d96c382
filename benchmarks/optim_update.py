"""A whole update by each optimiser of ``suite.optim`` beside one by ``torch.optim.SGD(fused=True)``, in turns.

``python -m benchmarks.optim_update [ROUNDS]`` prints the median ratio of rounds, with its quartiles, for one learner
on Caffe's LeNet with 16 pictures, one thread: zero_grad, forward, backward, ``clip_grad_norm_``, step and a step of
one of torch's schedulers. Seconds are those of the thread, so that other processes count less.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from benchmarks.alternating import Alternation, Side, Timer
from suite.models import build, initialise
from suite.optim import EASGD, ISGD, SMA, DelayedSGD, Softsync

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
}


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


def main(rounds: int) -> None:
    torch.set_num_threads(1)
    sides = {name: Side(updates(make)) for name, make in MAKERS.items()}
    alternation = Alternation(sides, Timer())
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
    parser = argparse.ArgumentParser(prog="python -m benchmarks.optim_update", description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=30)
    main(parser.parse_args().rounds)
