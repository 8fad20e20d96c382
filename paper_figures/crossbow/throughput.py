"""The experiments that measure: throughput of several learners on one device, and what each costs in memory."""

from __future__ import annotations

import time
from functools import partial
from statistics import median
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from reference_impls import crossbow
from suite.descent import Caffe
from suite.execution import apply
from suite.experiments import Context
from suite.flat import FlatModule
from suite.gradients import PATHS, Gradients
from suite.learners import Learners
from suite.models import build, initialise
from suite.problems import Classification
from suite.spec import RunSpec, seed
from suite.store import Outcome
from suite.tuning import alternating, faster_path, tune


def classification(name: str, batch: int, device: str, run_seed: int) -> Classification:
    """A network of Table 1 (or a smaller one) on random pictures, which cost what real ones do."""
    module = build(name)
    initialise(module, seed(run_seed, "weights"))
    flat = FlatModule(module.to(device), channels_last=True)
    draw = torch.Generator().manual_seed(seed(run_seed, "pictures"))
    shape: Any = module.input_shape
    pixels = torch.randint(256, (64 * batch, *shape), generator=draw, dtype=torch.uint8).to(device)
    labels = torch.randint(int(module.classes), (64 * batch,), generator=draw).to(device)  # type: ignore[arg-type]
    return Classification(flat, pixels, labels, lambda x: x.float() / 256)


class Bench:
    """Learners of one problem on one path, with a clock that waits for the device."""

    def __init__(self, problem: Classification, path: str, learners: int, batch: int, device: str):
        self.problem, self.batch, self.device = problem, batch, device
        gradients: Gradients = PATHS[path](problem)
        self.rate = torch.tensor(0.001, device=device)
        config = crossbow.Config(alpha=0.1)
        self.learners = Learners(config, problem.flat.point(), learners, gradients, Caffe(0.9), self.examples)

    def examples(self, numbers: Tensor) -> Tensor:
        count = len(self.problem.targets) // self.batch
        return (numbers % count)[:, None] * self.batch + torch.arange(self.batch, device=numbers.device)

    def turns(self, count: int) -> None:
        """``count`` iterations, finished on the device."""
        for _ in range(count):
            self.learners.step(self.rate)
        if self.device == "cuda":
            torch.cuda.synchronize()


def throughput(spec: RunSpec, context: Context) -> Outcome:
    """Seconds per iteration of k learners in one step, k runs one after another, and one k-times batch.

    All sides alternate within one process. ``seconds`` has a row for each network, side, k and repeat; the tuner
    then grows a set of learners by measured throughput. Results hold ratios only.
    """
    apply(context.execution)
    settings, device = spec.settings, context.device
    name, batch, turns, repeats = (settings[key] for key in ("model", "batch", "turns", "repeats"))
    problem = classification(name, batch * max(settings["learners"]), device, spec.seed)
    sides: dict[str, Bench] = {}
    for k in settings["learners"]:
        for path in ("looped", "vectorised"):
            sides[f"{path} {k}"] = Bench(problem, path, k, batch, device)
        sides[f"batch {k}"] = Bench(problem, "looped", 1, batch * k, device)

    def run(bench: Bench) -> None:
        with torch.random.fork_rng(devices=[]):
            bench.turns(turns)

    seconds = alternating({key: partial(run, bench) for key, bench in sides.items()}, repeats)
    context.report(0.6)
    rows, results = [], dict[str, Any]()
    for key, taken in seconds.items():
        side, _, k = key.partition(" ")
        rows += [{"side": side, "learners": int(k), "repeat": r, "seconds": s / turns} for r, s in enumerate(taken)]
    one = seconds["looped 1"]
    for k in settings["learners"]:
        path = faster_path({p: seconds[f"{p} {k}"] for p in ("looped", "vectorised")}, "looped")
        best = seconds[f"{path} {k}"]
        results[f"path_{k}"] = path
        # k runs one after another cost k times one learner's iteration: the speed-up of throughput over m = 1
        results[f"over_one_{k}"] = [k * a / b for a, b in zip(one, best, strict=True)]
        results[f"over_batch_{k}"] = [a / b for a, b in zip(seconds[f"batch {k}"], best, strict=True)]
        results[f"vectorised_over_looped_{k}"] = [
            a / b for a, b in zip(seconds[f"looped {k}"], seconds[f"vectorised {k}"], strict=True)
        ]
    results |= _tuned(problem, spec, device, rows)
    return Outcome("finished", results, {"seconds": pd.DataFrame(rows)})


def _tuned(problem: Classification, spec: RunSpec, device: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The auto-tuner on the same problem: what it chose, beside the best of the counts measured one by one."""
    settings = spec.settings
    bench = Bench(problem, "looped", 1, settings["batch"], device)

    def measure() -> float:
        bench.turns(1)
        began = time.perf_counter()
        bench.turns(settings["turns"])
        return settings["turns"] * bench.learners.k * settings["batch"] / (time.perf_counter() - began)

    most = max(settings["learners"])
    history = tune(bench.learners, measure, threshold=settings["threshold"], readings=3, most=most)
    alone = [row for row in rows if row["side"] == "looped"]
    speed = {k: k / median(r["seconds"] for r in alone if r["learners"] == k) for k in settings["learners"]}
    best, chosen = max(speed, key=lambda k: speed[k]), history[-1].asked
    changes = [reading.seconds for reading in history if reading.seconds]
    found: dict[str, Any] = {
        "tuned_learners": chosen,
        "best_learners": best,
        "resize_over_iteration": max(changes, default=0.0) * speed[min(speed)] / min(speed),
    }
    if chosen in speed:
        found["tuned_over_best"] = speed[chosen] / speed[best]
    return found


def memory(spec: RunSpec, context: Context) -> Outcome:
    """Bytes that learners need for a step, against batch and learners, with and without sharing activations.

    One after another (looped), the learners of a device share one set of activations; at once (vectorised), each has
    its own. On a GPU the allocator's peak is read. A CPU has no such count: there the tensors that autograd saves
    for one learner, or for all at once, are added to the state that all learners hold.
    """
    apply(context.execution)
    device, name = context.device, spec.settings["model"]
    rows = []
    for batch in spec.settings["batches"]:
        for k in spec.settings["learners"]:
            problem = classification(name, batch, device, spec.seed)
            for path in ("looped", "vectorised"):
                bench = Bench(problem, path, k, batch, device)
                count = _peak(bench) if device == "cuda" else _saved(bench, k if path == "vectorised" else 1)
                rows.append({"batch": batch, "learners": k, "shared": path == "looped", "bytes": count})
    return Outcome("finished", {"parameters": problem.d}, {"memory": pd.DataFrame(rows)})


def _peak(bench: Bench) -> int:
    bench.turns(1)
    torch.cuda.reset_peak_memory_stats()
    bench.turns(2)
    return torch.cuda.max_memory_allocated()


def _saved(bench: Bench, graphs: int) -> int:
    """Bytes of the learners' state and of what autograd keeps for ``graphs`` forward passes alive together."""
    problem, seen = bench.problem, dict[int, int]()

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    alive = []
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        for j in range(graphs):
            inputs, targets = problem.fetch(bench.examples(torch.tensor([j]))[0])
            alive.append(problem.criterion(problem.flat.module(inputs), targets))
    seen.pop(problem.flat.x.untyped_storage().data_ptr(), None)
    state = sum(tensor.numel() * tensor.element_size() for tensor in bench.learners.state)
    return state + sum(seen.values())
