"""The experiment ``matex_agd/serial_gap``: what can set synchronous training apart from serial training.

In exact arithmetic a synchronous step over k workers is a serial step on their joint batch, yet Table 1 prints
two rows that differ. Each seed is trained three times by the harness:

    serial       one worker
    split        four workers that share the serial run's own batches: only the order of additions differs
    partitioned  four workers with a part of the data each, as in section 5.1: other batches, from the same weights

Settings: ``problem`` as in :mod:`settings`, ``batch`` (effective), ``updates``, ``every`` (updates between two
evaluations), ``seeds`` (how many).
"""

from __future__ import annotations

from typing import Any

from paper_figures.matex_agd.settings import row
from suite.experiment import Context, Outcome, RunSpec
from suite.lazy import pd
from suite.training.loop import TrainingRun
from suite.training.numerics import apply

ARMS: dict[str, tuple[str, dict[str, Any]]] = {  # the row of Table 1 that an arm is, and what is changed in it
    "serial": ("serial", {}),
    "split": ("sgd", {"order": {"kind": "fixed-cycle", "share": "split"}}),
    "partitioned": ("sgd", {}),
}


def arm_spec(arm: str, settings: Any, seed: int) -> RunSpec:
    """The training run of one arm and seed."""
    name, changed = ARMS[arm]
    every = {"every": settings["every"]}
    problem, batch, updates = (settings[key] for key in ("problem", "batch", "updates"))
    return row(name, problem, batch, updates, seed, evaluate=every, **changed)


def serial_gap(spec: RunSpec, context: Context) -> Outcome:
    """Accuracy and loss on the test images by arm, seed and update."""
    parts = []
    apply(context.execution)
    seeds = range(spec.settings["seeds"])
    for seed in seeds:
        for arm in ARMS:
            folder = context.folder / f"{arm}-{seed}"
            folder.mkdir(exist_ok=True)
            inner = arm_spec(arm, spec.settings, seed)
            around = Context(folder, context.execution, context.data)
            found = TrainingRun(inner, around, joins=False).run()  # workers' batches stay apart
            table = found.curves["evaluations"]
            table = table.assign(arm=arm, seed=seed, accuracy=1 - table["test_error"], loss=table["test_loss"])
            parts.append(table[["arm", "seed", "update", "accuracy", "loss"]])
        context.report((seed + 1) / len(seeds))
    return Outcome("finished", {}, {"gap": pd.concat(parts, ignore_index=True)})
