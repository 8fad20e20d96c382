"""The experiment ``crossbow/tasks``: learning and synchronisation tasks on streams, in virtual time and recorded.

The virtual schedules are deterministic; the recorded trace is of real threads. Neither trains a network.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from suite.experiment import Context
from suite.model_averaging.learners import on_streams
from suite.model_averaging.task_schedule import Durations, Task, idle_seconds, schedule
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed

PAUSE = 0.002  # seconds of a recorded learning task; a quadratic's gradient alone is too short to see


def tasks(spec: RunSpec, context: Context) -> Outcome:
    """Virtual schedules of 2 GPUs with 2 learners (Fig. 8), and a trace recorded from threads.

    Results: idle stream-seconds under both ways to assign batches.
    """
    durations = Durations(lambda batch: 1 + _uniform(spec.seed, batch), local=0.1, overall=0.5)
    virtual = schedule(4, 2, 2, durations)
    centre_apart, recorded = _recorded(learners=2, iterations=12)
    first_come, round_robin = [], []
    for repeat in range(spec.settings["repeats"]):
        varied = Durations(partial(_length, spec.seed, repeat), local=0.05, overall=0.2)
        first_come.append(idle_seconds(schedule(100, 2, 4, varied)))
        round_robin.append(idle_seconds(schedule(100, 2, 4, varied, "round-robin")))
    results: dict[str, Any] = {
        "idle_first_come": first_come,
        "idle_round_robin": round_robin,
        "recorded_centre_apart": centre_apart,
    }
    frames = {
        name: pd.DataFrame([asdict(t) for t in trace])
        for name, trace in (("virtual", virtual), ("recorded", recorded))
    }
    return Outcome("finished", results, frames)


def _length(run_seed: int, repeat: int, batch: int) -> float:
    """Seconds of a learning task between 0.5 and 1.5."""
    return 0.5 + _uniform(run_seed, batch, repeat)


def _uniform(*coordinates: int) -> float:
    return seed(*coordinates) / 2**63


def _recorded(learners: int, iterations: int) -> tuple[float, list[Task]]:
    """A run on real threads, and how far its centre is from Algorithm 1 written out."""
    target = torch.linspace(-1, 1, 8, dtype=torch.float64)

    def gradient(learner: int, w: Tensor, batch: int) -> Tensor:
        time.sleep(PAUSE * (1 + learner / 2))
        return w - target * (1 + batch % 3)

    x0 = torch.ones(8, dtype=torch.float64)
    _, centre, trace = on_streams(learners, iterations, x0, gradient, alpha=1 / learners, momentum=0.9, lr=0.1)
    w, z, z_prev = x0.expand(learners, -1), x0, x0
    for i in range(iterations):
        g = torch.stack([w[j] - target * (1 + (i * learners + j) % 3) for j in range(learners)])
        c = (w - z) / learners
        w, z, z_prev = w - 0.1 * g - c, z + c.sum(0) + 0.9 * (z - z_prev), z
    return float((centre - z).abs().max()), trace
