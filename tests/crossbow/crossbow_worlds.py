"""Fabricated frames of Crossbow's panels: the runs that a panel asks for, with results and tables from a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pandas as pd

from paper_figures.crossbow import PAPER
from suite.claims.judge import judge
from suite.model_averaging.task_schedule import Task
from suite.papers.artifact import Frame
from suite.papers.catalogue import published
from suite.spec import RunSpec

PANELS: dict[str, Any] = {artifact.id.partition("/")[2]: artifact for artifact in PAPER.artifacts}
Made = Mapping[str, Any] | None
"""Results of a run, its tables under ``tables``; None where it is not stored."""


def frame_for(figure: str, profile: str, make: Callable[[str, RunSpec], Made], device: str = "cuda") -> Frame:
    """The frame of a figure's runs at a profile, each as ``make`` has it by its group and specification."""
    rows, stored = [], dict[str, Any]()
    for group, specs in PANELS[figure].runs(profile).items():
        for spec in specs:
            made = make(group, spec)
            about = {"group": group, "seed": spec.seed, "run": "", "fault": None}
            if made is not None:
                tables = made.get("tables", {})
                results = {name: value for name, value in made.items() if name != "tables"}
                curve = lambda name, tables=tables: pd.DataFrame(tables[name])
                environment = {"execution": {"device": device}}
                stored[spec.id] = SimpleNamespace(curve=curve, spec=spec, results=results, environment=environment)
                about = {**results, **about, "run": spec.id}
            rows.append(about)
    return Frame(rows, profile, stored)


def training(accuracies: Sequence[float]) -> Made:
    """A training with these test accuracies at the end of its epochs, and 100% before, which nobody may read."""
    errors = [0.0, *(1 - accuracy for accuracy in accuracies)]
    return {"tables": {"evaluations": {"update": range(len(errors)), "test_error": errors, "train_error": errors}}}


def arriving(epoch: float, level: float = 0.955, length: int = 150) -> list[float]:
    """Accuracies of which the median of five passes ``level`` in an epoch, the fifth or later."""
    return [0.1] * (int(epoch) - 3) + [level] * (length - int(epoch) + 3)


def trained(figure: str, arrivals: Mapping[str, Sequence[float]], profile: str = "paper", **device: str) -> Frame:
    """Trainings by group that arrive in these epochs, by seed; four learners are 1.25 times as fast as one."""

    def make(group: str, spec: RunSpec) -> Made:
        if group in arrivals:
            each = arrivals[group]
            return training(arriving(each[spec.seed % len(each)]))
        return throughput({4: [1.1, 1.25, 1.4], 2: [1.2] * 3, 1: [1.0] * 3}) if group == "throughput" else None

    return frame_for(figure, profile, make, **device)


def throughput(over_one: Mapping[int, Sequence[float]], tuned: int = 2, seconds: float = 0.02) -> Made:
    """A run that timed learners: throughput over one learner's by number of learners, repeat by repeat."""
    found: dict[str, Any] = {"tuned_learners": tuned, "resize_seconds": seconds, "resize_over_iteration": 0.1}
    for k in range(1, 9):
        found |= {f"over_one_{k}": list(over_one.get(k, [0.5] * 3)), f"over_batch_{k}": [0.8], f"path_{k}": "looped"}
        found[f"vectorised_over_looped_{k}"] = [0.9]
    return found


CLAIMS = {claim.id.partition("/")[2]: claim for claim in published("crossbow")}
QUANTITIES = {f"{figure}/{name}": q for figure, panel in PANELS.items() for name, q in panel.quantities.items()}


def found(name: str, frame: Frame) -> Any:
    each = QUANTITIES[name]
    return each.of(frame)


def drawn_table(figure: str, frame: Frame) -> Any:
    return PANELS[figure].frame(frame)


def verdict(name: str, frame: Frame) -> str:
    return judge(CLAIMS[name], found(name, frame), "paper").verdict


def assignment(tasks: list[Task], learners: int) -> list[tuple[int, ...]]:
    """For each iteration, which batch each of the ``learners`` learners read."""
    table: dict[int, dict[int, int]] = {}
    for task in tasks:
        if task.kind == "learn":
            table.setdefault(task.iteration, {})[task.learner] = task.batch
    return [tuple(table[i][learner] for learner in range(learners)) for i in sorted(table)]
