"""A training by two processes with a slow checkpoint at every update, for trials that kill one of its processes.

    python tests/harness/killed_pair.py FOLDER

goes on from the last checkpoint in FOLDER and prints the sum of both workers' weights.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

import torch

from suite.communication.group import Group
from suite.communication.launch import spawn
from suite.optim import DelayedSGD

UPDATES = 60


def slowly(handle: int, flush: Callable[[int], None] = os.fsync) -> None:
    """A flush to disk that takes long, so that kills fall into it."""
    time.sleep(0.01)
    flush(handle)
    time.sleep(0.01)


def body(group: Group, folder: str) -> float:
    """Delayed exchange between two workers, so that every checkpoint holds a sum still under way."""
    os.fsync = slowly
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 9), torch.nn.Tanh(), torch.nn.Linear(9, 2)).double()
    opt = DelayedSGD(module, lr=0.05, momentum=0.9, delay=1, group=group)
    done = opt.resume(folder).get("updates", 0)
    for update in range(done, UPDATES):
        draw = torch.Generator().manual_seed(1000 * update + group.rank)
        inputs = torch.randn(8, 6, generator=draw).double()
        opt.zero_grad()
        module(inputs).square().mean().backward()
        opt.step()
        opt.save(folder, updates=update + 1)
    opt.finish()
    return opt.vector.x.sum().item()


if __name__ == "__main__":
    import killed_pair  # this module under a name that the workers can import

    print(json.dumps(spawn(killed_pair.body, 2, sys.argv[1], timeout=5)))
