"""A batch on several devices: its parts (Fig. 6), and what synchronisation takes of an update on hosts (Fig. 8).

Each host sleeps for the seconds of its part's gradient, then gradients go up a reduction tree and weights down it,
over shaped links. Bytes and seconds are scaled alike, so that computing over exchanging is that of the paper's cards.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import pandas as pd
import torch
import torch.distributed as dist
from torch import Tensor

from paper_figures.isgd.fig4 import tree
from suite.communication import link
from suite.communication.collectives import Processes
from suite.communication.group import Group
from suite.communication.launch import spawn
from suite.data.order import FixedCycle, SplitBatch
from suite.experiment import Context
from suite.models.table import counts
from suite.runs.store import Outcome
from suite.spec import RunSpec, thaw


class TreeOfProcesses:
    """The workers are processes; sums go to the first along a reduction tree, and weights back from it."""

    def __init__(self, group: Group):
        self._group, self._rounds = group, tree(group.size)

    def reduce(self, values: Tensor) -> None:
        """Add the values [d] of all workers up; worker 0 then holds the sum, others a part of it."""
        received = torch.empty_like(values)
        with self._group.watched("a reduction tree"):
            for pairs in self._rounds:
                for sender, receiver in pairs:
                    if self._group.rank == sender:
                        dist.send(values, receiver)
                    elif self._group.rank == receiver:
                        dist.recv(received, sender)
                        values += received

    def broadcast(self, values: Tensor) -> None:
        """Overwrite the values [d] of every worker with those of worker 0, the rounds of the sum backwards."""
        with self._group.watched("a broadcast tree"):
            for pairs in reversed(self._rounds):
                for receiver, sender in pairs:
                    if self._group.rank == sender:
                        dist.send(values, receiver)
                    elif self._group.rank == receiver:
                        dist.recv(values, sender)


def updates(group: Group, asleep: Mapping[int, float], numbers: int, repeats: int) -> list[dict[str, float]]:
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


def occupancy(spec: RunSpec, context: Context) -> Outcome:
    """Seconds by batch and repetition, synchronisation until the last host has the weights.

    Where there is no lab, stores the reason instead.
    """
    settings = thaw(spec.settings)
    hosts, numbers, rate = settings["hosts"], settings["numbers"], settings["bits_per_second"]
    there = 4 * counts(settings["model"]).parameters / settings["bandwidth"]  # seconds of a message on the cards
    slower = 4 * numbers / (rate / 8 * link.PAYLOAD) / there
    asleep = {b: slower * s for b, s in zip(settings["batches"], settings["seconds"], strict=True)}
    try:
        with link.lab(hosts, rate) as lab:
            told = spawn(updates, hosts, asleep, numbers, settings["repeats"], timeout=120, lab=lab)
    except link.NoLab as error:
        return Outcome("finished", {"skipped": str(error)})
    table = pd.concat(map(pd.DataFrame, told)).groupby(["batch", "repeat"], as_index=False)
    return Outcome("finished", {"skipped": ""}, {"occupancy": table[["computed", "communicated"]].max()})


def parts(spec: RunSpec, context: Context) -> Outcome:
    """Cut one batch of each (batch size, GPUs): ``covered`` images, ``uneven`` ones between the extreme parts."""
    covered, uneven = [], []
    for batch, gpus in spec.settings["configurations"]:
        order = SplitBatch(FixedCycle(spec.settings["examples"], batch, None), gpus)
        shares = order.indices(torch.full((gpus,), 3), torch.arange(gpus))
        sizes = [len(share.unique()) for share in shares]
        covered.append(len(shares.unique()))
        uneven.append(max(sizes) - min(sizes))
    return Outcome("finished", {"covered": covered, "uneven": uneven})
