"""A training run that is killed again and again: prints how often, and how far each attempt came.

    python killed.py STORE KILLS SEED

Forks a child that executes the run, kills it with SIGKILL after a random time, and starts the next, which
resumes; after KILLS kills a last child is left to finish. Forking spares the import of torch.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
import toy

from suite.papers.catalogue import experiment
from suite.runner.execute import RunnerConfig, execute
from suite.runs.store import Store
from suite.training import loop as training  # noqa: F401 (imported before the fork)


def child(around: RunnerConfig) -> int:
    """Execute the run in a forked process; returns its process id."""
    if (pid := os.fork()) == 0:
        report = execute(SPEC, experiment, around)
        os._exit(0 if report.state in ("stored", "present") else 1)
    return pid


SPEC = toy.digits(updates=200)

if __name__ == "__main__":
    toy.install()
    torch.set_num_threads(1)
    root, kills, draws = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    around = RunnerConfig(root, checkpoint_seconds=0.0)
    store = Store(root, create=True)
    killed, under_way = 0, 0
    while killed < kills and not store.has(SPEC.id):
        pid = child(around)
        time.sleep(draws.uniform(0.0, 0.4))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        killed += os.WIFSIGNALED(status)
        under_way += any(store.partial(SPEC.id).glob("*/checkpoint"))
    _, status = os.waitpid(child(around), 0)
    print(json.dumps({"killed": killed, "under_way": under_way, "exit": os.waitstatus_to_exitcode(status)}))
