"""Seconds of a gradient against batch size on one device (Figs. 7 and 8), and of an update of processes (Eq. 19).

In ``isgd/update-times`` each process computes the gradient of its equal part of the batch; the gradients are summed
by a real all-reduce over gloo, and every process takes the step. Images are random.

In ``isgd/occupancy`` each host sleeps for the seconds of its part's gradient, then gradients go up a reduction tree
and weights down it, over shaped links (Fig. 8). Bytes and seconds are scaled alike, so that computing over exchanging
is that of the paper's cards.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd
import torch
import torch.distributed as dist
from torch import Tensor

from paper_figures.isgd.fig4 import tree
from suite.communication import link
from suite.communication.collectives import Processes
from suite.communication.group import Group
from suite.communication.launch import spawn
from suite.experiment import Context, Outcome, in_lab
from suite.models.table import counts
from suite.runner.autotune import alternating, by_repeat
from suite.spec import RunSpec, thaw
from suite.training.build import RandomPictures
from suite.training.numerics import apply

RATE = 1e-6  # weights move, and stay finite on noise


def latency(spec: RunSpec, context: Context) -> Outcome:
    """Time forward and backward passes, batch sizes interleaved so that slow drifts hit them alike.

    Returns the table ``latency`` (batch, repeat, seconds). One warm-up per batch size is left out.
    """
    apply(context.execution)
    s, last = spec.settings, context.execution["channels_last"]
    problem = RandomPictures(s["model"], spec.seed, max(s["batches"]), context.device, channels_last=last)
    sides = {batch: partial(problem.differentiate, batch) for batch in s["batches"]}
    seconds = alternating(sides, s["repeats"], report=context.report)
    return Outcome("finished", {"parameters": problem.flat.d}, {"latency": by_repeat(seconds, "batch")})


def updates(
    group: Group, execution: dict[str, Any], name: str, batches: tuple[int, ...], repeats: int, run_seed: int
) -> list[dict[str, float]]:
    """One process's part: rows of batch (of all processes), repeat, seconds, and seconds of the sum within them."""
    apply(execution)
    problem = RandomPictures(name, run_seed, max(batches) // group.size, "cpu", group.rank)
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


class TreeOfProcesses:
    """The workers are processes; sums go to the first along a reduction tree, and weights back from it."""

    def __init__(self, group: Group):
        self._group, self._edges = group, [edge for pairs in tree(group.size) for edge in pairs]

    def reduce(self, values: Tensor) -> None:
        """Add the values [d] of all workers up; worker 0 then holds the sum, others a part of it."""
        received = torch.empty_like(values)
        with self._group.watched("a reduction tree"):
            for sender, receiver in self._edges:
                if self._group.rank == sender:
                    dist.send(values, receiver)
                elif self._group.rank == receiver:
                    dist.recv(received, sender)
                    values += received

    def broadcast(self, values: Tensor) -> None:
        """Overwrite the values [d] of every worker with those of worker 0, the rounds of the sum backwards."""
        with self._group.watched("a broadcast tree"):
            for receiver, sender in reversed(self._edges):
                if self._group.rank == sender:
                    dist.send(values, receiver)
                elif self._group.rank == receiver:
                    dist.recv(values, sender)


def tree_updates(group: Group, asleep: Mapping[int, float], numbers: int, repeats: int) -> list[dict[str, float]]:
    """One host's part: rows of batch, repeat, seconds computed and communicated; ``asleep`` is by batch."""
    along, together, ready = TreeOfProcesses(group), Processes(group), torch.zeros(1, 1)
    weights, gradient = torch.zeros(numbers), torch.ones(numbers)
    rows = []
    for repeat in range(-1, repeats):
        for batch, seconds in asleep.items():
            if repeat < 0:  # warms up the connections
                seconds = 0.0
            together.sum(ready)
            began = time.perf_counter()
            time.sleep(seconds)
            computed = time.perf_counter()
            together.sum(ready)  # the slowest has computed: what follows is synchronisation
            begun = time.perf_counter()
            along.reduce(gradient)
            if group.rank == 0:
                weights.sub_(gradient, alpha=1e-6)
            along.broadcast(weights)
            communicated = time.perf_counter() - begun
            row = {"batch": batch, "repeat": repeat, "computed": computed - began, "communicated": communicated}
            rows += [row] if repeat >= 0 else []
    return rows


@in_lab
def occupancy(spec: RunSpec, context: Context) -> Outcome:
    """Seconds by batch and repetition, synchronisation until the last host has the weights."""
    settings = thaw(spec.settings)
    hosts, numbers, rate = settings["hosts"], settings["numbers"], settings["bits_per_second"]
    there = 4 * counts(settings["model"]).parameters / settings["bandwidth"]  # seconds of a message on the cards
    slower = 4 * numbers / (rate / 8 * link.PAYLOAD) / there
    asleep = {b: slower * s for b, s in zip(settings["batches"], settings["seconds"], strict=True)}
    with link.lab(hosts, rate) as lab:
        told = spawn(tree_updates, hosts, asleep, numbers, settings["repeats"], timeout=120, lab=lab)
    table = pd.concat(map(pd.DataFrame, told)).groupby(["batch", "repeat"], as_index=False)
    return Outcome("finished", curves={"occupancy": table[["computed", "communicated"]].max()})
