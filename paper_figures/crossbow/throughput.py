"""The experiments that measure: throughput of several learners on one device, and what each costs in memory."""

from __future__ import annotations

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

    seconds = alternating({key: lambda bench=bench: run(bench) for key, bench in sides.items()}, repeats)
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
        import time

        bench.turns(1)
        began = time.perf_counter()
        bench.turns(settings["turns"])
        return settings["turns"] * bench.learners.k * settings["batch"] / (time.perf_counter() - began)

    most = max(settings["learners"])
    history = tune(bench.learners, measure, threshold=settings["threshold"], readings=3, most=most)
    fixed = {
        k: settings["batch"] * k / median(r["seconds"] for r in rows if r["side"] == "looped" and r["learners"] == k)
        for k in settings["learners"]
    }
    best = max(fixed, key=lambda k: fixed[k])
    changes = [reading.seconds for reading in history if reading.seconds]
    return {
        "tuned_learners": history[-1].asked,
        "best_learners": best,
        "tuned_over_best": fixed.get(history[-1].asked, float("nan")) / fixed[best] if history[-1].asked in fixed else None,
        "resize_over_iteration": max(changes, default=0.0) / median(r["seconds"] for r in rows if r["learners"] == 1),
    }


def memory(spec: RunSpec, context: Context) -> Outcome:
    """Bytes that a learner's gradient keeps until it is used, against batch and learners, counted at run time.

    On a GPU the allocator's peak is measured; on a CPU, which has no such count, the tensors that autograd saves
    and the rows that the state holds.
    """
    apply(context.execution)
    device, name = context.device, spec.settings["model"]
    rows = []
    for batch in spec.settings["batches"]:
        for k in spec.settings["learners"]:
            problem = classification(name, batch, device, spec.seed)
            rows.append({"batch": batch, "learners": k, "bytes": _bytes(problem, batch, k, device)})
    return Outcome("finished", {"parameters": problem.d}, {"memory": pd.DataFrame(rows)})


def _bytes(problem: Classification, batch: int, k: int, device: str) -> int:
    bench = Bench(problem, "vectorised", k, batch, device)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        bench.turns(2)
        return torch.cuda.max_memory_allocated()
    seen: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        seen[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    # One learner's graph at a time is what the hook can see under vmap's absence: k graphs are alive together.
    losses = []
    module = problem.flat.module
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        for j in range(k):
            inputs, targets = problem.fetch(bench.examples(torch.tensor([j]))[0])
            losses.append(problem.criterion(module(inputs), targets))
    state = sum(tensor.numel() * tensor.element_size() for tensor in bench.learners.state)
    weights = problem.flat.x.untyped_storage().data_ptr()
    return state + sum(size for pointer, size in seen.items() if pointer != weights)
