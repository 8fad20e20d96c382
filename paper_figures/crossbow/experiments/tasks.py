"""The experiment ``crossbow/tasks``: learning and synchronisation tasks on streams, in virtual time and recorded.

The virtual schedules are deterministic; the recorded trace is of real threads. Neither trains a network.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from reference_impls.crossbow import SMA
from suite.communication.collectives import Local
from suite.experiment import Context
from suite.model_averaging.engine import Engine
from suite.model_averaging.learners import Learners
from suite.model_averaging.task_schedule import Durations, Task, assignment, idle_seconds, schedule
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed
from suite.training.gradients.looped import Functional
from suite.training.gradients.types import Batch, Rows
from suite.training.optimizers import CaffeSGD
from suite.training.problem import QuadraticProblem

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


class Asleep(Functional):
    """Gradients of a quadratic that take a while, every second one longer."""

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        time.sleep(PAUSE * (1 + float(batches[0][0][0, 0] > 0) / 2))
        return super().__call__(points, buffers, batches)


def _recorded(learners: int, iterations: int) -> tuple[float, list[Task]]:
    """A run of the engine, and how far its centre is from the rule that takes the same batches one by one."""
    rows = torch.linspace(-1, 1, 8, dtype=torch.float64).repeat(2, 1) * torch.tensor([[1.0], [-2.0]])
    problem = QuadraticProblem(rows, torch.ones(8, dtype=torch.float64))
    made = [
        Learners(SMA(CaffeSGD(), Local(learners)), torch.ones(8, dtype=torch.float64), kind(problem), _one_each)
        for kind in (Asleep, Functional)
    ]
    lr = torch.tensor(0.1, dtype=torch.float64)
    trace = Engine(made[0], workers=learners).run(iterations, lr)
    for numbers in assignment(trace, learners):
        made[1].step(lr, numbers)
    return float((made[0].centre - made[1].centre).abs().max()), trace


def _one_each(numbers: Tensor) -> Tensor:
    return numbers[:, None] % 2
