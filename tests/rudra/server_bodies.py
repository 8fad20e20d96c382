"""What the processes of these tests run: importable by name, results as plain lists."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from suite.communication.group import Group, WorkerLost
from suite.parameter_server.messages import Layout
from suite.parameter_server.processes import Observed, TrainingJob, train
from suite.parameter_server.servers import Served
from suite.training.optimizers import CaffeSGD

DIMENSIONS, EXAMPLES, BATCH, RATE, MOMENTUM = 9, 90, 3, 0.05, 0.9


def data() -> tuple[Tensor, Tensor]:
    """Rows [N, d] and curvatures [d] of a quadratic in float64."""
    generator = torch.Generator().manual_seed(2)
    rows = torch.randn(EXAMPLES, DIMENSIONS, generator=generator, dtype=torch.float64)
    return rows, torch.linspace(0.5, 2.0, DIMENSIONS, dtype=torch.float64)


def gradient(x: Tensor, learner: int, number: int) -> tuple[float, Tensor]:
    rows, curvature = data()
    part = rows[(torch.arange(BATCH) + 31 * learner + 7 * number) % EXAMPLES]
    loss = 0.5 * (curvature * (x - part) ** 2).sum(-1).mean().item()
    return loss, (curvature * (x - part)).mean(0)


def start() -> Tensor:
    return torch.ones(DIMENSIONS, dtype=torch.float64)


def base_job(n: int, updates: int, gradient: Any, learners: int = 2) -> TrainingJob:
    """One server over learners of the quadratic, whose mini-batches are (learner, number)."""
    return TrainingJob(
        Layout(learners), n, start(), lambda *names: names, lambda x, names: gradient(x, *names),
        CaffeSGD(MOMENTUM), lambda t: RATE, updates,
    )  # fmt: skip


def plain(found: Any) -> Any:
    """What a process trained to, in plain numbers: of a learner how many gradients it computed."""
    if not isinstance(found, Served):
        return getattr(found, "number", None)
    served = found
    turns = [[turn.t, [list(entry) for entry in turn.entries]] for turn in served.turns]
    return {
        "x": served.x.tolist(),
        "turns": turns,
        "losses": served.losses,
        "lost": {str(learner): why for learner, why in served.lost.items()},
    }


def serve_and_lose(group: Group, n: int, updates: int, report: str) -> None:
    """Learner 1 falls silent with its fourth gradient; the others write their ends to ``report`` and their rank.

    They cannot return it: ``spawn`` has its workers leave together, and one is missing.
    """
    dying = Path(f"{report} dying")

    def computed(x: Tensor, learner: int, number: int) -> tuple[float, Tensor]:
        if learner == 1 and number == 3:
            dying.touch()
            time.sleep(1_000)  # alive, but it never answers again
        while number == 3 and not dying.exists():  # the last update must not come before
            time.sleep(0.01)
        return gradient(x, learner, number)

    served = plain(train(group, base_job(n, updates, computed)))
    Path(f"{report}{group.rank}").write_text(json.dumps(served))


def disagree(group: Group) -> None:
    train(group, base_job(group.rank, 3, gradient, learners=1))


def dyadic(x: Tensor, part: Tensor) -> tuple[float, Tensor]:
    """Of a quadratic, in numbers of few bits: sums of them are exact in any order."""
    return float((x - part).square().sum()), x - part


def dyadic_rows(learner: int, number: int) -> Tensor:
    return (torch.arange(4, dtype=torch.float64) * (3 * learner + 1) + 5 * number) % 8


def tree_job(architecture: str, n: int, updates: int, gradient: Any = dyadic, evaluate: Any = None) -> TrainingJob:
    layout = Layout(4, architecture, per_leaf=2, fan_out=2, tested=evaluate is not None)
    return TrainingJob(
        layout, n, torch.zeros(4, dtype=torch.float64), dyadic_rows, gradient,
        CaffeSGD(0.5), lambda t: 0.125, updates, evaluate, epoch=2,
    )  # fmt: skip


def size(x: Tensor) -> float:
    return float(x.square().sum())


def serve_tree(group: Group, architecture: str, n: int, updates: int) -> Any:
    found = train(group, tree_job(architecture, n, updates, evaluate=size))
    return (found.losses, found.tests) if isinstance(found, Observed) else plain(found)


def lose_a_server(group: Group, architecture: str, which: int, report: str) -> None:
    """Learner 0 kills a server with its third gradient; what the others raise goes to ``report`` and their rank."""
    pids = group.everyone(os.getpid())
    servers = group.size - 4

    def computed(x: Tensor, part: Tensor) -> tuple[float, Tensor]:
        time.sleep(0.005)
        numbers[0] += 1
        if group.rank == servers and numbers[0] == 3:
            os.kill(pids[which], signal.SIGKILL)
        return dyadic(x, part)

    numbers = [0]
    try:
        train(group, tree_job(architecture, 1, 1_000_000, computed))
    except WorkerLost as error:
        Path(f"{report}{group.rank}").write_text(str(error))
        raise
