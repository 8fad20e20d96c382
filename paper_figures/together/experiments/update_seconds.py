"""Measure the seconds of one update of plain SGD at each batch size, which ``Task.update_seconds`` holds.

OMP_NUM_THREADS=1 python -m paper_figures.together.experiments.update_seconds mnist
"""

from __future__ import annotations

import argparse
import time

import torch
from torch.nn.functional import cross_entropy

from paper_figures.together.tasks import TASKS, Task
from suite.batch_size.chosen import time_updates, typical
from suite.runs.environment import machine, versions
from suite.training.build import make_network


def measured(task: Task) -> dict[int, float]:
    """Seconds of processor time by batch size: the median of turns that the sizes take, on random pixels."""
    network = make_network(task.model, 0, "cpu", torch.float32)
    sizes, parameters = [2**power for power in range(9)], list(network.parameters())
    pixels = torch.rand(max(sizes), *network.input_shape)  # [M, C, H, W]
    targets = torch.randint(network.classes, (max(sizes),))  # [M]
    descent = torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)

    def update(size: int) -> None:
        descent.zero_grad()
        cross_entropy(network(pixels[:size]), targets[:size]).backward()
        descent.step()

    return typical(time_updates(update, sizes, rounds=9, seconds_each=0.1, clock=time.process_time))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("task", choices=[name for name, task in TASKS.items() if task.update_seconds])
    chosen = parser.parse_args()
    print(machine()["cpu"], f"torch {versions()['torch']}", time.strftime("%d %B %Y", time.gmtime()), sep=", ")
    print({size: float(f"{seconds:.3g}") for size, seconds in measured(TASKS[chosen.task]).items()})
