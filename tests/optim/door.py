"""Networks, batches and the reference implementations' own runs, for the tests of the optimisers."""

from __future__ import annotations

import copy
import inspect
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.sgd import sgd

from reference_impls.contract import Algorithm, GradientRef, Turn
from reference_impls.crossbow import SMA as Averaging
from reference_impls.crossbow import elastic_averaging
from reference_impls.isgd import ISGD as Chart
from reference_impls.local_sgd import DiLoCo as Outer
from reference_impls.local_sgd import LocalSGD as Mean
from reference_impls.local_sgd import PostLocalSGD as LateMean
from reference_impls.matex_agd import DelayedSGD as Exchange
from suite import optim
from suite.communication.collectives import CompletedSum, Local
from suite.optim import EASGD, ISGD, SMA, DelayedSGD, DiLoCo, LocalSGD, PostLocalSGD
from suite.optim.steps import Steps
from suite.training.optimizers import ALL, Stepped, TorchSGD

EXAMPLES, BATCH, UPDATES, RATE = 96, 12, 18, 0.1
MOMENTUM, DECAY = 0.9, 1e-3


@cache
def _initial(seed: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(1, 6, 3),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(96, 11),
            nn.Tanh(),
            nn.Linear(11, 3),
        )


def network(dtype: torch.dtype = torch.float32, seed: int = 0) -> nn.Module:
    """Convolution, batch norm and a linear layer: 8 parameters, 1,130 numbers."""
    return copy.deepcopy(_initial(seed)).to(dtype)


def examples(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Pictures [N, 1, 6, 6] and classes [N] that a few hundred updates tell apart."""
    draw = torch.Generator().manual_seed(1)
    targets = torch.randint(3, (EXAMPLES,), generator=draw)
    return (torch.randn(EXAMPLES, 1, 6, 6, generator=draw) + targets[:, None, None, None] / 2).to(dtype), targets


def rows(t: int, worker: int = 0, workers: int = 1) -> Tensor:
    """A worker's batch of update t."""
    return (torch.arange(BATCH) + (t * workers + worker) * BATCH) % EXAMPLES


class Method(NamedTuple):
    """An optimiser, and the reference implementation that it faces."""

    make: Any
    algorithm: Any  # (optimizer, collective) -> Algorithm
    learners: int = 1  # in each process
    drains: int = 0


def _face(cls: Any, **options: Any) -> Any:
    return lambda module, **more: cls(module, lr=RATE, momentum=MOMENTUM, weight_decay=DECAY, **options, **more)


METHODS = {
    "SMA": Method(_face(SMA, learners=2), Averaging, 2),
    "SMA, 1 learner": Method(_face(SMA, learners=1, alpha=0.3), partial(Averaging, alpha=0.3)),
    "SMA, tau 3": Method(_face(SMA, learners=2, tau=3), partial(Averaging, tau=3), 2),
    "SMA, 2 devices of 2": Method(_face(SMA, learners=4, devices=2), partial(Averaging, devices=2), 4),
    "EASGD": Method(_face(EASGD, learners=2, alpha=0.15), partial(elastic_averaging, alpha=0.15), 2),
    "LocalSGD": Method(_face(LocalSGD, learners=2, local_steps=3), partial(Mean, h=3), 2),
    "LocalSGD, 1 learner": Method(_face(LocalSGD, learners=1, local_steps=3), partial(Mean, h=3)),
    "PostLocalSGD": Method(
        _face(PostLocalSGD, learners=2, local_steps=4, switch=11), partial(LateMean, h=4, switch=11), 2
    ),
    "DiLoCo": Method(  # at the paper's outer momentum rounding errors grow a thousandfold here
        _face(DiLoCo, learners=2, local_steps=3, outer_momentum=0.3), partial(Outer, h=3, momentum=0.3), 2
    ),
    "ISGD": Method(
        _face(ISGD, batches=4, zeta=0.5, margin=0.1, stop=3), partial(Chart, batches=4, zeta=0.5, stop=3, margin=0.1)
    ),
    "DelayedSGD, layer-wise": Method(_face(DelayedSGD, layerwise=True), partial(Exchange, order="backward")),
    "DelayedSGD, layer-wise in buckets": Method(
        _face(DelayedSGD, layerwise=True, order="all", bucket_bytes=1000), partial(Exchange, order="all")
    ),
    "DelayedSGD, layer-wise as it arrives, delay 2": Method(
        _face(DelayedSGD, layerwise=True, order="completed", delay=2),
        partial(Exchange, order="completed", delay=2),
        drains=2,
    ),
    "DelayedSGD, delay 1": Method(_face(DelayedSGD, delay=1), partial(Exchange, delay=1), drains=1),
    "DelayedSGD, delay 3": Method(_face(DelayedSGD, delay=3), partial(Exchange, delay=3), drains=3),
}


def _by_default(kind: Any) -> Method:
    """An optimiser at its defaults, and the update rule that it is made of."""
    several = {"learners": 2} if "learners" in inspect.signature(kind).parameters else {}
    make = _face(kind, **several)

    def algorithm(optimizer: Any, collective: Any) -> Algorithm[Any]:
        return replace(make(network()).core.algorithm, optimizer=optimizer, collective=collective)

    return Method(make, algorithm, **several)


METHODS |= {  # every other optimiser that needs no setting besides a rate
    name: _by_default(kind)
    for name, kind in vars(optim).items()
    if isinstance(kind, type) and issubclass(kind, Steps) and name not in {*METHODS, "Softsync"}
}


def closure(opt: Any, module: nn.Module, inputs: Tensor, targets: Tensor) -> Any:
    """What computes a batch's loss and its gradients, afresh each time."""

    def compute() -> Tensor:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(module(inputs), targets)
        loss.backward()
        return loss

    return compute


def train(opt: Any, module: nn.Module, updates: int = UPDATES, first: int = 0, clip: float | None = None) -> None:
    """``updates`` updates from the one numbered ``first`` on, each learner of the job with its own batches."""
    inputs, targets = examples(next(module.parameters()).dtype)
    workers = opt.group.size * opt.learners
    for t in range(first, first + updates):
        for learner in range(opt.learners):
            batch = rows(t, opt.group.rank * opt.learners + learner, workers)
            opt.step(closure(opt, module, inputs[batch], targets[batch]))


def steps(opt: Any, module: nn.Module, first: int, count: int, after: Any = lambda: None) -> None:
    """So many batches from the one numbered ``first`` on, for whichever learner's turn it is."""
    inputs, targets = examples(next(module.parameters()).dtype)
    for t in range(first, first + count):
        opt.step(closure(opt, module, inputs[rows(t)], targets[rows(t)]))
        after()


def weights(module: nn.Module) -> Tensor:
    """Parameters and floating-point buffers as one vector."""
    values = [*module.parameters(), *module.buffers()]
    return torch.cat([value.detach().reshape(-1) for value in values if value.is_floating_point()])


class FusedTorch(TorchSGD):
    """The same solver by torch's fused kernel, on copies, parameter by parameter as torch's own optimiser."""

    def step(self, memory: Tensor, points: Tensor, grads: Tensor, lr: Tensor, part: slice = ALL) -> Stepped:
        x, v = points.clone(), memory.clone()
        options = {"momentum": self.momentum, "weight_decay": self.decay, "lr": lr.item()}
        starts = torch.tensor([0, *(p.numel() for p in _initial(0).parameters())]).cumsum(0)
        inside = starts[(starts >= (part.start or 0)) & (starts < (starts[-1] if part.stop is None else part.stop))]
        sizes = inside.diff(append=starts[-1:] if part.stop is None else torch.tensor([part.stop])).tolist()
        lists = [[own for row in rows.reshape(-1, sum(sizes)) for own in row.split(sizes)] for rows in (x, grads, v)]
        sgd(*lists, fused=True, dampening=0.0, nesterov=False, maximize=False, **options)
        return x, v


class Reference:
    """The reference implementation's own loop over k workers: a module per worker, for its buffers alone."""

    def __init__(self, method: Method, dtype: torch.dtype, workers: int, *, fused: bool = False):
        self.method, self.workers = method, workers
        self.modules = [network(dtype) for _ in range(workers)]
        self.inputs, self.targets = examples(dtype)
        self.solver = (FusedTorch if fused else TorchSGD)(MOMENTUM, DECAY)
        self.algorithm: Algorithm[Any] = method.algorithm(self.solver, Local(workers))
        self.rate = torch.tensor(RATE, dtype=torch.float64 if fused else dtype)  # the kernel takes Python's numbers
        x0 = torch.cat([p.detach().reshape(-1) for p in self.modules[0].parameters()])
        self.state: Any = self.algorithm.init(x0)
        self.t = 0

    def gradient(self, worker: int, point: Tensor, number: int) -> tuple[Tensor, Tensor]:
        """Loss [] and gradient [d] of a worker's batch, through its own module."""
        module = self.modules[worker]
        torch.nn.utils.vector_to_parameters(point, module.parameters())
        batch = rows(number, worker, self.workers)
        loss = nn.functional.cross_entropy(module(self.inputs[batch]), self.targets[batch])
        grads = torch.autograd.grad(loss, list(module.parameters()))
        return loss.detach(), torch.cat([grad.reshape(-1) for grad in grads])

    def update(self) -> None:
        turn = Turn(self.t, tuple(GradientRef(worker, self.t, self.t) for worker in range(self.workers)))
        ask = self.algorithm.points(self.state, turn)
        points = ask.parameters.repeat_interleave(torch.tensor(ask.shares), 0)
        pairs = [self.gradient(j, points[j].clone(), int(ask.batch[j])) for j in range(self.workers)]
        grads = torch.stack([grad for _, grad in pairs])
        sums = torch.stack([part.sum(0) for part in grads.split(ask.shares)])
        self.apply(turn, torch.stack([loss for loss, _ in pairs]), sums, self.sent(sums))

    def sent(self, sums: Tensor) -> tuple[Any, ...]:
        """The sums of every parameter, from the last to the first."""
        if not self.algorithm.sends:
            return ()
        ends = torch.tensor([p.numel() for p in self.modules[0].parameters()]).cumsum(0).tolist()
        parts = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        return tuple((part, CompletedSum(sums[0, part])) for part in reversed(parts))

    def apply(self, turn: Turn, losses: Tensor, sums: Tensor, sent: Any = ()) -> None:
        self.state = self.algorithm.update(self.state, turn, losses, sums, self.rate, sent)
        self.t += 1

    def train(self, updates: int = UPDATES) -> Tensor:
        """The weights and mean buffers of the evaluated model after so many iterations and the drain."""
        goal = updates
        charted = isinstance(self.algorithm, Chart)
        while (int(self.state.iteration) if charted else self.t) < goal or (charted and self.state.chasing):
            self.update()
        for _ in range(self.method.drains):
            self.apply(Turn(self.t, ()), torch.zeros(0), self.rate.new_zeros(1, self.state.x.numel()))
        model = network(self.inputs.dtype)
        point = self.algorithm.model(self.state)
        torch.nn.utils.vector_to_parameters(point, model.parameters())
        for places in zip(model.buffers(), *(m.buffers() for m in self.modules), strict=True):
            if places[0].is_floating_point():
                places[0].copy_(torch.stack([b.double() for b in places[1:]]).mean(0))
        return weights(model)
