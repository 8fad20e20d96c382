"""What worker processes run in these tests: importable by name, results as plain lists."""

from __future__ import annotations

import os
import shutil
import signal
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from reference_impls.crossbow import SMA
from reference_impls.matex_agd import DelayedSGD
from suite.communication import link as netlab
from suite.communication.collectives import Processes
from suite.communication.group import Group
from suite.distributed.training import Training, share
from suite.training.optimizers import CaffeSGD

EXAMPLES, UPDATES, BATCH = 96, 12, 24


def network(seed: int = 0, width: int = 7) -> nn.Module:
    """A small network in float64 with batch-independent layers."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, width), nn.Tanh(), nn.Linear(width, 6), nn.ReLU(), nn.Linear(6, 3)).double()


def examples() -> tuple[Tensor, Tensor]:
    """Inputs [N, 5] and classes [N]."""
    draw = torch.Generator().manual_seed(1)
    return torch.randn(EXAMPLES, 5, generator=draw).double(), torch.randint(3, (EXAMPLES,), generator=draw)


def batch_of(t: int, worker: int, workers: int) -> Tensor:
    """This worker's share of the joint batch of update t."""
    joint = torch.arange(t * BATCH, (t + 1) * BATCH) % EXAMPLES
    return joint.view(workers, -1)[worker]


def train(group: Group, options: dict[str, Any], bucket_bytes: int = 0, drain: bool = True) -> list[float]:
    """The weights after training with ``DelayedSGD`` of these options and, if asked for, the drain."""
    module = network(seed=group.rank)  # only worker 0's weights count
    inputs, targets = examples()
    training = Training(
        module,
        group,
        partial(DelayedSGD, **options),
        rate=0.1,
        optimizer=CaffeSGD(0.9, 1e-2),
        examples=EXAMPLES,
        bucket_bytes=bucket_bytes,
    )
    for t in range(UPDATES):
        rows = batch_of(t, group.rank, group.size)
        training.update(nn.functional.cross_entropy(module(inputs[rows]), targets[rows]))
    if drain:
        training.finish()
    with training.evaluated() as model:
        return torch.cat([p.reshape(-1) for p in model.parameters()]).tolist()


def several(group: Group, cases: list[dict[str, Any]]) -> list[list[float]]:
    """``train`` for each case in one start of the processes."""
    return [train(group, **case) for case in cases]


def exchange(group: Group, lanes: int) -> dict[str, Any]:
    """Sums of vectors of several sizes, all under way at once, over one or several lanes."""
    collective = Processes(group, lanes=lanes)
    sizes = (1, 10, 1000, 50_000)
    flights = [collective.start(torch.full((1, s), float(group.rank + 1), dtype=torch.float64)) for s in sizes]
    sums = [flight.wait() for flight in flights]
    in_place = Processes(group, in_place=True)
    rows = torch.full((1, 5), float(group.rank), dtype=torch.float64)
    total = in_place.sum(rows)
    kept = torch.full((1, 5), float(group.rank), dtype=torch.float64)
    Processes(group).sum(kept)
    return {
        "sums": [s.unique().tolist() for s in sums],
        "done": all(flight.done() for flight in flights),
        "same memory": total.data_ptr() == rows.data_ptr(),
        "untouched": kept.unique().tolist() == [float(group.rank)],
        "rows": Processes(group, rows=3).sum(torch.ones(3, 4)).tolist(),
    }


def one_row_per_process(group: Group) -> int:
    return Processes(group, rows=3).workers


def parts(group: Group, total: int) -> list[int]:
    return list(share(total, group))


def other_model(group: Group) -> None:
    Training(network(width=7 + (group.rank == 1)), group, DelayedSGD, rate=0.1)


def other_data(group: Group) -> None:
    Training(network(), group, DelayedSGD, rate=0.1, examples=100 + (group.rank == 2))


def other_settings(group: Group) -> None:
    Training(network(), group, partial(DelayedSGD, delay=group.rank), rate=0.1)


def loses_one(group: Group, how: str) -> None:
    """Worker 1 dies, stops or dawdles after its third update while the others go on."""
    module, (inputs, targets) = network(), examples()
    training = Training(module, group, partial(DelayedSGD, delay=1), rate=0.1)
    for t in range(50):
        if group.rank == 1 and t == 3:
            if how == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            elif how == "stops":
                os.kill(os.getpid(), signal.SIGSTOP)
            elif how == "raises":
                raise ValueError("this worker's data ended")
            else:
                time.sleep(600)
        rows = batch_of(t, group.rank, 4)
        training.update(nn.functional.cross_entropy(module(inputs[rows]), targets[rows]))


def different_graphs(group: Group) -> list[float]:
    """Layer-wise exchange where worker 0 leaves a parameter out of every other batch and uses one twice."""

    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.sometimes = nn.Linear(4, 4).double(), nn.Linear(4, 4).double()

        def forward(self, x: Tensor, more: bool) -> Tensor:
            x = self.used(self.used(x))
            return (self.sometimes(x) if more else x).square().mean()

    torch.manual_seed(3)
    module = Branching()
    training = Training(module, group, partial(DelayedSGD, segmented=True, order="completed"), rate=0.05)
    for t in range(6):
        x = torch.full((2, 4), float(t + group.rank + 1)).double()
        training.update(module(x, more=group.rank != 0 or t % 2 == 0))
    return training.flat.x.tolist()


def timed_exchange(group: Group, interfaces: tuple[str, str], rates: tuple[float, ...]) -> list[float]:
    """Median seconds of a sum of 2 MB at each rate."""
    collective, seconds = Processes(group), []
    rows = torch.ones(1, 500_000)
    for rate in rates:
        netlab.shape(interfaces[group.rank], rate)
        collective.sum(rows)
        times = []
        for _ in range(5):
            began = time.perf_counter()
            collective.sum(rows)
            times.append(time.perf_counter() - began)
        seconds.append(sorted(times)[2])
    return seconds


def stuck_beside_a_dead_worker(group: Group) -> None:
    """Worker 1 dies while worker 0 is in code of its own that no failed sum can interrupt."""
    if group.rank:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)


def averaging(group: Group) -> list[float]:
    """The averaged model after training with synchronous model averaging, each worker on its own share."""
    module, (inputs, targets) = network(), examples()
    training = Training(module, group, SMA, rate=0.1)
    for t in range(UPDATES):
        rows = batch_of(t, group.rank, group.size)
        training.update(nn.functional.cross_entropy(module(inputs[rows]), targets[rows]))
    with training.evaluated() as model:
        return torch.cat([p.reshape(-1) for p in model.parameters()]).tolist()


def noisy(seed: int) -> nn.Module:
    """A network whose training also depends on running statistics and on random numbers."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 3)).double()


def step(training: Training, t: int) -> None:
    """One batch for each learner of this worker."""
    inputs, targets = examples()
    for _ in range(training.learners):
        rows = batch_of(t, training.group.rank, training.group.size)
        training.update(nn.functional.cross_entropy(training.module(inputs[rows]), targets[rows]))


def whole_state(training: Training) -> list[float]:
    with training.evaluated() as model:
        found = [value.double().reshape(-1) for value in model.state_dict().values()]
    return torch.cat([training.flat.x.detach().double(), *found]).tolist()


def made(group: Group, case: tuple[str, dict[str, Any], int], seed: int) -> Training:
    name, options, learners = case
    rule = partial({"matex_agd": DelayedSGD, "crossbow": SMA}[name], **options)
    return Training(noisy(seed), group, rule, rate=0.1, momentum=0.9, learners=learners)


def interrupted(group: Group, folder: str, cases: list[tuple[str, dict[str, Any], int]]) -> list[dict[str, Any]]:
    """Each case without interruption, and ended after seven updates and taken up by another training."""
    seen = []
    for number, case in enumerate(cases):
        ends = []
        for stops in (False, True):
            training = made(group, case, seed=group.rank)
            torch.manual_seed(100 + group.rank)
            done: dict[str, Any] = {}
            for t in range(UPDATES):
                if stops and t in (4, 7):
                    training.rate = 0.05
                    training.save(f"{folder}/{number}", at=t)
                elif t in (4, 7):
                    training.rate = 0.05
                if stops and t == 7:
                    torch.manual_seed(5)
                    training = made(group, case, seed=50 + group.rank)
                    done = training.resume(f"{folder}/{number}")
                step(training, t)
            training.finish()
            ends.append(whole_state(training))
        seen.append({"straight": ends[0], "interrupted": ends[1], "plain": done})
    return seen


def partly_lost(group: Group, folder: str) -> list[Any]:
    """What is taken up where worker 1 lacks the newest checkpoint, has it damaged, and where nobody has any."""
    case = ("matex_agd", {"delay": 1}, 1)
    training = made(group, case, 0)
    found: list[Any] = [training.resume(f"{folder}/none")]
    step(training, 0)
    training.save(folder, at=1)
    own, newer = (Path(folder, name, f"worker-{group.rank}") for name in ("update-1", "update-9"))
    if group.rank == 0:
        shutil.copytree(own, newer)
    found.append(made(group, case, 0).resume(folder))
    if group.rank == 1:
        newer.mkdir()
        (newer / "checkpoint").write_bytes(b"x" + (own / "checkpoint").read_bytes()[:-1])
    found.append(made(group, case, 0).resume(folder))
    try:
        made(group, ("matex_agd", {"delay": 2}, 1), 0).resume(folder)
    except ValueError as error:
        found.append(str(error))
    return found


def surroundings(group, name: str) -> tuple[str | None, int]:
    """An environment variable, and how many threads compute."""
    return os.environ.get(name), torch.get_num_threads()


def listening(group: Group) -> list[str]:
    """Addresses at which this process takes connections, while the group is together."""
    import psutil

    Processes(group).sum(torch.zeros(1, 1))
    found = psutil.Process().net_connections(kind="inet")
    return sorted({one.laddr.ip for one in found if one.status == psutil.CONN_LISTEN})
