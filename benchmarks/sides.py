"""Everything that takes turns on a workload: ours, the plain loop in all its forms, compiled, and in JAX."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch

from benchmarks import ours, plain
from benchmarks.measuring import FEWEST, MOST, SAMPLE, Alternation, Effort, Side, hopeless, timed
from benchmarks.processes import Workers
from benchmarks.workloads import Workload
from suite.spec import RunSpec
from suite.training.numerics import apply, choose

TRIED = 5  # updates of a form when the quickest is looked for
LEFT_OUT = "left out by --rivals"
RIVALS = ("plain", "forms", "compiled", "jax")  # the loop as anyone writes it, its other forms, torch.compile, JAX
JAX_FORMS = ("jax im2col", "jax conv", "jax conv channels-last")
JAX_NETWORKS = ("caffe_lenet", "caffe_cifar_quick")
SHOWN = ("path", "build", "channels_last", "onednn", "threads", "precision", "device", "deterministic")


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_counts(device: str) -> tuple[int, ...]:
    """Threads that an in-process side is tried with: one, and one for each core; one beside a GPU."""
    return (1, cores()) if device == "cpu" and cores() > 1 else (1,)


def labelled(name: str, device: str, threads: int) -> str:
    """``plain, 2 threads``; beside a GPU the name alone."""
    return f"{name}, {threads} thread{'s' if threads > 1 else ''}" if device == "cpu" else name


def forms_of(workload: Workload) -> dict[str, plain.Form]:
    """The forms that a workload's plain loop has: words have no memory format."""
    return {
        name: form
        for name, form in plain.FORMS.items()
        if not (form.channels_last and workload.family == "translation")
    }


def quickest(workload: Workload, forms: Mapping[str, plain.Form]) -> str:
    """The form whose loop of one run takes least time here, each tried for a few updates in turn."""
    one = replace(workload, runs=1)
    loops = {name: plain.loop(one, "cpu", form) for name, form in forms.items()}
    seconds = {name: [timed(Side(made.run), TRIED)[0] for _ in range(4)][1:] for name, made in loops.items()}
    return min(seconds, key=lambda name: min(seconds[name]))


def why_not_jax(workload: Workload, device: str) -> str:
    """Why no JAX side takes part, or nothing."""
    if workload.network not in JAX_NETWORKS or workload.family not in ("training", "sweep"):
        return "written for single runs and sweeps of LeNet and quick alone"
    if device != "cpu":
        return "timed on a CPU alone"
    return "" if find_spec("jax") else "the package jax is not installed"


class Sides:
    """The sides of a workload on a device, each in this process tried with each number of ``threads``."""

    def __init__(self, workload: Workload, device: str, threads: Sequence[int]):
        self.workload, self.device, self.threads = workload, device, threads
        self.sweeps = workload.family == "sweep"
        self.processes = cores() if self.sweeps and device == "cpu" else 1  # with which a sweep fills the cores
        self.made: dict[str, Side] = {}
        self.absent: dict[str, str] = {}  # why a side cannot be had here

    def build(self, rivals: Collection[str], compile_all: bool) -> None:
        """Ours, and those of the ``rivals``."""
        self.absent |= {rival: LEFT_OUT for rival in RIVALS if rival not in rivals}
        self.add_ours()
        if "plain" in rivals:
            self.add_loop("plain", plain.loop(self.workload, self.device, plain.FORMS["plain"]))
        if "forms" in rivals:
            self.add_forms()
        if "compiled" in rivals:
            self.add_compiled(compile_all)
        if "jax" in rivals:
            self.add_jax()

    def add_loop(self, name: str, loop: plain.Loop) -> None:
        """The same networks with each number of threads: only torch's setting differs."""
        for count in self.threads:
            self.made[labelled(name, self.device, count)] = Side(loop.run, count, in_process=count)

    def add_workers(self, name: str, workers: Workers, threads: int) -> None:
        self.made[name] = Side(workers.run, threads, workers.execution, workers.close)

    def add_ours(self) -> None:
        """``ours`` is one thread on one core, or beside a GPU; for a sweep, a process for each core."""
        if self.processes > 1:
            workers = Workers(self.workload, "ours", self.processes)
            shown = {"processes": self.processes, **_shown(workers.execution)}
            self.made["ours"] = Side(workers.run, self.processes, shown, workers.close)
        for count in self.threads:
            if self.sweeps and count > 1:
                continue  # processes use the cores better
            name = "ours" if count == 1 else f"ours, {count} threads"
            run, chosen = ours.in_process(self.workload, self.device, count)
            name = "ours, 1 process" if name in self.made else name
            self.made[name] = Side(run, count, _shown(chosen), in_process=count)

    def add_forms(self) -> None:
        """The loop in all its other forms, for a sweep also its best in processes; a batch for all of a server's."""
        forms = forms_of(self.workload)
        for name, form in forms.items():
            if name != "plain" and not (name == "plain foreach" and self.device == "cuda"):  # as plain does there
                self.add_loop(name, plain.loop(self.workload, self.device, form))
        if self.processes > 1:  # each in a process of its own needs the memory of ten networks
            best = quickest(self.workload, forms)
            workers = Workers(self.workload, best, self.processes)
            self.add_workers(f"{self.processes} processes of {best}", workers, self.processes)
        if self.workload.family == "server" and not self.workload.softsync:
            joined = Workload("", "training", self.workload.network, self.workload.batch * self.workload.learners)
            for name, form in forms.items():
                self.add_loop(f"one batch of {joined.batch} {name}", plain.loop(joined, self.device, form))

    def add_compiled(self, compile_all: bool) -> None:
        """The plain loop around a compiled loss; on CUDA also with its kernels replayed as graphs."""
        why = plain.why_not_compiled(self.device)
        if not why and not self.workload.compiled and not compile_all:
            why = "compiled only with --compile-all: of the larger networks that takes minutes"
        modes: dict[str, dict[str, Any]] = {"compiled": {}}
        if self.device == "cuda":
            modes["compiled, CUDA graphs"] = {"mode": "reduce-overhead"}
        if why:
            self.absent |= dict.fromkeys(modes, why)
            return
        torch._dynamo.reset()  # what other workloads compiled counts against a limit
        words = self.workload.family == "translation"
        loss = plain.sentence_loss if words else plain.picture_loss
        layouts = {"": plain.Form()}
        if not words:
            layouts[" channels-last"] = plain.FORMS["plain channels-last fused"]
        for name, options in modes.items():
            for layout, form in layouts.items():
                compiled = torch.compile(loss, **options)
                self.add_loop(name + layout, plain.loop(self.workload, self.device, form, compiled))

    def add_jax(self) -> None:
        """JAX in processes of its own; a sweep also by ``vmap``, and its best form in a process for each core."""
        if why := why_not_jax(self.workload, self.device):
            self.absent["jax"] = why
            return
        kinds = (*JAX_FORMS, f"{JAX_FORMS[0]} vmap") if self.sweeps else JAX_FORMS
        for kind in kinds:
            for count in self.threads:
                self.add_workers(labelled(kind, self.device, count), Workers(self.workload, kind, 1, count), count)
        if self.processes > 1:
            seconds = {kind: timed(self.made[labelled(kind, self.device, 1)], TRIED)[0] for kind in kinds}
            best = min(kinds, key=seconds.__getitem__)
            workers = Workers(self.workload, best, self.processes)
            self.add_workers(f"{self.processes} processes of {best}", workers, self.processes)


def _shown(chosen: dict[str, Any]) -> dict[str, Any]:
    return {name: chosen[name] for name in SHOWN if name in chosen}


def prepared(workload: Workload, effort: Effort) -> tuple[Alternation, dict[str, str], int]:
    """Sides that are built and warm, reasons for those that are not there, and how many rounds to make."""
    apply(choose(RunSpec("train"), effort.device, 1))
    sides = Sides(workload, effort.device, effort.threads)
    sides.build(effort.rivals, effort.compile_all)
    turns = Alternation(sides.made, partial(timed, device=effort.device))
    gone = turns.warm(workload.block, SAMPLE, hopeless)
    absent: dict[str, Any] = {name: {"not_available": why} for name, why in sides.absent.items()}
    absent |= {name: entry for name, entry in hopeless(turns.warmed).items() if name in gone}
    round_seconds = turns.updates * sum(turns.warmed[name] for name in turns.sides)
    return turns, absent, min(MOST, max(FEWEST, round(effort.seconds / round_seconds)))
