"""Features of ``matrix.py`` about the module beside its optimiser: weights written, moved, buffers that grow."""

from __future__ import annotations

import pytest
import torch
from door import network, weights
from features import Job, falls
from torch import nn


def written(job: Job) -> None:
    """Weights clamped after each step."""
    module = network()
    opt = job.make(module)

    @torch.no_grad()
    def clamp() -> None:
        for parameter in module.parameters():
            parameter.clamp_(-0.01, 0.01)

    job.fit(opt, module, after=clamp)
    assert max(parameter.abs().max().item() for parameter in module.parameters()) < 0.15  # they begin at up to 0.33


def taken_up(job: Job) -> None:
    """Weights and statistics loaded for all learners."""
    module, good = network(), network(seed=7)
    plain = {"stop": 0} if job.name == "ISGD" else {}
    opt = job.make(module, **plain)
    if job.name != "Softsync" or job.group.size == 1:
        job.fit(opt, module, steps=3)
    module.load_state_dict(good.state_dict())
    opt.take_up()
    assert torch.equal(weights(opt.average()), weights(good))
    job.fit(opt, module, first=4, steps=2)


def moving_later(job: Job) -> None:
    module = network()
    opt = job.make(module)
    nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(module.parameters()), module.parameters())
    if job.group.size == 1:
        with pytest.raises(ValueError, match="lies elsewhere"):
            opt.average()
    job.fit(opt, module)


def growing_buffers(job: Job) -> None:
    module = network()
    module.register_buffer("cache", torch.zeros(1), persistent=False)
    opt = job.make(module)

    def grow() -> None:
        module.cache = torch.zeros(len(module.cache) + 1)

    assert falls(job.fit(opt, module, after=grow))
    assert opt.average().cache.shape == module.cache.shape
