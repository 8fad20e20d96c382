"""The rival: the best loop that a competent user would write in plain PyTorch, one run after another.

Eager modules, ``torch.optim.SGD``, pictures decoded to floats once and resident on the device, batches gathered by
shuffled indices that were cut beforehand, gradients set to None, nothing recorded. Memory format and the optimiser's
implementation are tried in all their forms. A loop never converts a picture, plans a schedule or pads a sentence
inside an update, though ours does. Compiled, the loop is the same with ``torch.compile`` around network and loss.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle, islice
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.workloads import SENTENCE, TRANSLATION, Workload, server_schedule
from suite.data.vocabulary import BEGIN, END, PAD
from suite.models import build, initialise
from suite.models.table import counts
from suite.training.translation import TeacherForced, collate, word_loss

RATE, MOMENTUM, DECAY = 0.001, 0.9, 5e-4
PIXELS = 2**25  # of all pictures together, unless a few batches need more


@dataclass(frozen=True)
class Form:
    """A way to write the same loop."""

    channels_last: bool = False
    options: dict[str, Any] = field(default_factory=dict)  # of torch.optim.SGD


FORMS = {
    "plain": Form(),
    "plain foreach": Form(options={"foreach": True}),
    "plain fused": Form(options={"fused": True}),
    "plain channels-last": Form(channels_last=True),
    "plain channels-last fused": Form(channels_last=True, options={"fused": True}),
}

Loss = Callable[[nn.Module, Any, Tensor], Tensor]


def picture_loss(module: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(module(inputs), targets)


def sentence_loss(module: nn.Module, inputs: Any, targets: Tensor) -> Tensor:
    return word_loss(module(inputs), targets)


@cache
def why_not_compiled(device: str) -> str:
    """Why ``torch.compile`` does not work here, or nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the compiler's own, which are no reason
            torch.compile(lambda x: torch.sin(x) + 1)(torch.ones(8, device=device))
    except Exception as error:  # whatever a missing or broken compiler raises
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason'}"
    return ""


def examples(workload: Workload) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Float pictures [N, C, H, W], their classes [N], and the batches of an epoch as indices, shuffled and cut."""
    known = counts(workload.network)
    draw = torch.Generator().manual_seed(0)
    count = example_count(workload)
    inputs = torch.rand(count, *known.input_shape, generator=draw)
    targets = torch.randint(known.classes, (count,), generator=draw)
    order = torch.randperm(count, generator=draw)
    return inputs, targets, order[: count // workload.batch * workload.batch].split(workload.batch)


def pictures(workload: Workload, device: str, channels_last: bool) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches for ever: resident pictures, gathered by the indices of ``examples``."""
    inputs, targets, batches = examples(workload)
    inputs, targets = inputs.to(device), targets.to(device)
    if channels_last:
        inputs = inputs.contiguous(memory_format=torch.channels_last)
    for rows in cycle([rows.to(device) for rows in batches]):
        yield inputs[rows], targets[rows]


def example_count(workload: Workload) -> int:
    """Random examples to train on: thousands where they are small, and two batches of every learner at least."""
    pixels = prod(counts(workload.network).input_shape)
    return max(2 * workload.batch * workload.learners, min(4096, PIXELS // pixels))


def sentences(workload: Workload, device: str) -> Iterator[tuple[Any, Tensor]]:
    """Batches of words for ever, padded and moved to the device beforehand."""
    yield from cycle([collate(rows, rows, device) for rows in random_sentences(8 * workload.batch)])


def random_sentences(count: int, chunk: int | None = None) -> list[list[list[int]]]:
    """Sentences of one length as piece numbers, closed by the end mark, in chunks of a batch."""
    draw = torch.Generator().manual_seed(0)
    lowest = max(BEGIN, END, PAD) + 1
    pieces = torch.randint(lowest, TRANSLATION["vocabulary"], (count, SENTENCE), generator=draw).tolist()
    rows = [[*row, END] for row in pieces]
    chunk = chunk or count // 8
    return [rows[start : start + chunk] for start in range(0, count, chunk)]


class Loop:
    """``runs`` networks trained one after the other, each with its own optimiser."""

    def __init__(self, workload: Workload, device: str, form: Form, loss: Loss | None = None):
        self.workload, self.device, self.form = workload, device, form
        words = workload.family == "translation"
        self.loss = loss or (sentence_loss if words else picture_loss)
        count = workload.learners if workload.family == "averaging" else workload.runs
        self.modules = [self.network(seed) for seed in range(count)]
        self.solvers = [self.solver(list(module.parameters())) for module in self.modules]
        self.batches = sentences(workload, device) if words else pictures(workload, device, form.channels_last)

    def network(self, seed: int) -> nn.Module:
        options = TRANSLATION if self.workload.family == "translation" else {}
        module: nn.Module = build(self.workload.network, **options)
        initialise(module, seed)
        if self.workload.family == "translation":
            module = TeacherForced(module)
        if self.form.channels_last:
            module = module.to(memory_format=torch.channels_last)
        return module.to(self.device)

    def solver(self, parameters: list[Tensor]) -> torch.optim.SGD:
        return torch.optim.SGD(parameters, lr=RATE, momentum=MOMENTUM, weight_decay=DECAY, **self.form.options)

    def run(self, updates: int) -> None:
        for module, solver in zip(self.modules, self.solvers, strict=True):
            for _ in range(updates):
                self.gradient(module, solver)
                solver.step()

    def gradient(self, module: nn.Module, solver: torch.optim.SGD) -> None:
        inputs, targets = next(self.batches)
        solver.zero_grad()
        self.loss(module, inputs, targets).backward()


class Averaged(Loop):
    """Synchronous model averaging by Crossbow's Algorithm 1, all tensors of a replica in one call.

    All replicas make an update before any makes the next.
    """

    def __init__(self, workload: Workload, device: str, form: Form, loss: Loss | None = None):
        super().__init__(workload, device, form, loss)
        self.replicas = [[p.detach() for p in module.parameters()] for module in self.modules]
        self.centre = [p.clone() for p in self.replicas[0]]
        self.previous = [p.clone() for p in self.centre]

    def run(self, updates: int) -> None:
        for _ in range(updates):
            for module, solver in zip(self.modules, self.solvers, strict=True):
                self.gradient(module, solver)
            moved = torch._foreach_sub(self.centre, self.previous)
            torch._foreach_mul_(moved, MOMENTUM)
            torch._foreach_add_(moved, self.centre)
            for replica, solver in zip(self.replicas, self.solvers, strict=True):
                correction = torch._foreach_sub(replica, self.centre)
                torch._foreach_mul_(correction, 1 / len(self.replicas))
                torch._foreach_sub_(replica, correction)
                torch._foreach_add_(moved, correction)
                solver.step()
            self.previous, self.centre = self.centre, list(moved)


class Served(Loop):
    """Learners of a parameter server, one after another along a schedule planned beforehand.

    Under hardsync all read the newest weights, so gradients are added up in the server's own network and nothing
    is copied. Otherwise every learner keeps the weights that it read, as its own network.
    """

    def __init__(self, workload: Workload, device: str, form: Form, loss: Loss | None = None):
        super().__init__(workload, device, form, loss)
        self.server, self.solver_ = self.modules[0], self.solvers[0]
        self.weights = list(self.server.parameters())
        self.fresh = workload.softsync == 0
        self.learners = [] if self.fresh else [self.network(0) for _ in range(workload.learners)]
        self.held = [[p.detach() for p in module.parameters()] for module in self.learners]
        self.turns = cycle([turn.entries for _, turn in islice(server_schedule(workload), 4 * workload.block)])

    def run(self, updates: int) -> None:
        for entries in islice(self.turns, updates):
            if self.fresh:
                self.solver_.zero_grad()
                for _ in entries:
                    inputs, targets = next(self.batches)
                    (self.loss(self.server, inputs, targets) / len(entries)).backward()
                self.solver_.step()
                continue
            total: list[Tensor] | None = None
            for entry in entries:
                module = self.learners[entry.worker]
                inputs, targets = next(self.batches)
                module.zero_grad()
                self.loss(module, inputs, targets).backward()
                grads = [p.grad for p in module.parameters()]
                if total is None:
                    total = grads
                else:
                    torch._foreach_add_(total, grads)
            assert total is not None
            if len(entries) > 1:
                torch._foreach_mul_(total, 1 / len(entries))
            for weight, gradient in zip(self.weights, total, strict=True):
                weight.grad = gradient
            self.solver_.step()
            values = [w.detach() for w in self.weights]
            for entry in entries:
                torch._foreach_copy_(self.held[entry.worker], values)


KINDS: dict[str, type[Loop]] = {"averaging": Averaged, "server": Served}


def loop(workload: Workload, device: str, form: Form, loss: Loss | None = None) -> Loop:
    """The loop of a workload in one of its forms."""
    return KINDS.get(workload.family, Loop)(workload, device, form, loss)
