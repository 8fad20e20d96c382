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
from functools import partial

import torch

from reference_impls.matex_agd import DelayedSGD
from suite.communication.group import Group
from suite.distributed.training import Training, spawn

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
    made = Training(module, group, partial(DelayedSGD, delay=1), rate=0.05, momentum=0.9, examples=64)
    done = made.resume(folder).get("updates", 0)
    for update in range(done, UPDATES):
        draw = torch.Generator().manual_seed(1000 * update + group.rank)
        inputs = torch.randn(8, 6, generator=draw).double()
        made.update(module(inputs).square().mean())
        made.save(folder, updates=update + 1)
    made.finish()
    return made.flat.x.sum().item()


if __name__ == "__main__":
    import killed_pair  # this module under a name that the workers can import

    print(json.dumps(spawn(killed_pair.body, 2, sys.argv[1], timeout=5)))
