"""Data parallelism as section 4 describes it: equal parts, a reduction tree, one master, a broadcast."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from paper_figures.isgd.experiments.trace import gap, isgd_of, prepare
from paper_figures.isgd.reduction_tree import tree
from suite.communication.collectives import CompletedSum
from suite.data.order import FixedCycle, SplitBatch
from suite.experiment import Context
from suite.runs.store import Outcome
from suite.spec import RunSpec
from suite.training.schedules import rounds


@dataclass
class Tree:
    """Sums the rows of k workers pair by pair into row 0, in the rounds of a reduction tree."""

    workers: int

    @property
    def rows(self) -> int:
        return self.workers

    def start(self, rows: Tensor, each: int | None = None) -> CompletedSum:
        return CompletedSum(self.sum(rows, each))

    def sum(self, rows: Tensor, each: int | None = None) -> Tensor:
        """Rows [k, s] -> [s]; a row always stands for one worker."""
        held = list(rows)
        for pairs in tree(self.workers):
            for sender, receiver in pairs:
                held[receiver] = held[receiver] + held[sender]
        return held[0]


def broadcast(replicas: list[Tensor], weights: Tensor) -> None:
    """Hand the master's weights [d] down the tree, the rounds of the reduction backwards."""
    replicas[0] = weights
    for pairs in reversed(tree(len(replicas))):
        for sender, receiver in pairs:
            replicas[sender] = replicas[receiver].clone()


def parallel(spec: RunSpec, context: Context) -> Outcome:
    """Train with 1, 2, 4, ... workers; each computes the gradient of its part at its own replica of the weights.

    Results, lists over the worker counts: ``rounds`` of the tree; ``uneven`` images between the largest and the
    smallest part; largest differences ``gradient`` and ``loss`` between the reduced values and those of the whole
    batch at the same weights, ``replicas`` after a broadcast, ``iterates`` from the run on one worker; ``chases``,
    how many of the updates were steps of Algorithm 2; ``parts``, images per worker.
    """
    setting = prepare({**spec.settings, "workers": 1}, spec.seed, context)
    made, problem = setting.made, setting.made.problem
    serial: list[Tensor] = []
    results: dict[str, list[Any]] = {
        name: []
        for name in ("workers", "rounds", "uneven", "gradient", "loss", "replicas", "iterates", "chases", "parts")
    }
    for workers in spec.settings["workers"]:
        order, members = SplitBatch(made.order, workers), torch.arange(workers, device=made.x0.device)
        reduce = Tree(workers)
        algorithm = replace(isgd_of(setting), collective=reduce)
        state = algorithm.init(made.x0)
        replicas = [made.x0.clone() for _ in range(workers)]
        uneven, chases = 0, 0
        worst = dict.fromkeys(("gradient", "loss", "replicas", "iterates"), 0.0)
        for turn in rounds(workers):
            if turn.t == spec.settings["updates"]:
                break
            points = algorithm.points(state, turn)
            parts = order.indices(points.batch, members)
            sizes = [len(part.unique()) for part in parts]
            uneven = max(uneven, max(sizes) - min(sizes))
            losses, sums, _ = setting.gradients(
                torch.stack(replicas),
                setting.buffers.expand(workers, -1),
                [problem.fetch(part) for part in parts],
            )
            losses, sums = losses.clone(), sums.clone()
            whole_loss, whole, _ = setting.gradients(
                replicas[0][None], setting.buffers, [problem.fetch(made.order.indices(points.batch[:1])[0])]
            )
            worst["gradient"] = max(worst["gradient"], gap(reduce.sum(sums) / workers, whole[0]))
            worst["loss"] = max(worst["loss"], gap(reduce.sum(losses[:, None]) / workers, whole_loss))
            chases += int(state.chasing)
            state = algorithm.update(state, turn, losses, sums, setting.rate)
            broadcast(replicas, state.x)
            worst["replicas"] = max(worst["replicas"], *(gap(replica, state.x) for replica in replicas))
            if workers == 1:
                serial.append(state.x)
            worst["iterates"] = max(worst["iterates"], gap(state.x, serial[turn.t]))
        row = {"workers": workers, "rounds": len(tree(workers)), "uneven": uneven, "chases": chases, "parts": sizes}
        for name, value in (row | worst).items():
            results[name].append(value)
    return Outcome("finished", results)


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
