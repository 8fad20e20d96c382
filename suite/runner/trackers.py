"""Stored runs told to a tracker: TensorBoard, Weights & Biases, or one of one's own.

A tracker is a function of a stored run, the artifact that asked for it, and a folder for its files. ``run --track
NAME`` calls it after each run that is stored. Another package adds one by an entry point::

    [project.entry-points."sgd_suite.trackers"]
    mine = "my_package.tracking:tell"
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from suite.runs.run import Run
from suite.tables import Table

Tracker = Callable[[Run, str, Path], None]
STEPS = ("update", "updates", "epoch")  # columns that count steps, the first there is taken


def scalars(run: Run) -> Iterator[tuple[str, int, float]]:
    """Every number of a run's curves: ``curve/column``, the step, the value."""
    for name in run.curves:
        table = run.curve(name)
        step = next((column for column in STEPS if column in table), None)
        at = table[step] if step else range(len(table))
        for column in table.select_dtypes("number").columns.difference([step]):
            for when, value in zip(at, table[column], strict=True):
                yield f"{name}/{column}", int(when), float(value)


def numbers(run: Run) -> dict[str, float]:
    """A run's results that are numbers."""
    return {name: float(value) for name, value in run.results.items() if isinstance(value, int | float)}


def tensorboard(run: Run, artifact: str, folder: Path) -> None:
    """Event files that ``tensorboard --logdir FOLDER`` shows; needs the package tensorboard."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder / artifact / run.id) as writer:
        writer.add_text("settings", f"```\n{run.spec.text}\n```")
        for name, step, value in scalars(run):
            writer.add_scalar(name, value, step)
        for name, result in numbers(run).items():
            writer.add_scalar(f"results/{name}", result)


def wandb(run: Run, artifact: str, folder: Path) -> None:
    """A run of Weights & Biases, offline unless WANDB_MODE says online; needs the package wandb."""
    import wandb as service

    folder.mkdir(parents=True, exist_ok=True)
    about: dict[str, Any] = {"project": "sgd-suite", "group": artifact, "id": run.id, "name": f"{artifact} {run.id}"}
    mode = os.environ.get("WANDB_MODE", "offline")
    with service.init(**about, mode=mode, dir=folder, config=dict(run.spec.settings)) as told:
        for name, step, value in sorted(scalars(run), key=lambda each: each[1]):
            told.log({name: value}, step=step)
        told.summary.update(numbers(run))


TRACKERS: Table[Tracker] = Table("tracker", {"tensorboard": tensorboard, "wandb": wandb})


def tracker_called(name: str) -> Tracker:
    """The tracker of this name. Raises ValueError where there is none, or its package is not installed."""
    found = TRACKERS[name]
    if found in (tensorboard, wandb) and find_spec(name) is None:
        raise ValueError(
            f"--track {name} needs the Python package {name}, which is not installed here: "
            f"pip install sgd-scaling-suite[track]"
        )
    return found
