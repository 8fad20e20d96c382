"""What worker processes run in these tests: importable by name, results as plain lists."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from reference_impls.contract import Pending
from suite.communication.collectives import CountingCollective, Processes
from suite.communication.group import Group
from suite.models import build, initialise
from suite.optim import DelayedSGD


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
        "early": early(group),
        "sums": [s.unique().tolist() for s in sums],
        "done": all(flight.done() for flight in flights),
        "same memory": total.data_ptr() == rows.data_ptr(),
        "untouched": kept.unique().tolist() == [float(group.rank)],
        "rows": Processes(group, rows=3).sum(torch.ones(3, 4)).tolist(),
    }


def early(group: Group) -> list[bool]:
    """Whether a sum is done that worker 0 begins before the others do, and once it was waited for."""
    collective = Processes(group)
    if group.rank:
        group.everyone("worker 0 has begun")
        flight = collective.start(torch.ones(1, 3))
        flight.wait()
        group.everyone("all have ended")
    else:
        flight = collective.start(torch.ones(1, 3))
        begun = flight.done()
        group.everyone("worker 0 has begun")
        flight.wait()
        group.everyone("all have ended")
        return [begun, flight.done()]
    return [True, flight.done()]


def loses_one(group: Group, how: str) -> None:
    """Worker 1 dies, stops or dawdles after its third update while the others go on."""
    patience = group.timeout
    group.wait_for(60)
    module = nn.Linear(5, 3)
    opt = DelayedSGD(module, lr=0.1, delay=1, group=group)
    for t in range(50):
        if t == 2:  # all are under way: from here on a silence counts, and not the start of a slow machine
            group.wait_for(patience)
        if group.rank == 1 and t == 3:
            if how == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            elif how == "stops":
                os.kill(os.getpid(), signal.SIGSTOP)
            elif how == "raises":
                raise ValueError("this worker's data ended")
            else:
                time.sleep(600)
        opt.zero_grad()
        module(torch.ones(2, 5)).square().mean().backward()
        opt.step()


def timed_exchange(group: Group) -> float:
    """Median seconds of a sum of 2 MB."""
    collective, rows, times = Processes(group), torch.ones(1, 500_000), []
    for _ in range(6):
        began = time.perf_counter()
        collective.sum(rows)
        times.append(time.perf_counter() - began)
    return sorted(times[1:])[2]


def stuck_beside_a_dead_worker(group: Group) -> None:
    """Worker 1 dies while worker 0 is in an exchange that does not fail."""
    if group.rank:
        os.kill(os.getpid(), signal.SIGKILL)
    with group.watched():
        time.sleep(600)


def listening(group: Group) -> list[str]:
    """Addresses at which this process takes connections, while the group is together."""
    import psutil

    Processes(group).sum(torch.zeros(1, 1))
    found = psutil.Process().net_connections(kind="inet")
    return sorted({one.laddr.ip for one in found if one.status == psutil.CONN_LISTEN})


@dataclass
class Kept(CountingCollective):
    """Counts the sums and keeps them, to see where they lie."""

    sums: list[Pending] = field(default_factory=list)

    def start(self, rows: torch.Tensor, each: int | None = None) -> Pending:
        self.sums.append(super().start(rows, each))
        return self.sums[-1]


def replicas(group: Group, delays: tuple[int, ...]) -> list[dict[str, Any]]:
    """LeNet trained for a few updates by each delay: weights drawn, begun and ended with, and what was used."""
    return [replica(group, delay) for delay in delays]


def replica(group: Group, delay: int, updates: int = 5) -> dict[str, Any]:
    network = build("caffe_lenet")
    initialise(network, group.rank)  # workers differ before the broadcast
    drawn = torch.cat([p.detach().reshape(-1) for p in network.parameters()])
    opt = DelayedSGD(network, lr=0.01, momentum=0.9, weight_decay=5e-4, delay=delay, fused=False, group=group)
    collective = opt.core.algorithm.collective
    counted = Kept(collective)
    opt.core.algorithm = replace(opt.core.algorithm, collective=counted)
    begun, arrived, memory = opt.vector.x.clone(), list[int](), set[int]()
    for parameter in network.parameters():
        parameter.register_post_accumulate_grad_hook(lambda _: arrived.append(len(counted.sums)))
    draw = torch.Generator().manual_seed(group.rank)
    for _ in range(updates):
        opt.zero_grad(set_to_none=False)
        inputs, targets = torch.rand(8, 1, 28, 28, generator=draw), torch.randint(10, (8,), generator=draw)
        nn.functional.cross_entropy(network(inputs), targets).backward()
        memory.add(next(network.parameters()).grad.data_ptr())
        opt.step()
    early = [sums - place // (len(arrived) // updates) for place, sums in enumerate(arrived)]
    opt.finish()
    return {
        "weights": [each.tolist() for each in (drawn, begun, opt.vector.x)],
        "sums": len(counted.sums),
        "early": max(early),  # sums of an update that began before its backward had ended
        "buffers": len(memory) - 1 + len({total.wait().data_ptr() for total in counted.sums} - memory),
        "threads": len(collective.lanes),
    }
