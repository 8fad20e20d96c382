"""What worker processes run in the tests of the optimisers: importable by name, results as plain lists."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import runpy
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from door import DECAY, METHODS, MOMENTUM, RATE, closure, examples, network, rows, train, weights
from features import OPTIMISERS, Job
from matrix import FEATURES, tried
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from suite.communication.group import Group
from suite.optim import EASGD, SMA, DelayedSGD, WorkerLost, joining, parameter_server, share


def equal_to_reference(group: Group, names: list[str], dtype: str) -> dict[str, list[float]]:
    """The evaluated model of each method after the updates, one start of the processes for all."""
    found = {}
    for name in names:
        module = network(getattr(torch, dtype), seed=group.rank)  # only process 0's weights count
        opt = METHODS[name].make(module, fused=False, group=group)
        train(opt, module)
        if METHODS[name].drains:
            opt.finish()
        found[name] = weights(opt.average()).tolist()
    return found


def serve(group: Group, n: int, updates: int, per_gradient: bool) -> dict[str, Any] | list[float]:
    """The server's weights, clocks and buffers; on a learner the weights it holds at the end."""
    module = network(torch.float64, seed=group.rank)
    inputs, targets = examples(torch.float64)
    settings = {"lr": RATE, "momentum": MOMENTUM, "weight_decay": DECAY, "n": n, "per_gradient": per_gradient}
    with parameter_server(module, updates=updates, group=group, **settings) as opt:
        for number in opt.batches(itertools.count()):
            batch = rows(number, group.rank - 1, group.size - 1)
            opt.step(closure(opt, module, inputs[batch], targets[batch]))
    if group.rank:
        return opt.vector.x.tolist()
    turns = [[turn.t, [list(entry) for entry in turn.entries]] for turn in opt.served.turns]
    return {
        "x": opt.vector.x.tolist(),
        "turns": turns,
        "losses": opt.served.losses,
        "model": weights(opt.average()).tolist(),
    }


def serve_and_test(
    group: Group, updates: int, epoch: int, done: str
) -> tuple[list[Any], list[Any], list[float], float]:
    """What the statistics server observed, the losses that the server saw, and the loss of the model at the end.

    No model is tested before the server has ended and written the file ``done``. The last step has no closure.
    """
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 3)).double()
    torch.nn.init.zeros_(module[1].weight)
    inputs, targets = examples(torch.float64)

    def loss(model: torch.nn.Module) -> float:
        while not Path(done).exists():
            time.sleep(0.01)
        return float(torch.nn.functional.cross_entropy(model(inputs), targets))

    settings = {"lr": RATE, "n": 1, "updates": updates, "group": group, "evaluate": loss, "epoch": epoch}
    with parameter_server(module, **settings) as opt:
        for number in opt.batches(itertools.count()):
            ready = closure(opt, module, inputs[rows(number)], targets[rows(number)])
            if number == updates - 1:
                ready()
            opt.step(ready if number < updates - 1 else None)
        if opt.is_server:
            Path(done).touch()
    return opt.observed.losses, opt.observed.tests, opt.served.losses, loss(opt.average())


def cycled(group: Group) -> list[list[Any]]:
    """The settings of each update under a schedule of rate and momentum, and the weights at the end."""
    module = network()
    groups = [{"params": module[0].parameters()}, {"params": module[4:].parameters(), "weight_decay": DECAY}]
    inputs, targets = examples()
    seen: list[Any] = []
    names = ("lr", "momentum", "weight_decay")
    watch = lambda turn: seen.append([[held[name] for name in names] for held in opt.param_groups])
    settings = {"lr": RATE, "momentum": MOMENTUM, "n": 0, "updates": 12, "learners": 1, "watch": watch}
    with parameter_server(module, groups, group=group, fused=False, **settings) as opt:
        schedule = torch.optim.lr_scheduler.OneCycleLR(opt, [0.5, 0.3], total_steps=20)
        for number in opt.batches(itertools.count()):
            opt.step(closure(opt, module, inputs[rows(number)], targets[rows(number)]))
            schedule.step()
            for held in opt.param_groups:
                held["weight_decay"] /= 3
    return [seen, opt.vector.x.tolist()]


def serve_and_lose(group: Group, n: int, lost: int, report: str) -> None:
    """Process ``lost`` is killed at its fourth batch, or as the server at its fourth update.

    The others write their ends to ``report`` and their rank.
    """
    die, dying = lambda: os.kill(os.getpid(), signal.SIGKILL), Path(f"{report} dying")
    module = network(seed=group.rank)
    inputs, targets = examples()
    said = {}
    try:
        watch = lambda turn: die() if lost == 0 and turn.t == 3 else None
        with parameter_server(module, lr=RATE, n=n, updates=60, group=group, watch=watch) as opt:
            for number in opt.batches(itertools.count()):
                if group.rank == lost and number == 3:
                    dying.touch()
                    die()
                while lost and number == 3 and not dying.exists():  # the last update must not come before
                    time.sleep(0.01)
                opt.step(closure(opt, module, inputs[rows(number)], targets[rows(number)]))
        said = {"t": opt.t, "lost": list(opt.served.lost)}
    except WorkerLost as error:
        said = {"error": str(error)}
    Path(f"{report}{group.rank}").write_text(json.dumps(said))


def different_graphs(group: Group) -> dict[str, list[float]]:
    """Layer-wise exchange where process 0 leaves a layer out of every other batch; one layer is used twice."""
    ends = {}
    for way in ("copied", "written"):
        torch.manual_seed(3)
        used, sometimes = nn.Linear(4, 4).double(), nn.Linear(4, 4).double()
        module = nn.Sequential(used, sometimes)
        opt = DelayedSGD(module, lr=RATE, layerwise=True, order="completed", delay=1, group=group)
        for t in range(6):
            x = used(used(torch.full((2, 4), t + group.rank + 1.0).double()))
            opt.zero_grad(set_to_none=way == "copied")
            (sometimes(x) if group.rank or t % 2 else x).square().mean().backward()
            opt.step()
        opt.finish()
        ends[way] = weights(module).tolist()
    return ends


def rolled_back(group: Group, stepped: bool, written: bool, options: dict[str, Any]) -> list[float]:
    """The weights after two gradients of 1, from a state, or weights, loaded while one of 100 is on its way."""
    module = nn.Linear(3, 1).double()
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    opt = DelayedSGD(module, lr=1.0, group=group, **options)
    begun = opt.state_dict()

    def backward(value: float) -> None:
        opt.zero_grad()
        module(torch.full((1, 3), value).double()).sum().backward()

    backward(100.0)
    if stepped:
        opt.step()
    if written:
        opt.take_up()
    else:
        opt.load_state_dict(begun)
    for _ in range(2):
        backward(1.0)
        opt.step()
    opt.finish()
    return module.weight.tolist()[0]


def differ(group: Group, whats: list[str]) -> list[str]:
    """How each of these is refused."""
    said = []
    for what in whats:
        try:
            bring(group, what)
        except ValueError as error:
            said.append(str(error))
    return said


def bring(group: Group, what: str) -> None:
    """Bring something else to process 1 than to process 0."""
    odd = group.rank == 1
    if what == "data":
        share(TensorDataset(torch.zeros(100 + odd)))
    elif what == "model":
        DelayedSGD(nn.Linear(5, 3 + odd), lr=RATE, group=group)
    elif what == "learners":
        SMA(network(), lr=RATE, learners=2 + odd, group=group)
    elif what in ("schedule", "drift saved", "drift averaged"):  # by losses that are not all processes'
        module = network()
        opt = DelayedSGD(module, lr=0.1, group=group)
        opt.param_groups[0]["lr"] /= 1 + odd
        if what != "schedule":
            opt.step(closure(opt, module, *examples()))
            opt.param_groups[0]["lr"] = 0.1
        opt.average() if what == "drift averaged" else opt.save(Path(os.devnull) / "nowhere")
    else:
        settings = {"lr": 0.2 if odd and what == "rate" else 0.1, "delay": int(odd and what == "delay")}
        DelayedSGD(network(), group=group, **settings)


def joined_without_a_backend(group: Group) -> list[Any]:
    """What the caller's group is taken to exchange over, and a weight after an update in each process."""
    dist.destroy_process_group()
    dist.init_process_group(store=dist.PrefixStore("own", group._store), rank=group.rank, world_size=group.size)
    module = nn.Linear(1, 1, bias=False)
    nn.init.ones_(module.weight)
    opt = DelayedSGD(module, lr=1.0)
    module(torch.full((1, 1), -2.0 * group.rank)).sum().backward()
    opt.step()
    joining.group().heartbeat.stop()
    return [opt.group.backend, module.weight.item()]


def partly_lost(group: Group, folder: str) -> list[Any]:
    """What is taken up where nobody has anything, where process 1 lacks the newest state, and has it damaged.

    And whether that state is there after another has been written.
    """

    def made(delay: int = 1) -> DelayedSGD:
        return DelayedSGD(network(), lr=RATE, delay=delay, group=group)

    opt = made()
    found: list[Any] = [opt.resume(f"{folder}/none")]
    opt.save(folder, at=0)
    own, newer = (Path(folder, name, f"worker-{group.rank}") for name in ("update-0", "update-9"))
    if group.rank == 0:
        shutil.copytree(own, newer)
    found.append(made().resume(folder))
    if group.rank == 1:
        newer.mkdir()
        (newer / "checkpoint").write_bytes(b"x" + (own / "checkpoint").read_bytes()[:-1])
    found.append(made().resume(folder))
    try:
        made(delay=2).resume(folder)
    except ValueError as error:
        found.append(str(error))
    opt.save(folder, at=0)
    return [*found, newer.exists()]


def every_cell(group: Group) -> dict[str, str]:
    """What came of each optimiser and feature."""
    return {f"{name}/{feature}": tried(Job(name, group), feature) for name in OPTIMISERS for feature in FEATURES}


def problem(size: str) -> tuple[nn.Module, Tensor, Tensor]:
    """The small network, or torchvision's ResNet-18 with CIFAR-10; with batch norm and dropout both."""
    if size == "toy":
        return nn.Sequential(network(), nn.Dropout(0.1)), *examples()
    from torchvision.models import resnet18

    from suite.data.images import load_images

    torch.manual_seed(0)
    images = load_images("cifar10", "train")
    mean = torch.tensor([0.491, 0.482, 0.447])[:, None, None]
    return resnet18(num_classes=10), (images.inputs[:10_000].float() / 255 - mean) * 4, images.targets[:10_000]


def averaged(
    group: Group, size: str, updates: int, learners: int, folder: str = "", dies: int = -1
) -> dict[str, Any]:
    """SMA with batches drawn by update and learner; ends by a kill of process 1 at update ``dies``."""
    torch.manual_seed(3)
    module, inputs, targets = problem(size)
    opt = SMA(module, lr=0.02, momentum=0.9, learners=learners, group=group)
    losses = opt.resume(folder).get("losses", []) if folder else []
    for t in range(opt.t, updates):
        if folder and t % (updates // 4) == 0:
            opt.save(folder, losses=losses)
        if t == dies and group.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        for learner in range(learners):
            draw = torch.Generator().manual_seed(1000 * t + group.rank * learners + learner)
            batch = torch.randint(len(inputs), (16,), generator=draw)
            losses.append(opt.step(closure(opt, module, inputs[batch], targets[batch])).item())
    return {"losses": losses, "model": weights(opt.average()).tolist(), "begun": opt.t}


def meets_others(group: Group, what: str, report: str) -> None:
    """How a process ends whose other one does something else at its fourth batch, in a group of the caller's own."""
    dist.destroy_process_group()
    store = dist.PrefixStore("own", group._store)
    dist.init_process_group("gloo", store=store, rank=group.rank, world_size=group.size)
    joining.group()
    module = network()
    opt = SMA(module, lr=RATE)
    assert opt.learners == 1
    deviations: dict[str, Any] = {
        "average": opt.average,
        "save": lambda: opt.save(f"{report} saved"),
        "take up": opt.take_up,
    }
    if what == "save":  # what saving imports keeps a process from signing while others count its silence
        opt.save(f"{report} saved")
    inputs, targets = examples()
    begun = time.monotonic()
    try:
        for t in range(6):
            if t == 3:  # both are under way: from here on a short silence counts, not the start of a slow machine
                joining.group(timeout=4)
            begun = time.monotonic()
            if t == 3 and group.rank == 1:
                deviations[what]()
            opt.step(closure(opt, module, inputs[rows(t)], targets[rows(t)]))
        said = "went on"
    except WorkerLost as error:
        said = str(error)
    Path(f"{report}{group.rank}").write_text(json.dumps([said, time.monotonic() - begun]))


def example(group: Group, path: str, arguments: list[str], folder: str) -> str:
    """What a program prints that is run in a folder."""
    os.chdir(folder)
    sys.argv = [path, *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        runpy.run_path(path, run_name="__main__")
    return said.getvalue()


def all_unequal(group: Group, names: list[str]) -> dict[str, Any]:
    return {name: unequal(group, name) for name in names}


def unequal(group: Group, name: str) -> dict[str, Any]:
    """Process 1 has three batches and process 0 seven."""
    module = network(torch.float64)
    opt = {
        "SMA": lambda: SMA(module, lr=RATE, momentum=MOMENTUM, group=group),
        "two learners": lambda: SMA(module, lr=RATE, learners=2, group=group),
        "AdamW": lambda: SMA(module, lr=0.01, base=torch.optim.AdamW, group=group),
        "EASGD": lambda: EASGD(module, lr=RATE, alpha=0.3, group=group),
        "DelayedSGD": lambda: DelayedSGD(module, lr=RATE, momentum=MOMENTUM, group=group),
        "delay 1": lambda: DelayedSGD(module, lr=RATE, delay=1, group=group),
    }[name]()
    inputs, targets = examples(torch.float64)
    with opt.join():
        for t in range(3 if group.rank else 7):
            opt.step(closure(opt, module, inputs[rows(t)], targets[rows(t)]))
    opt.step(closure(opt, module, inputs[rows(7)], targets[rows(7)]))  # as before from here on
    parameters = list(opt.average().parameters())
    return {"t": opt.t, "model": nn.utils.parameters_to_vector(parameters).tolist()}


def beside_ddp(group: Group) -> dict[str, list[list[float]]]:
    """The weights after ten steps by synchronous exchange and by DistributedDataParallel, with several bases."""
    inputs, targets = examples(torch.float64)
    found: dict[str, list[list[float]]] = {}
    bases = {"SGD": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9}), "AdamW": (torch.optim.AdamW, {"lr": 0.01})}
    for (name, (base, settings)), layerwise in itertools.product(bases.items(), (False, True)):
        ends = []
        for ours in (True, False):
            module = nn.Sequential(nn.Flatten(), nn.Linear(36, 5), nn.Tanh(), nn.Linear(5, 3)).double()
            for number, parameter in enumerate(module.parameters()):
                nn.init.constant_(parameter, 0.1 * number)
            model = module if ours else nn.parallel.DistributedDataParallel(module)
            opt: Any = (
                DelayedSGD(module, base=base, layerwise=layerwise, group=group, **settings)
                if ours
                else base(module.parameters(), **settings)
            )
            for t in range(10):
                batch = rows(t, group.rank, group.size)
                opt.step(closure(opt, model, inputs[batch], targets[batch]))
            ends.append(nn.utils.parameters_to_vector(module.parameters()).tolist())
        found[f"{name}, {layerwise}"] = ends
    return found
