"""Everything that takes turns on a workload: ours, the plain loop in all its forms, compiled, and in JAX."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import torch

from benchmarks import ours, plain
from benchmarks.measuring import FEWEST, MOST, SAMPLE, Alternation, Effort, Side, Timer, hopeless
from benchmarks.processes import Workers
from benchmarks.workloads import Workload
from suite.spec import RunSpec
from suite.training.numerics import apply, choose

TRIED = 5  # updates of a form when the quickest is looked for
LEFT_OUT = "left out by --rivals"
RIVALS = ("plain", "forms", "compiled", "jax")  # the loop as anyone writes it, its other forms, torch.compile, JAX
JAX_FORMS = ("jax im2col", "jax conv", "jax conv channels-last")
JAX_NETWORKS = ("caffe_lenet", "caffe_cifar_quick")
SHOWN = ("path", "build", "channels_last", "onednn", "width", "threads", "precision", "device", "deterministic")


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_counts(device: str) -> tuple[int, ...]:
    """Threads that an in-process side is tried with: one, and one for each core; one beside a GPU."""
    return (1, cores()) if device == "cpu" and cores() > 1 else (1,)


def labelled(name: str, device: str, threads: int) -> str:
    """``plain, 2 threads``; beside a GPU the name alone."""
    return f"{name}, {threads} thread{'s' if threads > 1 else ''}" if device == "cpu" else name


def build(
    workload: Workload, device: str, rivals: Collection[str], threads: Sequence[int], compile_all: bool = False
) -> tuple[dict[str, Side], dict[str, str]]:
    """Sides by name, and for those that cannot be had here the reason.

    Sides in this process are tried with each number of ``threads``.
    """
    sides: dict[str, Side] = {}
    absent = {rival: LEFT_OUT for rival in RIVALS if rival not in rivals}
    _ours(sides, workload, device, threads)
    for form, kind in forms_of(workload).items():
        if ("plain" if form == "plain" else "forms") not in rivals:
            continue
        if form == "plain foreach" and device == "cuda":
            continue  # that is what plain does there by itself
        _threaded(sides, form, device, threads, plain.loop(workload, device, kind).run)
    forms = forms_of(workload)
    if "forms" in rivals and workload.family == "sweep" and device == "cpu" and cores() > 1:
        best = quickest(workload, forms)  # each in a process of its own needs the memory of ten networks
        _working(sides, f"{cores()} processes of {best}", Workers(workload, best, cores()), cores())
    if "forms" in rivals and workload.family == "server" and not workload.softsync:
        joined = Workload("", "training", workload.network, workload.batch * workload.learners)
        for form, kind in forms.items():
            name = f"one batch of {joined.batch} {form}"
            _threaded(sides, name, device, threads, plain.loop(joined, device, kind).run)
    if "compiled" in rivals:
        _compiled(sides, absent, workload, device, threads, compile_all)
    if "jax" in rivals:
        _jax(sides, absent, workload, device, threads)
    return sides, absent


def forms_of(workload: Workload) -> dict[str, plain.Form]:
    """The forms that a workload's plain loop has: words have no memory format."""
    return {
        name: form
        for name, form in plain.FORMS.items()
        if not (form.channels_last and workload.family == "translation")
    }


def quickest(workload: Workload, forms: Mapping[str, plain.Form], device: str = "cpu") -> str:
    """The form whose loop of one run takes least time here, each tried for a few updates in turn."""
    one = replace(workload, runs=1)
    loops = {name: plain.loop(one, device, form) for name, form in forms.items()}
    timer = Timer(device)
    seconds = {name: [timer(Side(made.run), TRIED)[0] for _ in range(4)][1:] for name, made in loops.items()}
    return min(seconds, key=lambda name: min(seconds[name]))


def _threaded(
    sides: dict[str, Side], name: str, device: str, threads: Sequence[int], run: Callable[[int], Any]
) -> None:
    """The same networks with each number of threads: only torch's setting differs."""
    for count in threads:
        sides[labelled(name, device, count)] = Side(run, count, in_process=count)


def _ours(sides: dict[str, Side], workload: Workload, device: str, threads: Sequence[int]) -> None:
    """``ours`` is one thread on one core, or beside a GPU; for a sweep, a process for each core."""
    if workload.family == "sweep" and device == "cpu" and cores() > 1:
        workers = Workers(workload, "ours", cores())
        shown = {"processes": cores(), **_shown(workers.execution)}
        sides["ours"] = Side(workers.run, cores(), shown, workers.close)
    for count in threads:
        name = "ours" if count == 1 else f"ours, {count} threads"
        if name in sides:
            name = "ours, 1 process"
        elif workload.family == "sweep" and count > 1:
            continue  # processes use the cores better
        run, chosen = ours.in_process(workload, device, count)
        sides[name] = Side(run, count, _shown(chosen), in_process=count)
        if workload.softsync > 1:
            run, chosen = ours.in_waves(workload, device, count)
            sides[name.replace("ours", "ours in waves")] = Side(run, count, _shown(chosen), in_process=count)


def _shown(chosen: dict[str, Any]) -> dict[str, Any]:
    return {name: chosen[name] for name in SHOWN if name in chosen}


def _compiled(
    sides: dict[str, Side],
    absent: dict[str, str],
    workload: Workload,
    device: str,
    threads: Sequence[int],
    compile_all: bool,
) -> None:
    """The plain loop around a compiled loss; on CUDA also with its kernels replayed as graphs."""
    why = plain.why_not_compiled(device)
    if not why and not workload.compiled and not compile_all:
        why = "compiled only with --compile-all: of the larger networks that takes minutes"
    modes: dict[str, dict[str, Any]] = {"compiled": {}}
    if device == "cuda":
        modes["compiled, CUDA graphs"] = {"mode": "reduce-overhead"}
    if why:
        absent |= dict.fromkeys(modes, why)
        return
    torch._dynamo.reset()  # what other workloads compiled counts against a limit
    loss = plain.sentence_loss if workload.family == "translation" else plain.picture_loss
    layouts = {"": plain.Form()}
    if workload.family != "translation":
        layouts[" channels-last"] = plain.FORMS["plain channels-last fused"]
    for name, options in modes.items():
        for layout, form in layouts.items():
            compiled = torch.compile(loss, **options)
            run = plain.loop(workload, device, form, compiled).run
            _threaded(sides, name + layout, device, threads, run)


def why_not_jax(workload: Workload, device: str) -> str:
    """Why no JAX side takes part, or nothing."""
    if workload.network not in JAX_NETWORKS or workload.family not in ("training", "sweep"):
        return "written for single runs and sweeps of LeNet and quick alone"
    if device != "cpu":
        return "timed on a CPU alone"
    return "" if find_spec("jax") else "the package jax is not installed"


def _jax(
    sides: dict[str, Side], absent: dict[str, str], workload: Workload, device: str, threads: Sequence[int]
) -> None:
    """JAX in processes of its own; a sweep also by ``vmap``, and its best form in a process for each core."""
    if why := why_not_jax(workload, device):
        absent["jax"] = why
        return
    sweep = workload.family == "sweep"
    kinds = (*JAX_FORMS, f"{JAX_FORMS[0]} vmap") if sweep else JAX_FORMS
    for kind in kinds:
        for count in threads:
            _working(sides, labelled(kind, device, count), Workers(workload, kind, 1, count), count)
    if sweep and cores() > 1:
        timer = Timer(device)
        seconds = {kind: timer(sides[labelled(kind, device, 1)], TRIED)[0] for kind in kinds}
        best = min(kinds, key=seconds.__getitem__)
        _working(sides, f"{cores()} processes of {best}", Workers(workload, best, cores()), cores())


def _working(sides: dict[str, Side], name: str, workers: Workers, threads: int) -> None:
    sides[name] = Side(workers.run, threads, workers.execution, workers.close)


def prepared(workload: Workload, effort: Effort) -> tuple[Alternation, dict[str, str], int]:
    """Sides that are built and warm, reasons for those that are not there, and how many rounds to make."""
    apply(choose(RunSpec("train"), effort.device, 1))
    sides, absent = build(workload, effort.device, effort.rivals, effort.threads, effort.compile_all)
    turns = Alternation(sides, Timer(effort.device))
    gone = turns.warm(workload.block, SAMPLE, hopeless)
    absent |= {name: why for name, why in hopeless(turns.warmed).items() if name in gone}
    round_seconds = turns.updates * sum(turns.warmed[name] for name in turns.sides)
    return turns, absent, min(MOST, max(FEWEST, round(effort.seconds / round_seconds)))
