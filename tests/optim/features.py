"""What an optimiser is tried for, alone and over processes: each feature of ``matrix.py`` as a function."""

from __future__ import annotations

import copy
import inspect
import io
import itertools
import tempfile
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from door import BATCH, EXAMPLES, closure, examples, network, weights
from torch import Tensor, nn

from suite import optim
from suite.communication.group import Group
from suite.optim import DelayedSGD, Softsync, load_file, parameter_server, save_file
from suite.optim.base import Algorithm

STEPS = 12  # batches a process trains on for a feature


class Optimiser(NamedTuple):
    make: Callable[..., Any]
    settings: dict[str, Any]

    def takes(self, setting: str) -> bool:
        return setting in inspect.signature(self.make).parameters


def served(module: nn.Module, params: Any = None, *, group: Group, learners: int, **settings: Any) -> Any:
    """The optimiser that ``with parameter_server`` gives."""
    if group.size > 1:
        settings["n"] = group.size - 1  # asynchronous too
    with parameter_server(module, params, updates=STEPS, learners=learners, group=group, **settings) as opt:
        return opt


OPTIMISERS = {
    "SMA": Optimiser(optim.SMA, {}),
    "EASGD": Optimiser(optim.EASGD, {"alpha": 0.2}),
    "LocalSGD": Optimiser(optim.LocalSGD, {"local_steps": 3}),
    "DiLoCo": Optimiser(optim.DiLoCo, {"local_steps": 3}),
    "ISGD": Optimiser(optim.ISGD, {"batches": 8, "zeta": 0.1, "margin": 0.5}),
    "DelayedSGD": Optimiser(DelayedSGD, {"delay": 1}),
    "DelayedSGD, layer-wise": Optimiser(DelayedSGD, {"layerwise": True}),
    "Softsync": Optimiser(served, {"n": 2}),
}
EXPORTED = {name: getattr(optim, name) for name in optim.__all__}
OPTIMISERS |= {  # those that need no setting besides a rate, in rounds that end within STEPS
    name: Optimiser(kind, {"local_steps": 3} if "local_steps" in inspect.signature(kind).parameters else {})
    for name, kind in EXPORTED.items()
    if isinstance(kind, type) and issubclass(kind, Algorithm) and name not in (*OPTIMISERS, "PostLocalSGD")
}
PROCESSES = {1: "one process", 2: "several processes"}


class Job:
    """One optimiser in the processes at hand, and the loop of its user."""

    def __init__(self, name: str, group: Group):
        self.name, self.group, self.kind = name, group, OPTIMISERS[name]
        self.made: Any = None  # the optimiser made last

    def make(self, module: nn.Module, params: Any = None, **settings: Any) -> Any:
        several = {"learners": 2} if self.kind.takes("learners") else {}
        options = {"lr": 0.05, "momentum": 0.9, **several, **self.kind.settings, **settings}
        self.made = self.kind.make(module, params, group=self.group, **options)
        return self.made

    def fit(
        self,
        opt: Any,
        module: nn.Module,
        *,
        first: int = 0,
        steps: int = STEPS,
        between: Callable[[], Any] = lambda: None,
        after: Callable[[], Any] = lambda: None,
        loss_of: Callable[[Tensor, Tensor], Tensor] | None = None,
        inside: Callable[[], Any] = nullcontext,
        backwards: int = 1,
        scaler: Any = None,
    ) -> list[float]:
        """The losses of ``steps`` batches: ``between`` comes between backward and step, ``after`` after the step."""
        inputs, targets = examples()
        seen: list[float] = []
        criterion = loss_of or (lambda x, y: nn.functional.cross_entropy(module(x).float(), y))

        def compute(batch: Tensor) -> Tensor:
            opt.zero_grad()
            for part in batch.chunk(backwards):
                with inside():
                    loss = criterion(inputs[part], targets[part])
                (loss if scaler is None else scaler.scale(loss)).backward()
            between()
            return loss

        numbers = range(first, first + steps)
        for number in opt.batches(itertools.count()) if isinstance(opt, Softsync) and steps == STEPS else numbers:
            batch = (torch.arange(BATCH) + (number * self.group.size + self.group.rank) * BATCH) % EXAMPLES
            if scaler is not None:
                loss = compute(batch)
                scaler.step(opt, *([partial(compute, batch)] if self.name == "ISGD" else []))
                scaler.update()
            else:
                loss = opt.step(partial(compute, batch))
            seen.append(loss.item())
            after()
        if isinstance(opt, DelayedSGD):
            opt.finish()
        return seen

    @property
    def serves(self) -> bool:
        """Whether this process sees no batch."""
        return self.name == "Softsync" and self.group.size > 1 and self.group.rank == 0


def falls(losses: list[float]) -> bool:
    return not losses or sum(losses[-6:]) < sum(losses[:6])


def the_loop(job: Job) -> None:
    module = network()
    opt = job.make(module)
    assert falls(job.fit(opt, module))
    assert isinstance(opt.average(), nn.Sequential)


def groups(job: Job) -> None:
    module = network()
    body, head = list(module[0].parameters()), list(module[-1].parameters())
    begun = [p.detach().clone() for p in head]
    plain = {"stop": 0} if job.name == "ISGD" else {}  # its extra steps move all groups alike
    opt = job.make(module, [{"params": body, "weight_decay": 0.1}, {"params": head, "lr": 0.0}], **plain)
    job.fit(opt, module)
    model = opt.average()
    assert all(torch.equal(a, b) for a, b in zip(model[-1].parameters(), begun, strict=True))
    assert not torch.equal(model[0].weight, network()[0].weight)
    assert torch.equal(model[4].weight, network()[4].weight), "a parameter in no group moved"


def frozen(job: Job) -> None:
    module = network()
    module[0].requires_grad_(False)
    opt = job.make(module, weight_decay=0.1)
    job.fit(opt, module)
    model = opt.average()
    assert torch.equal(model[0].weight, network()[0].weight)
    assert not torch.equal(model[4].weight, network()[4].weight)


def clipping(job: Job) -> None:
    ends = []
    for most in (None, 1e-3):
        module = network()
        opt = job.make(module, momentum=0.0)
        clip = lambda: nn.utils.clip_grad_norm_(module.parameters(), most) if most else None  # noqa: B023
        job.fit(opt, module, between=clip)
        moved = weights(opt.average())[: opt.vector.d] - weights(network())[: opt.vector.d]
        ends.append(nn.utils.get_total_norm([p.detach() - q for p, q in _pairs(opt.average())]).item())
        assert moved.isfinite().all()
    assert 0 < ends[1] < 2 * STEPS * 0.05 * 1e-3 * job.group.size < ends[0]


def _pairs(model: nn.Module) -> list[tuple[Tensor, Tensor]]:
    return list(zip(model.parameters(), network().parameters(), strict=True))


def schedulers(job: Job) -> None:
    """The rate that one says is the rate that counts, so a rate of 0 stops everything; more are in torch_rows.py."""
    module, rates = network(), list[float]()
    opt = job.make(module, momentum=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(opt, 8, 0.0)
    job.fit(opt, module, after=lambda: (scheduler.step(), rates.append(opt.param_groups[0]["lr"])))
    assert job.serves or len(set(rates)) > 1
    plain = {"stop": 0} if job.name == "ISGD" else {}  # its extra steps have a rate of their own
    module = network()
    opt = job.make(module, **plain)
    torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 0.0)
    job.fit(opt, module)
    assert all(torch.equal(now, begun) for now, begun in _pairs(opt.average())), "moved at a rate of nothing"


def _interrupted(job: Job, trip: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    ends = []
    warnings.filterwarnings("ignore", "model.state_dict")  # a training to go on with is what is kept here
    trip(job.make(network()).state_dict())
    for stops in (False, True):
        torch.manual_seed(job.group.rank)
        module = noisy()
        opt = job.make(module)
        for first in (0, STEPS // 2 - 1):
            if first and stops:
                state, held, random = trip(opt.state_dict()), trip(module.state_dict()), torch.get_rng_state()
                module = copy.deepcopy(module)
                with torch.no_grad():
                    module[0].weight.fill_(7)
                opt = job.make(module)
                module.load_state_dict(held)
                opt.load_state_dict(state)
                torch.set_rng_state(random)
            _raw_fit(job, opt, module, first)
        ends.append(torch.cat([weights(module), weights(opt.average())]))
    assert torch.equal(ends[0], ends[1])


def noisy() -> nn.Module:
    """With batch norm and dropout."""
    module = network()
    module.insert(5, nn.Dropout(0.3))
    return module


def _raw_fit(job: Job, opt: Any, module: nn.Module, first: int) -> None:
    inputs, targets = examples()
    for number in range(first, first + STEPS // 2 - 1):  # an odd number of batches: in the middle of a round
        batch = (torch.arange(BATCH) + (number * job.group.size + job.group.rank) * BATCH) % EXAMPLES
        opt.step(closure(opt, module, inputs[batch], targets[batch]))


def by_torch_save(job: Job) -> None:
    def trip(state: dict[str, Any]) -> dict[str, Any]:
        stream = io.BytesIO()
        torch.save(state, stream)
        stream.seek(0)
        return torch.load(stream, weights_only=True)

    _interrupted(job, trip)


def by_safetensors(job: Job) -> None:
    def trip(state: dict[str, Any]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            save_file(state, Path(folder, "state"))
            return load_file(Path(folder, "state"))

    _interrupted(job, trip)


def adding_a_group(job: Job) -> None:
    module = network()
    module[0].requires_grad_(False)
    opt = job.make(module)
    if job.name != "Softsync":
        job.fit(opt, module, steps=STEPS - 6)
    still = weights(opt.average()[0])
    module[0].requires_grad_(True)
    opt.add_param_group({"params": module[0].parameters(), "lr": 0.02})
    job.fit(opt, module, first=STEPS - 6, steps=6)  # a round of any of them
    assert torch.equal(still, weights(network()[0]))
    assert not torch.equal(weights(opt.average()[0]), still)


def mixed_types(job: Job) -> None:
    module = network()
    module[4].bfloat16()
    opt = job.make(module)
    forward = lambda x: module[6](module[5](module[4](module[:4](x).bfloat16()).float()))
    assert falls(job.fit(opt, module, loss_of=lambda x, y: nn.functional.cross_entropy(forward(x), y)))
    assert opt.vector.dtype == torch.float32
    assert opt.average()[4].weight.dtype == torch.bfloat16


def autocast(job: Job) -> None:
    module = network()
    opt = job.make(module)
    assert falls(job.fit(opt, module, inside=lambda: torch.autocast("cpu", torch.bfloat16)))


def grad_scaler(job: Job) -> None:
    """Loss scaling, where an overflow in one process makes all skip the step."""
    module = network()
    opt = job.make(module)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    losses = iter(range(STEPS * 8))

    def overflow() -> None:
        if next(losses) == 6 and job.group.rank == job.group.size - 1:
            next(module.parameters()).grad.fill_(torch.inf)

    assert falls(job.fit(opt, module, between=overflow, scaler=scaler))
    assert weights(opt.average()).isfinite().all()
    assert job.serves or scaler.get_scale() == 512.0 or job.group.rank == 0 < job.group.size - 1


def unscaling(job: Job) -> None:
    """Gradients unscaled and clipped between backward and step."""
    module = network()
    opt = job.make(module)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def clip() -> None:
        scaler.unscale_(opt)
        assert nn.utils.clip_grad_norm_(module.parameters(), 100.0) < 100

    assert falls(job.fit(opt, module, between=clip, scaler=scaler))


def compiled(job: Job) -> None:
    torch._dynamo.reset()
    module = torch.compile(network(), backend="eager")
    opt = job.make(module)
    assert falls(job.fit(opt, module))
    plain = network()
    again = job.make(plain)
    job.fit(again, plain)
    if not isinstance(opt, Softsync) or job.group.size == 1:
        assert torch.equal(weights(opt.average()), weights(again.average()))


def accumulation(job: Job) -> None:
    module = network()
    opt = job.make(module)
    assert falls(job.fit(opt, module, backwards=2))


def distributed_data_parallel(job: Job) -> None:
    wrapped = object.__new__(nn.parallel.DistributedDataParallel)
    nn.Module.__init__(wrapped)
    wrapped.module = network()
    job.make(wrapped)


def sparse(job: Job) -> None:
    module = nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Flatten(), nn.Linear(4 * BATCH, 3))
    opt = job.make(module)
    for _ in opt.batches(itertools.count()) if isinstance(opt, Softsync) else range(4):

        def compute() -> Tensor:
            opt.zero_grad()
            loss = module(torch.arange(BATCH)[None] % 9).square().mean()
            loss.backward()
            return loss

        opt.step(compute)


def freezing_later(job: Job) -> None:
    module = network()
    opt = job.make(module)
    module[0].requires_grad_(False)
    job.fit(opt, module)


def without_closure(job: Job) -> None:
    module = network()
    opt = job.make(module)
    inputs, targets = examples()
    for _ in opt.batches(itertools.count()) if isinstance(opt, Softsync) else range(4):
        opt.zero_grad()
        nn.functional.cross_entropy(module(inputs), targets).backward()
        opt.step()
    assert opt.t


def zeroed(job: Job) -> None:
    """Gradients that are kept and zeroed instead of forgotten."""
    ends = []
    for forgotten in (True, False):
        module = network()
        opt = job.make(module)
        opt.zero_grad = partial(opt.zero_grad, forgotten)
        assert falls(job.fit(opt, module))
        ends.append(weights(opt.average()))
    assert torch.equal(*ends) or (job.name == "Softsync" and job.group.size > 1)
