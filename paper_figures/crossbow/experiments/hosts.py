"""The experiments of several processes at once: ``crossbow/hosts`` and ``crossbow/apart``.

``crossbow/hosts`` is synchronous model averaging between hosts that sleep to compute.

A process in a network namespace of its own stands for a GPU with m learners. It sleeps for what their tasks take on
the paper's card, and its replicas, corrections and sums are really there. Time is dilated and the model is shrunk,
both evenly and the links with them, so that computing over exchanging is that of the paper's server.

``crossbow/apart`` has equal devices, each tuned by itself. A process on a core of its own stands for a GPU. All tune
at the same time, as GPUs of one server would, so that what they share (memory and its bandwidth) is shared here too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from paper_figures.crossbow.experiments.timing import prepared, walk
from reference_impls.contract import Collective, Pending
from suite.communication import link as netlab
from suite.communication.collectives import Processes
from suite.communication.group import Group
from suite.communication.launch import spawn
from suite.communication.link import Device, NoLab
from suite.experiment import Context, Outcome, in_lab
from suite.spec import RunSpec, thaw
from suite.training.numerics import apply

MOMENTUM = 0.9  # of the average model; its value takes the same time


class Learners:
    """m replicas of one host and its copy of the average model, exchanged every ``tau`` iterations; 0: never."""

    def __init__(self, sums: Collective, m: int, numbers: int, tau: int, *, barrier: bool):
        self.replicas, self.average = torch.zeros(m, numbers), torch.zeros(numbers)
        self.earlier, self.gradient = self.average.clone(), torch.ones(numbers)
        self.sums, self.alpha, self.tau, self.barrier = sums, 1 / sums.workers, tau, barrier
        self.pending: Pending | None = None

    def iterate(self, t: int, device: Device, seconds: float) -> None:
        """Learning tasks of ``seconds``, during which the exchange of the iteration before goes on (section 4.2)."""
        device.begin()
        device.compute(seconds)
        self.replicas.sub_(self.gradient, alpha=1e-3)
        self.land()
        if not self.tau or t % self.tau:
            return
        corrections = (self.replicas - self.average).mul_(self.alpha)
        self.replicas.sub_(corrections)
        self.pending = self.sums.start(corrections)
        if self.barrier:
            self.land()

    def land(self) -> None:
        """Wait for the sum that is under way, if any, and move the average model by it (Algorithm 1, line 12)."""
        if self.pending is None:
            return
        moved: Tensor = self.average + self.pending.wait() + MOMENTUM * (self.average - self.earlier)
        self.earlier, self.average, self.pending = self.average, moved, None


def on_hosts(group: Group, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Seconds an iteration of every side, in turns; one repetition to warm up is left out."""
    together, signal = Processes(group), torch.zeros(1, 1)
    # Learners, interval and whether exchange is waited for at once, of each side that is timed.
    sides = [(m, tau, False) for m in settings["learners"] for tau in settings["intervals"]]
    sides += [(m, 1, True) for m in settings["learners"]]
    rows: list[dict[str, Any]] = []
    for repeat in range(settings["repeats"] + 1):
        for m, tau, barrier in sides:
            sums, device = Processes(group, rows=m), Device()
            learners = Learners(sums, m, settings["numbers"], tau, barrier=barrier)
            task = settings["seconds"][settings["learners"].index(m)]
            together.sum(signal)
            began = time.perf_counter()
            for t in range(settings["iterations"]):
                learners.iterate(t, device, task)
            learners.land()
            each = (time.perf_counter() - began) / settings["iterations"]
            together.sum(signal)
            rows.append({"repeat": repeat, "learners": m, "tau": tau, "barrier": barrier, "seconds": each})
    return [row for row in rows if row["repeat"]]


@in_lab
def hosts(spec: RunSpec, context: Context) -> Outcome:
    """Seconds an iteration by learners and interval."""
    settings = thaw(spec.settings)
    with netlab.lab(settings["hosts"], settings["bits_per_second"]) as lab:
        first, *_ = spawn(on_hosts, settings["hosts"], settings, timeout=60, lab=lab)
    return Outcome("finished", curves={"hosts": pd.DataFrame(first)})


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
