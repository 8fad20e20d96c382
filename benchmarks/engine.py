"""Updates through the suite against the plain eager loop, both sides alternating in one process.

    python -m benchmarks.engine [--only NAME] [--repeats N] [--out FILE]

The rival is the loop a user would write: modules, ``torch.optim.SGD`` with momentum and weight decay, pictures in
memory, one run after another, with 1 and with 2 threads. Every ratio is rival time over ours, above 1 where the
suite is faster. At one thread processor time is counted beside wall time: other programs disturb it least. The
memory setting that ``suite.execution.apply`` makes helps both sides alike.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from suite import environment
from suite.algorithms import algorithm
from suite.assembly import Assembly
from suite.data.order import FixedCycle
from suite.descent import Torch
from suite.execution import apply, choose
from suite.experiments import Context
from suite.gradients import PATHS
from suite.models import build, initialise
from suite.problems import random_classification
from suite.schedules import rounds
from suite.spec import RunSpec
from suite.training import Session

EXAMPLES = 2048
RATE, MOMENTUM, DECAY = 0.01, 0.9, 5e-4
Update = Callable[[], None]


class Plain:
    """A user's loop: ``learners`` models that each take a step, elastic averaging between them if there are several.

    With ``shared`` the learners' gradients of one model are added up before its step instead.
    """

    def __init__(self, model: str, batch: int, learners: int = 1, shared: bool = False, **options: Any):
        self.batch, self.learners, self.shared = batch, learners, shared
        self.models = [network(model) for _ in range(1 if shared else learners)]
        self.solvers = [
            torch.optim.SGD(m.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY, **options)
            for m in self.models
        ]
        self.inputs, self.targets = pictures(model)
        self.centre = [p.detach().clone() for p in self.models[0].parameters()]
        self.previous = [p.clone() for p in self.centre]
        self.t = 0

    def __call__(self) -> None:
        for learner in range(self.learners):
            which = 0 if self.shared else learner
            if not (self.shared and learner):
                self.solvers[which].zero_grad()
            rows = (torch.arange(self.batch) + (self.t * self.learners + learner) * self.batch) % EXAMPLES
            outputs = self.models[which](self.inputs[rows].float() / 256)
            loss = F.cross_entropy(outputs, self.targets[rows])
            (loss / self.learners if self.shared else loss).backward()
        if len(self.models) > 1:
            self.average()
        for solver in self.solvers:
            solver.step()
        self.t += 1

    @torch.no_grad()
    def average(self) -> None:
        """The corrections of synchronous model averaging, parameter by parameter."""
        for i, parameters in enumerate(zip(*(m.parameters() for m in self.models), strict=True)):
            total = torch.zeros_like(self.centre[i])
            for p in parameters:
                correction = (p - self.centre[i]) / self.learners
                p -= correction
                total += correction
            moved = self.centre[i] + total + MOMENTUM * (self.centre[i] - self.previous[i])
            self.previous[i], self.centre[i] = self.centre[i], moved


def network(model: str) -> torch.nn.Module:
    module = build(model)
    initialise(module, 1)
    return module


def pictures(model: str) -> tuple[torch.Tensor, torch.Tensor]:
    made = random_classification({"name": model}, EXAMPLES, "cpu", "float32", False)
    return made.inputs, made.targets


def ours(
    model: str, batch: int, learners: int = 1, shared: bool = False, threads: int = 1, channels_last: bool = True
) -> Session:
    """A session of the suite on the same pictures."""
    chosen = "sgd" if shared or learners == 1 else "crossbow"
    settings = {
        "workers": learners,
        "updates": 10**9,
        "evaluate": {"every": 10**9},
        "record": {"every": 10**6},
        "rate": RATE,
        "batch": batch,
    }
    spec = RunSpec("train", settings)
    execution = choose(spec, "cpu", threads) | {"channels_last": channels_last}
    problem = random_classification({"name": model}, EXAMPLES, "cpu", "float32", channels_last)
    module = algorithm(chosen)
    config = module.Config(momentum=MOMENTUM) if chosen == "crossbow" else None
    solver = Torch(MOMENTUM, DECAY)
    order = FixedCycle(EXAMPLES, batch, 0)
    made = Assembly(problem, problem.flat.point(), order, module, config, solver, problem.inputs, problem.targets)
    return Session(spec, Context(Path(), execution), made, PATHS["looped"](problem))


def updates_of(session: Session) -> Update:
    turns = rounds(session.workers)
    return lambda: session.update(next(turns))


WORKLOADS: dict[str, dict[str, Any]] = {
    **{f"lenet M={m}": {"model": "caffe_lenet", "batch": m} for m in (1, 16, 64)},
    **{f"quick M={m}": {"model": "caffe_cifar_quick", "batch": m} for m in (4, 32, 128)},
    **{f"full M={m}": {"model": "caffe_cifar_full", "batch": m} for m in (4, 32, 128)},
    "full 30 learners mu=4": {"model": "caffe_cifar_full", "batch": 4, "learners": 30, "shared": True},
    **{f"lenet SMA k={k}": {"model": "caffe_lenet", "batch": 16, "learners": k} for k in (1, 4, 16)},
}


def alternate(sides: Mapping[str, tuple[int, Update]], repeats: int) -> dict[str, dict[str, list[float]]]:
    """Wall and processor seconds of each side's updates, sides taking turns, each with its number of threads."""
    spent: dict[str, dict[str, list[float]]] = {name: {"wall": [], "processor": []} for name in sides}
    for repeat in range(repeats + 2):
        for name, (threads, update) in sides.items():
            torch.set_num_threads(threads)
            wall, processor = time.perf_counter(), time.thread_time()
            update()
            if repeat >= 2:
                spent[name]["processor"].append(time.thread_time() - processor)
                spent[name]["wall"].append(time.perf_counter() - wall)
    torch.set_num_threads(1)
    return spent


def quartiles(values: Sequence[float]) -> list[float]:
    return [round(v, 3) for v in statistics.quantiles(values, n=4)]


def compare(repeats: int, model: str, batch: int, learners: int = 1, shared: bool = False) -> dict[str, Any]:
    """Ratios of one workload: per thread count, and the faster rival over the faster of ours."""
    kind = {"model": model, "batch": batch, "learners": learners, "shared": shared}
    sides: dict[str, tuple[int, Update]] = {}
    for threads in (1, 2):
        sides[f"plain {threads}"] = threads, Plain(**kind)
        sides[f"fused {threads}"] = threads, Plain(**kind, fused=True)
        sides[f"ours {threads}"] = threads, updates_of(ours(**kind, threads=threads))
    spent = alternate(sides, repeats)
    median = {name: statistics.median(times["wall"]) for name, times in spent.items()}
    found: dict[str, Any] = {}
    for rival in ("plain", "fused"):
        pairs = zip(spent[f"{rival} 1"]["processor"], spent["ours 1"]["processor"], strict=True)
        found[f"{rival}, 1 thread, processor time (quartiles)"] = quartiles([a / b for a, b in pairs])
        for threads in (1, 2):
            walls = zip(spent[f"{rival} {threads}"]["wall"], spent[f"ours {threads}"]["wall"], strict=True)
            found[f"{rival}, {threads} thread(s), wall (quartiles)"] = quartiles([a / b for a, b in walls])
        fastest = min(median[f"{rival} 1"], median[f"{rival} 2"])
        found[f"{rival}, faster thread count, wall"] = round(fastest / min(median["ours 1"], median["ours 2"]), 3)
    return found


def machine() -> dict[str, Any]:
    """What the ratios were measured on, and how busy it was."""
    load = os.getloadavg()[0]
    return environment.machine() | {"torch": torch.__version__, "load_average": round(load, 1)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="workloads whose name contains this")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(arguments)
    apply(choose(RunSpec("train"), "cpu", 1))
    before, results = machine(), {}
    for name, workload in WORKLOADS.items():
        if chosen.only is None or chosen.only in name:
            results[name] = compare(chosen.repeats, **workload)
            print(name, json.dumps(results[name]), flush=True)
    if chosen.out:
        text = {"ratios": "rival time over ours", "machine": before, "after": machine(), "workloads": results}
        chosen.out.write_text(json.dumps(text, indent=1) + "\n")


if __name__ == "__main__":
    main()
