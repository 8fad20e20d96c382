"""Training your own module on your own processes with an algorithm that exchanges without a server.

Started by ``torchrun --nproc-per-node 4 train.py``, on one or several nodes, gloo on CPUs and NCCL on GPUs::

    from functools import partial

    from reference_impls.matex_agd import DelayedSGD
    from suite.distributed.training import Training, join, share

    with join(timeout=60) as group:
        module = Net().to(group.device)
        algorithm = partial(DelayedSGD, delay=2)
        training = Training(module, group, algorithm, rate=0.05, momentum=0.9, examples=len(dataset))
        loader = DataLoader(Subset(dataset, share(len(dataset), group)), batch_size=64, shuffle=True, drop_last=True)
        done = training.resume("checkpoints")  # what save was given; {} where there is nothing to resume
        for epoch in range(done.get("epochs", 0), epochs):
            for inputs, targets in loader:
                training.update(loss(module(inputs.to(group.device)), targets.to(group.device)))
            training.save("checkpoints", epochs=epoch + 1)
        training.finish()  # apply what is still under way
        with training.evaluated() as model:  # on every worker: it may have to exchange
            test(model)

Crossbow's synchronous model averaging takes the same lines, here with two learners in each process::

    training = Training(module, group, SMA, rate=0.05, momentum=0.9, learners=2)

With ``partial(SMA, devices=1)`` the learners of a process share a reference model, and only it is averaged with
those of the other processes (section 3.3); a lone process averages flat. ``partial(elastic_averaging, alpha=0.1)``
in its place is elastic averaging (EA-SGD), and ``SGD`` plain synchronous SGD. With several learners the loop stays as
it is: each ``update`` is one learner's batch, and the learners of a process take turns.

``DelayedSGD`` as it is is synchronous, with ``segmented=True, order="backward"`` layer-wise, and with ``delay`` 1 to
3 delayed exchange. Workers that bring different models, data sizes or
settings are refused at the start, and a worker that dies or stalls ends the others with WorkerLost. Started again,
the lines above go on after the last epoch that all workers had saved, to the same bits as without the interruption.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from reference_impls.contract import Algorithm, Collective, Entry, Optimizer, Pending, Sent, Turn
from reference_impls.isgd import ISGD
from reference_impls.rudra import Softsync
from suite.communication.collectives import Processes
from suite.communication.group import Group, WorkerLost, join
from suite.communication.launch import WorkersFailed, spawn
from suite.distributed import checkpoints as worker_checkpoints
from suite.training.buckets import Backward, buckets
from suite.training.flat import FlatModule
from suite.training.optimizers import TorchSGD

__all__ = ["Training", "WorkerLost", "WorkersFailed", "join", "share", "spawn"]

Rule: TypeAlias = Callable[[Optimizer, Collective], Algorithm[Any]]
"""A class of ``reference_impls``, or a ``partial`` of one that binds its settings."""


def share(examples: int, group: Group) -> range:
    """This worker's part of a data set: contiguous, disjoint and equally large for all (MaTEx, section 5.1).

    What does not divide is left out: ``examples % group.size`` at the end. Raises ValueError for fewer examples
    than workers.
    """
    part = examples // group.size
    if part < 1:
        raise ValueError(f"{examples} examples cannot be shared by {group.size} workers; start fewer workers")
    return range(group.rank * part, (group.rank + 1) * part)


class Training:
    """``module`` trained by an algorithm of ``reference_impls``, a step at a time.

    Args:
        module: all its parameters require gradients, in one dtype, on ``group.device``. Its parameters become
            views of one vector, and worker 0's weights and buffers are copied to the others.
        rule: the algorithm's class, or a ``functools.partial`` of it with its settings.
        rate: learning rate, also readable and settable as ``training.rate`` between updates.
        optimizer: the local solver; by default ``suite.training.optimizers.TorchSGD(momentum, decay)``.
        examples: size of the data set, which must be the same on every worker; None if there is no such number.
        learners: replicas trained in this process, as many in every other; each has its own weights, solver memory
            and batch-norm statistics. More than one needs an algorithm that sends no gradients itself.
        bucket_bytes: layer-wise exchange joins neighbouring tensors up to this size into one sum; 0 sends each
            parameter by itself, as the paper does.

    Raises ValueError for a module that cannot be trained this way and for workers that differ.
    """

    def __init__(
        self,
        module: nn.Module,
        group: Group,
        rule: Rule,
        *,
        rate: float,
        momentum: float = 0.0,
        decay: float = 0.0,
        optimizer: Optimizer | None = None,
        examples: int | None = None,
        learners: int = 1,
        bucket_bytes: int = 0,
    ):
        _check(module, group)
        optimizer = optimizer or TorchSGD(momentum, decay)
        if learners < 1:
            raise ValueError(f"learners={learners} must be at least 1")
        algorithm = rule(optimizer, Processes(group, rows=learners))
        _check_algorithm(algorithm)
        if algorithm.sends and learners > 1:
            raise ValueError(f"learners={learners} must be exactly 1 with an algorithm that sends gradients itself")
        self.module, self.group = module, group
        self.flat = FlatModule(module)
        self._facts = {
            "model": _digest(self.flat),
            "number of parameters": self.flat.d,
            "algorithm": repr(algorithm),
            "solver": f"{type(optimizer).__name__} momentum={momentum} decay={decay}",
            "number of examples": examples,
            "learners": learners,
            "bucket size": bucket_bytes,
        }
        group.agree({**self._facts, "learning rate": rate})
        group.broadcast(self.flat.x)
        if self.flat.q:
            group.broadcast(self.flat.buffers)
        extra, sends = algorithm.extra_buffers, algorithm.sends
        self.collective = Processes(group, rows=learners, lanes=max(1, extra), in_place=sends)
        self.algorithm = replace(algorithm, collective=self.collective)
        parts = buckets(self.flat, bucket_bytes) if algorithm.segmented else (slice(0, self.flat.d),)
        self._backward = Backward(self.flat, 1 + extra, parts, self._send if sends else None)
        self.t = 0
        self.rate = rate
        self.learners = learners
        self._losses: list[Tensor] = []  # of the learners that have had their batch in this update
        self._gradients = self.flat.x.new_zeros(learners if learners > 1 else 0, self.flat.d)
        self._buffers = self.flat.buffers.repeat(learners, 1)  # [m, q]
        self.state = self.algorithm.init(self.flat.point())
        self._load()

    @property
    def gradient_buffers(self) -> list[Tensor]:
        """The vectors [d] in which gradients are formed, summed and kept until they are applied, used in turn."""
        return self._backward.buffers

    def _turn(self) -> Turn:
        first = self.group.rank * self.learners
        return Turn(self.t, tuple(Entry(first + j, self.t, self.t) for j in range(self.learners)))

    def _load(self) -> None:
        """Put the weights at which the algorithm wants the next gradient into the module."""
        points = self.algorithm.points(self.state, self._turn())
        learner = len(self._losses)
        self._shares = points.shares
        owners = [point for point, share in enumerate(points.shares) for _ in range(share)]
        self.flat.load(points.parameters[owners[learner]], self._buffers[learner] if self.learners > 1 else None)
        self._backward.start(self.t)

    def _send(self, rows: Tensor) -> Pending:
        return self.algorithm.send(rows)

    def update(self, loss: Tensor) -> None:
        """One update from the mean loss (0-d) of this worker's share of the batch: backward, exchange, apply.

        With several learners the module holds the next learner's weights afterwards, and the update happens once
        every learner had its batch.
        Raises WorkerLost when another worker died or did not answer within ``group.timeout``.
        """
        if loss.dim():
            raise ValueError(
                f"update needs the mean loss of a batch as one number, not a tensor of {tuple(loss.shape)}"
            )
        loss.backward()
        sent = self._backward.finish()
        self._losses.append(loss.detach())
        if self.learners > 1:
            learner = len(self._losses) - 1
            self._gradients[learner] = self._backward.gradient
            self._buffers[learner] = self.flat.buffers
        if len(self._losses) == self.learners:
            losses, self._losses = torch.stack(self._losses), []
            self._apply(self._turn(), losses, sent)
        self._load()

    def _apply(self, turn: Turn, losses: Tensor, sent: Sent) -> None:
        lr = torch.tensor(self.rate, dtype=self.flat.x.dtype, device=self.flat.x.device)
        sums = self._backward.gradient[None]
        if self.learners > 1:
            sums = torch.stack([part.sum(0) for part in self._gradients.split(self._shares)])
        self.state = self.algorithm.update(self.state, turn, losses, sums, lr, sent)
        self.t += 1
        self.group.heartbeat.updates = self.t

    def finish(self) -> None:
        """Apply the exchanges still under way (delayed exchange); training may go on afterwards."""
        while self.algorithm.under_way(self.state):
            self._apply(Turn(self.t, ()), self.flat.x.new_zeros(0), ())
        self._load()

    def save(self, folder: str | Path, **plain: Any) -> None:
        """Write everything the next update depends on, with ``plain`` values of the caller's, under ``folder``.

        That is the algorithm's state with the exchanges still under way (waited for, and kept as their sums), the
        solver's memory, buffers, rate and position, and the state of torch's random numbers, which shuffling and
        dropout draw from. Every worker must call it after the same update; older checkpoints are removed once all
        workers have written theirs. Raises ValueError in the middle of an update (between the batches of several
        learners) and for workers at different updates, OSError where nothing can be written.
        """
        if self._losses:
            raise ValueError(
                f"save came when {len(self._losses)} of {self.learners} learners had had their batch of update "
                f"{self.t}; call it when all have"
            )
        tensors = {"buffers": self._own_buffers(), "random/cpu": torch.get_rng_state()}
        if self.group.device.type == "cuda":
            tensors["random/cuda"] = torch.cuda.get_rng_state(self.group.device)
        tensors |= {f"module/{name}": value for name, value in self._counters()}
        values = {"t": self.t, "rate": self.rate, "facts": self._written_with(), "plain": plain}
        worker_checkpoints.write(Path(folder), self.group, self.t, self.state, values, tensors)

    def resume(self, folder: str | Path) -> dict[str, Any]:
        """Take up the newest checkpoint under ``folder`` that every worker has whole; returns its ``plain`` values.

        Training then goes on to the same bits as if it had not been interrupted. Returns an empty dict, and changes
        nothing, where there is no such checkpoint. Every worker must call it, between updates. Raises ValueError for
        a checkpoint of another model, algorithm, solver or number of workers.
        """
        found = worker_checkpoints.newest(Path(folder), self.group, self.state)
        if found is None:
            return {}
        state, values, tensors = found
        for name, now in self._written_with().items():
            if (then := values["facts"].get(name)) != now:
                raise ValueError(
                    f"the checkpoint in {folder} was written with {name} = {then!r}, not {now!r}; "
                    "start with the same settings or name another folder"
                )
        self.state, self.t, self.rate, self._losses = state, values["t"], values["rate"], []
        if self.learners > 1:
            self._buffers = tensors["buffers"]
        else:
            self.flat.buffers.copy_(tensors["buffers"][0])
        for name, value in self._counters():
            value.copy_(tensors[f"module/{name}"])
        torch.set_rng_state(tensors["random/cpu"].cpu())
        if "random/cuda" in tensors:
            torch.cuda.set_rng_state(tensors["random/cuda"].cpu(), self.group.device)
        self.group.heartbeat.updates = self.t
        self._load()
        return dict(values["plain"])

    def _written_with(self) -> dict[str, Any]:
        """What must be the same when a checkpoint is taken up; the rate may differ and comes from the checkpoint."""
        return {**self._facts, "number of workers": self.group.size}

    def _own_buffers(self) -> Tensor:
        """Buffers [m, q] of this process's learners."""
        return self._buffers if self.learners > 1 else self.flat.buffers[None]

    def _counters(self) -> list[tuple[str, Tensor]]:
        """The module's buffers that are not floating-point numbers, such as counts of batches."""
        return [(name, value) for name, value in self.module.named_buffers() if not value.is_floating_point()]

    @contextmanager
    def evaluated(self) -> Iterator[nn.Module]:
        """The module in evaluation mode with the weights the algorithm evaluates and the workers' mean buffers.

        Every worker must enter, as some algorithms average here; afterwards training goes on where it was.
        """
        weights, buffers, mode = self.flat.point(), self.flat.buffers.clone(), self.module.training
        own = self._own_buffers().mean(0)
        mean = Processes(self.group).sum(own[None]) / self.group.size if self.flat.q else buffers
        self.flat.load(self.algorithm.model(self.state), mean)
        self.module.eval()
        try:
            yield self.module
        finally:
            self.flat.load(weights, buffers)
            self.module.train(mode)


def _check_algorithm(algorithm: Algorithm[Any]) -> None:
    """Refuse the algorithms whose gradients this loop would compute at other weights or batches than they ask for."""
    if isinstance(algorithm, ISGD):
        raise ValueError("ISGD asks for the same batch again, which update(loss) cannot; use suite.optim.ISGD")
    if isinstance(algorithm, Softsync):
        raise ValueError("Softsync needs a server, which update(loss) has not; use suite.optim.parameter_server")


def _check(module: nn.Module, group: Group) -> None:
    parameters = dict(module.named_parameters())
    if not parameters:
        raise ValueError("the module has no parameters to train")
    if frozen := [name for name, p in parameters.items() if not p.requires_grad]:
        raise ValueError(
            f"parameter {frozen[0]} does not require a gradient; every algorithm moves all parameters, so register "
            "what shall stay fixed as a buffer"
        )
    first = next(iter(parameters.values()))
    for name, parameter in parameters.items():
        if parameter.dtype != first.dtype or parameter.device != first.device:
            raise ValueError(
                f"parameter {name} is {parameter.dtype} on {parameter.device}, others {first.dtype} on "
                f"{first.device}; give the module one dtype and one device"
            )
    if first.device.type != group.device.type:
        raise ValueError(
            f"the module is on {first.device} and the workers exchange over {group.backend}; move it with "
            ".to(group.device) first"
        )


def _digest(flat: FlatModule) -> str:
    """A short name of the module's parameters: names, shapes and dtype."""
    text = repr([(name, tuple(shape)) for name, shape in zip(flat.names, flat.shapes, strict=True)]) + str(
        flat.x.dtype
    )
    return hashlib.sha256(text.encode()).hexdigest()[:12]
