"""The experiment ``isgd/update-times``: seconds per update of several processes against batch size (Eq. 19).

Each process computes the gradient of its equal part of the batch, on random images; the gradients are summed by a
real all-reduce over gloo, and every process takes the step.
"""

from __future__ import annotations

import time
from typing import Any

import pandas as pd
import torch
from torch.nn import functional as F

from suite.communication.collectives import Processes
from suite.communication.group import Group
from suite.communication.launch import spawn
from suite.experiment import Context
from suite.models import classifier, initialise
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed
from suite.training.flat import FlatModule
from suite.training.numerics import apply

RATE = 1e-6  # weights move, and stay finite on noise


def updates(
    group: Group, execution: dict[str, Any], name: str, batches: tuple[int, ...], repeats: int, run_seed: int
) -> list[dict[str, float]]:
    """One process's part: rows of batch (of all processes), repeat, seconds, and seconds of the sum within them."""
    apply(execution)
    module = classifier(name)
    initialise(module, seed(run_seed, "weights"))
    flat, together, ready = FlatModule(module, channels_last=True), Processes(group), torch.zeros(1, 1)
    draw = torch.Generator().manual_seed(seed(run_seed, "images", group.rank))
    largest = max(batches) // group.size
    images = torch.randn(largest, *module.input_shape, generator=draw).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(module.classes, (largest,), generator=draw)
    rows = []
    for repeat in range(-1, repeats):
        for batch in batches:
            part = batch // group.size
            together.sum(ready)  # all begin at once
            began = time.perf_counter()
            flat.grad.zero_()
            F.cross_entropy(module(images[:part]), labels[:part]).backward()
            together.sum(ready)  # the slowest has computed: what follows is the sum's
            computed = time.perf_counter()
            total = together.sum(flat.grad[None])
            summed = time.perf_counter()
            flat.x.sub_(total, alpha=RATE / group.size)
            row = {"batch": batch, "repeat": repeat, "seconds": time.perf_counter() - began}
            rows += [{**row, "communicated": summed - computed}] if repeat >= 0 else []
    return rows


def update_times(spec: RunSpec, context: Context) -> Outcome:
    """Time updates, batch sizes interleaved so that slow drifts hit them alike. One of each to warm up is left out.

    Returns the table ``updates`` (batch, repeat, seconds, communicated) as the first process saw it. Raises
    ValueError for a batch that does not fall into equal parts.
    """
    settings = spec.settings
    workers, batches = settings["processes"], tuple(settings["batches"])
    if uneven := [batch for batch in batches if batch % workers]:
        raise ValueError(f"batches of {uneven} images do not fall into {workers} equal parts")
    execution = dict(context.execution)
    told = spawn(updates, workers, execution, settings["model"], batches, settings["repeats"], spec.seed)
    return Outcome("finished", {}, {"updates": pd.DataFrame(told[0])})
