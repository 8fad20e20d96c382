"""Features of ``matrix.py`` in the corners of torch's interface."""

from __future__ import annotations

import copy
import io
import itertools
import pickle
from functools import partial

import pytest
import torch
from door import BATCH, closure, examples, network, weights
from features import Job, falls
from torch import Tensor, nn

from suite.optim import Softsync


def any_base(job: Job) -> None:
    """AdamW."""
    module = network()
    opt = job.make(module, base=torch.optim.AdamW, lr=0.01, momentum=None, betas=(0.8, 0.9))
    assert falls(job.fit(opt, module))


def assigned(job: Job) -> None:
    """Gradients that torch.autograd.grad has computed."""
    module = network()
    opt = job.make(module)
    inputs, targets = examples()

    def compute(batch: Tensor) -> Tensor:
        loss = nn.functional.cross_entropy(module(inputs[batch]), targets[batch])
        parameters = list(module.parameters())
        for parameter, grad in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = grad
        return loss

    numbers = opt.batches(itertools.count()) if isinstance(opt, Softsync) else range(24)
    batches = ((torch.arange(BATCH) + number * BATCH) % len(inputs) for number in numbers)
    assert falls([opt.step(partial(compute, batch)).item() for batch in batches])


def skipped(job: Job) -> None:
    """A batch that is left out by zero_grad, in every process."""
    module = network()
    opt = job.make(module)
    inputs, targets = examples()
    if not job.serves:
        closure(opt, module, inputs * torch.nan, targets)()
        opt.zero_grad()
    module[1].reset_running_stats()
    assert falls(job.fit(opt, module))
    assert weights(opt.average()).isfinite().all()


def empty_groups(job: Job) -> None:
    module = network()
    body, head = list(module[:4].parameters()), list(module[4:].parameters())
    opt = job.make(module, [{"params": body}, {"params": [], "weight_decay": 0.1}, {"params": head}])
    assert falls(job.fit(opt, module))


def copied(job: Job) -> None:
    opt = job.make(network())
    for copying in (copy.copy, pickle.dumps, partial(torch.save, f=io.BytesIO())):
        with pytest.raises(TypeError, match="copy the module, make an optimiser of the copy"):
            copying(opt)
    copy.deepcopy(opt)


def left(job: Job) -> None:
    """A head that is replaced after the optimiser was made."""
    module = network()
    opt = job.make(module)
    module[6] = nn.Linear(11, 3)
    job.fit(opt, module)


def joined(job: Job) -> None:
    """Loaders of unequal length."""
    module = network()
    opt = job.make(module)
    inputs, targets = examples()
    with opt.join():
        for number in range(6 + 2 * job.group.rank):
            batch = (torch.arange(BATCH) + number * BATCH) % len(inputs)
            opt.step(closure(opt, module, inputs[batch], targets[batch]))


def tuned(job: Job) -> None:
    """The number of learners by throughput, where the machine's speed decides what it becomes."""
    module = network()
    opt = job.make(module, learners="auto", **({"alpha": 0.2} if job.name == "SMA" else {}))
    assert falls(job.fit(opt, module))
    assert opt.learners >= 1
