"""The experiments that measure: throughput of several learners on one device, and what each costs in memory.

The experiment ``crossbow/tuner``: Algorithm 2 and the settling rule, walked on scripted throughputs.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity

from reference_impls.crossbow import SMA
from reference_impls.crossbow_tuner import Literal, Settling, literal, settling
from suite.communication.collectives import Local
from suite.experiment import Context, Outcome, RunSpec
from suite.model_averaging.engine import Learners
from suite.model_averaging.tuner import ThroughputReading, tune
from suite.runner.autotune import alternating, preferred
from suite.training.build import random_classification
from suite.training.gradients.backend import Backend
from suite.training.gradients.paths import BACKENDS, backend, refusals
from suite.training.numerics import apply
from suite.training.optimizers import CaffeSGD


class Bench:
    """Learners of one problem, with a clock that waits for the device."""

    def __init__(self, gradients: Backend, learners: int, batch: int, device: str):
        self.problem, self.batch, self.device = gradients.problem, batch, device
        self.rate = torch.tensor(0.001, device=device)
        algorithm = SMA(CaffeSGD(0.9), Local(learners), alpha=0.1)
        self.learners = Learners(algorithm, self.problem.flat.point(), gradients, self.examples)

    def examples(self, numbers: Tensor) -> Tensor:
        count = len(self.problem.targets) // self.batch
        return (numbers % count)[:, None] * self.batch + torch.arange(self.batch, device=numbers.device)

    def turns(self, count: int) -> None:
        """``count`` iterations, finished on the device."""
        for _ in range(count):
            self.learners.step(self.rate)
        if self.device == "cuda":
            torch.cuda.synchronize()


PICTURES = 64  # batches of random pictures, which cost what real ones do
SIMPLE, MARGIN = "looped", 0.05  # another path must take this share less time to be preferred


def throughput(spec: RunSpec, context: Context) -> Outcome:
    """Seconds per iteration of k learners in one step, k runs one after another, and one k-times batch.

    Learners take every path that the problem has here: one after another (looped), at once (vectorised), and on a
    GPU one stream for each learner in a captured graph. All sides alternate within one process. ``seconds`` has a
    row for each side, k and repeat; the tuner then grows a set of learners by measured throughput. Results are
    ratios, the paths that were fastest (``path_k``) and why a path was not measured (``refused_PATH``).
    """
    apply(context.execution)
    settings, device, turns = spec.settings, context.device, spec.settings["turns"]
    ready, refused = prepared(settings, max(settings["learners"]), context.execution)

    def run(bench: Bench) -> None:
        with torch.random.fork_rng(devices=[]):
            bench.turns(turns)

    sides = sides_of(ready, settings["learners"], settings["batch"], device)
    seconds = alternating({key: partial(run, bench) for key, bench in sides.items()}, settings["repeats"])
    context.report(0.6)
    rows = [
        {"side": key.split()[0], "learners": int(key.split()[1]), "repeat": repeat, "seconds": spent / turns}
        for key, taken in seconds.items()
        for repeat, spent in enumerate(taken)
    ]
    results: dict[str, Any] = {f"refused_{path}": why for path, why in refused.items()}
    results |= ratios(seconds, ready, settings["learners"])
    # How many learners the auto-tuner chose on the same problem, and its longest change of their number.
    history, _ = walk(ready, settings, device, max(settings["learners"]))
    longest = max((reading.seconds for reading in history), default=0.0)
    iteration = median(seconds[f"{results['path_1']} 1"]) / turns  # of one learner
    results |= {"tuned_learners": history[-1].asked, "resize_seconds": longest}
    results |= {"resize_over_iteration": longest / iteration}
    return Outcome("finished", results, {"seconds": pd.DataFrame(rows)})


def prepared(
    settings: Mapping[str, Any], most: int, execution: Mapping[str, Any]
) -> tuple[dict[str, Backend], dict[str, str]]:
    """Gradients on random pictures, for so many learners, by each path that there is; and why there are no others."""
    pictures = PICTURES * settings["batch"] * most
    problem = random_classification({"name": settings["model"]}, pictures, execution, channels_last=True)
    refused = refusals(problem)
    return {path: backend(path, problem) for path in BACKENDS if path not in refused}, refused


def sides_of(ready: Mapping[str, Backend], learners: Iterable[int], batch: int, device: str) -> dict[str, Bench]:
    """For every number k: k learners on each path, and one learner with a batch k times as large."""
    sides: dict[str, Bench] = {}
    for k in learners:
        for path, gradients in ready.items():
            sides[f"{path} {k}"] = Bench(gradients, k, batch, device)
            if path != "vectorised":  # of one learner it is the looped path
                side = "batch" if path == SIMPLE else f"{path}-batch"
                sides[f"{side} {k}"] = Bench(gradients, 1, batch * k, device)
    return sides


def ratios(seconds: Mapping[str, list[float]], paths: Collection[str], learners: Collection[int]) -> dict[str, Any]:
    """For every number k its fastest path, and repeat by repeat how much faster that is than each other side."""
    results: dict[str, Any] = {}
    for k in learners:
        results[f"path_{k}"] = preferred({path: seconds[f"{path} {k}"] for path in paths}, SIMPLE, MARGIN)
    one = seconds[f"{results['path_1']} 1"]
    for k in learners:
        best = seconds[f"{results[f'path_{k}']} {k}"]
        whole = {side: seconds[f"{side} {k}"] for side in ("batch", "captured-batch") if f"{side} {k}" in seconds}
        large = whole[preferred(whole, "batch", MARGIN)]
        # k runs one after another cost k times one learner's iteration: the speed-up of throughput over m = 1
        results[f"over_one_{k}"] = [k * a / b for a, b in zip(one, best, strict=True)]
        results[f"over_batch_{k}"] = [a / b for a, b in zip(large, best, strict=True)]
        for path in set(paths) - {SIMPLE}:
            pairs = zip(seconds[f"{SIMPLE} {k}"], seconds[f"{path} {k}"], strict=True)
            results[f"{path}_over_{SIMPLE}_{k}"] = [a / b for a, b in pairs]
    return results


def walk(
    ready: Mapping[str, Backend], settings: Mapping[str, Any], device: str, most: int
) -> tuple[list[ThroughputReading], list[str]]:
    """The auto-tuner's readings from one learner to ``most`` at the most, and the path that was fastest at each."""
    bench = Bench(ready[SIMPLE], 1, settings["batch"], device)
    chosen: list[str] = []

    def train_on(path: str) -> None:
        bench.learners.gradients = ready[path]
        bench.turns(settings["turns"])

    def measure() -> float:
        seconds = alternating({path: partial(train_on, path) for path in ready}, 1)  # training goes on meanwhile
        chosen.append(path := preferred(seconds, SIMPLE, MARGIN))
        bench.learners.gradients = ready[path]
        return settings["turns"] * bench.learners.k * settings["batch"] / seconds[path][0]

    return tune(bench.learners, measure, threshold=settings["threshold"], readings=3, most=most), chosen


def memory(spec: RunSpec, context: Context) -> Outcome:
    """Bytes that learners need for a step, against batch and learners, with and without sharing activations.

    One after another (looped), the learners of a device share one set of activations; at once (vectorised), each has
    its own. ``bytes`` is the peak of what is allocated at one time: by a GPU's allocator, all that lies there; by a
    processor's, what learners hold and a step takes, which PyTorch's profiler sees. ``extra_shared`` and
    ``extra_own`` are the bytes of one learner more, for each batch size; ``state`` those of a replica, its velocity
    and its gradient.
    """
    apply(context.execution)
    device, name = context.device, spec.settings["model"]
    batches, counts = spec.settings["batches"], spec.settings["learners"]
    rows, found = [], dict[tuple[bool, int, int], int]()
    for batch in batches:
        for k in counts:
            problem = random_classification({"name": name}, PICTURES * batch, context.execution, channels_last=True)
            for path in ("looped", "vectorised"):
                bench, shared = partial(Bench, BACKENDS[path](problem), k, batch, device), path == "looped"
                found[shared, batch, k] = count = _peak_of_gpu(bench) if device == "cuda" else _peak(bench)
                rows.append({"batch": batch, "learners": k, "shared": shared, "bytes": count})
            context.report(len(rows) / (2 * len(batches) * len(counts)))
    few, many = min(counts), max(counts)
    results: dict[str, Any] = {"parameters": problem.d, "state": 3 * problem.d * problem.flat.x.element_size()}
    for shared in (True, False):
        more = [(found[shared, batch, many] - found[shared, batch, few]) / max(1, many - few) for batch in batches]
        results["extra_shared" if shared else "extra_own"] = more
    return Outcome("finished", results, {"memory": pd.DataFrame(rows)})


def _peak_of_gpu(make: Callable[[], Bench]) -> int:
    bench = make()
    bench.turns(1)
    torch.cuda.reset_peak_memory_stats()
    bench.turns(2)
    return torch.cuda.max_memory_allocated()


def _peak(make: Callable[[], Bench]) -> int:
    """Bytes that learners and two steps of theirs have at most in memory at one time, temporaries included."""
    gc.collect()  # of earlier learners nothing may be left
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler tells of every start and stop otherwise
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profile:
        make().turns(2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    changes = sorted((event for event in events if event.get("name") == "[memory]"), key=lambda event: event["ts"])
    return max(itertools.accumulate(event["args"]["Bytes"] for event in changes))


def tuner(spec: RunSpec, context: Context) -> Outcome:
    """Learners after each reading of throughputs with one peak, by both rules."""
    lines: list[dict[str, Any]] = []
    for peak in range(1, 9):
        # in proportion to the learners up to the peak, 3% less for each learner beyond; 0 for none
        curve = lambda learners, peak=peak: 1000 * min(learners, peak) * 0.97 ** max(0, learners - peak)
        state = Literal()
        for reading in range(60):
            state = literal(state, curve(state.learners), threshold=0.02 * curve(1))
            lines.append({"rule": "Algorithm 2", "peak": peak, "reading": reading, "learners": state.learners})
        settled, reading = Settling(), 0
        while not settled.holding:
            settled = settling(settled, curve(settled.learners))
            lines.append({"rule": "settling", "peak": peak, "reading": reading, "learners": settled.learners})
            reading += 1
    return Outcome("finished", {}, {"walks": pd.DataFrame(lines)})
