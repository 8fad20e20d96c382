"""Seconds of a gradient against batch size on one device (Figs. 7 and 8), and of an update of processes (Eq. 19).

In ``isgd/update-times`` each process computes the gradient of its equal part of the batch; the gradients are summed
by a real all-reduce over gloo, and every process takes the step. Images are random.
"""

from __future__ import annotations

import time
from typing import Any

import pandas as pd
import torch
from torch import Tensor
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


class Problem:
    """A network on random images, whose gradient is computed over and over."""

    def __init__(
        self, name: str, run_seed: int, rank: tuple[int, ...], images: int, device: str, channels_last: bool
    ):
        self.module = classifier(name)
        initialise(self.module, seed(run_seed, "weights"))
        self.flat = FlatModule(self.module.to(device), channels_last=channels_last)
        draw = torch.Generator().manual_seed(seed(run_seed, "images", *rank))
        made: Tensor = torch.randn(images, *self.module.input_shape, generator=draw).to(device)
        self.images = made.contiguous(memory_format=torch.channels_last)
        self.labels = torch.randint(self.module.classes, (images,), generator=draw).to(device)

    def differentiate(self, batch: int) -> None:
        """Write the gradient of the first images into ``flat.grad``."""
        self.flat.grad.zero_()
        F.cross_entropy(self.module(self.images[:batch]), self.labels[:batch]).backward()


def latency(spec: RunSpec, context: Context) -> Outcome:
    """Time forward and backward passes, batch sizes interleaved so that slow drifts hit them alike.

    Returns the table ``latency`` (batch, repeat, seconds). One warm-up per batch size is left out.
    """
    apply(context.execution)
    s, device = spec.settings, context.device
    problem = Problem(s["model"], spec.seed, (), max(s["batches"]), device, context.execution["channels_last"])
    rows = []
    for repeat in range(-1, s["repeats"]):
        for batch in s["batches"]:
            if device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            problem.differentiate(batch)
            if device == "cuda":
                torch.cuda.synchronize()
            if repeat >= 0:
                rows.append({"batch": batch, "repeat": repeat, "seconds": time.perf_counter() - start})
        context.report((repeat + 2) / (s["repeats"] + 1))
    return Outcome("finished", {"parameters": problem.flat.d}, {"latency": pd.DataFrame(rows)})


def updates(
    group: Group, execution: dict[str, Any], name: str, batches: tuple[int, ...], repeats: int, run_seed: int
) -> list[dict[str, float]]:
    """One process's part: rows of batch (of all processes), repeat, seconds, and seconds of the sum within them."""
    apply(execution)
    problem = Problem(name, run_seed, (group.rank,), max(batches) // group.size, "cpu", True)
    together, ready = Processes(group), torch.zeros(1, 1)
    rows = []
    for repeat in range(-1, repeats):
        for batch in batches:
            together.sum(ready)  # all begin at once
            began = time.perf_counter()
            problem.differentiate(batch // group.size)
            together.sum(ready)  # the slowest has computed: what follows is the sum's
            computed = time.perf_counter()
            total = together.sum(problem.flat.grad[None])
            summed = time.perf_counter()
            problem.flat.x.sub_(total, alpha=RATE / group.size)
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
