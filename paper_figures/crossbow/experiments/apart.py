"""The experiment ``crossbow/apart``: equal devices, each tuned by itself.

A process on a core of its own stands for a GPU. All tune at the same time, as GPUs of one server would, so that what
they share (memory and its bandwidth) is shared here too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch

from paper_figures.crossbow.experiments.throughput import prepared, walk
from suite.communication.collectives import Processes
from suite.communication.group import Group
from suite.communication.launch import spawn
from suite.communication.link import NoLab
from suite.experiment import Context, Outcome, in_lab
from suite.spec import RunSpec, thaw
from suite.training.numerics import apply


def on_a_core(group: Group, settings: Mapping[str, Any], execution: Mapping[str, Any], cores: list[int]) -> list[Any]:
    """The readings of one device's tuner, repeat by repeat; one to warm up is left out."""
    os.sched_setaffinity(0, {cores[group.rank]})
    apply(dict(execution))
    together, signal = Processes(group), torch.zeros(1, 1)
    ready, _ = prepared(settings, settings["most"], execution)
    rows = []
    for repeat in range(settings["repeats"] + 1):
        together.sum(signal)  # all begin at once
        history, paths = walk(ready, settings, "cpu", settings["most"])
        found = {"device": group.rank, "repeat": repeat, "settled": history[-1].asked}
        for reading, path in zip(history, paths, strict=True):
            about = {"learners": reading.learners, "path": path, "images_per_second": reading.throughput}
            rows.append(found | about)
    return [row for row in rows if row["repeat"]]


@in_lab
def apart(spec: RunSpec, context: Context) -> Outcome:
    """Where the tuner of each device ends: a row of ``readings`` for each reading of each device and repeat."""
    settings = thaw(spec.settings)
    cores, devices = sorted(os.sched_getaffinity(0)), settings["devices"]
    if len(cores) < devices:
        raise NoLab(f"{devices} devices need as many cores, and here are {len(cores)}")
    every = spawn(on_a_core, devices, settings, context.execution, cores, timeout=300)
    return Outcome("finished", curves={"readings": pd.DataFrame([row for rows in every for row in rows])})
