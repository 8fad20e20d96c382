"""The experiments that measure: throughput of several learners on one device, and what each costs in memory.

The experiment ``crossbow/tuner``: Algorithm 2 and the settling rule, walked on scripted throughputs.

The experiments ``crossbow/engine``, ``crossbow/engine-asleep`` and ``crossbow/tasks``: the task engine. In the first
each rule computes beside its rival, on the cores at hand. In the second learning tasks sleep for as long as their
batch is large, so that any number of them run side by side, as small kernels do on a GPU; tasks, averages and
waiting are real. In ``crossbow/tasks`` learning and synchronisation tasks on streams are simulated and recorded. The
virtual schedules are deterministic; the recorded trace is of real threads. Neither trains a network.
"""

from __future__ import annotations

import gc
import itertools
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
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
from suite.model_averaging.engine import Engine, Learners
from suite.model_averaging.task_schedule import Durations, idle_seconds, schedule
from suite.model_averaging.tuner import ThroughputReading, tune
from suite.runner.autotune import alternating, by_repeat, preferred
from suite.spec import seed
from suite.training.build import random_classification
from suite.training.gradients.backend import Backend, Batch, Functional, Rows
from suite.training.gradients.paths import BACKENDS, backend, refusals
from suite.training.numerics import apply
from suite.training.optimizers import CaffeSGD, InPlace
from suite.training.problem import QuadraticProblem


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
    table = by_repeat(seconds, "side")
    table[["side", "learners"]] = table["side"].str.split(expand=True)
    table = table.astype({"learners": int}).assign(seconds=table["seconds"] / turns)
    results: dict[str, Any] = {f"refused_{path}": why for path, why in refused.items()}
    results |= ratios(seconds, ready, settings["learners"])
    # How many learners the auto-tuner chose on the same problem, and its longest change of their number.
    history, _ = walk(ready, settings, device, max(settings["learners"]))
    longest = max((reading.seconds for reading in history), default=0.0)
    iteration = median(seconds[f"{results['path_1']} 1"]) / turns  # of one learner
    results |= {"tuned_learners": history[-1].asked, "resize_seconds": longest}
    results |= {"resize_over_iteration": longest / iteration}
    return Outcome("finished", results, {"seconds": table[["side", "learners", "repeat", "seconds"]]})


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
    # ``acc_events`` makes no difference to one cycle; without it torch 2.11 warns of cycles.
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profile:
        make().turns(2)
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    return max(itertools.accumulate(event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())))


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


RULES: dict[str, dict[str, Any]] = {
    "first come": {},
    "round robin": {"policy": "round-robin"},
    "barrier": {"overlap": False},
}
RATE = 0.001


def engine(spec: RunSpec, context: Context) -> Outcome:
    """Seconds of an iteration by rule, on batches of one size and of several, and by number of learners.

    All sides alternate in one process, and every side of a kind reads the same batches. ``in turn`` is the rule
    without tasks, one learner after the other. Results name the number of learners at which the tuner ended, which
    began with one, and the path of the gradients. The table ``seconds`` has a row for each side and repeat.
    """
    apply(context.execution)
    settings, k = spec.settings, spec.settings["learners"]
    ready = partial(made, spec, context.execution)
    sides = by_rule(ready, settings)
    sides["in turn, alike"] = partial(one_by_one, ready(k), settings["turns"])
    sides |= {f"{m} learners": trained(ready(m), settings) for m in range(1, settings["most"] + 1)}
    table = timed(sides, settings)
    context.report(0.8)
    growing = ready(1)
    rate = partial(tasks_per_second, growing, trained(growing, settings))
    history = tune(growing, rate, threshold=settings["threshold"], readings=3, most=settings["most"])
    results = {"tuned": history[-1].asked, "path": growing.gradients.name}
    return Outcome("finished", results, {"seconds": table})


def asleep(spec: RunSpec, context: Context) -> Outcome:
    """The same seconds by rule, of learning tasks that sleep."""
    return Outcome("finished", {}, {"seconds": timed(by_rule(partial(sleeping, spec), spec.settings), spec.settings)})


def by_rule(ready: Callable[..., Learners], settings: Mapping[str, Any]) -> dict[str, Callable[[], object]]:
    """Some iterations under each rule, on batches alike and varied."""
    return {
        f"{rule}, {batches}": trained(ready(settings["learners"], varied=batches == "varied"), settings, **options)
        for rule, options in RULES.items()
        for batches in ("alike", "varied")
    }


def timed(sides: Mapping[str, Callable[[], object]], settings: Mapping[str, Any]) -> pd.DataFrame:
    """Seconds of an iteration, a row for each side and repeat."""
    table = by_repeat(alternating(sides, settings["repeats"]), "side")
    return table.assign(seconds=table["seconds"] / settings["turns"])


class Asleep(Functional):
    """Gradients that take as many seconds as the rows of their batch say together."""

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        time.sleep(float(batches[0][0].sum()))
        return super().__call__(points, buffers, batches)


def sleeping(spec: RunSpec, k: int, *, varied: bool) -> Learners:
    """Learners whose batches take ``seconds``, or as long on average."""
    batch, seconds = spec.settings["batch"], spec.settings["seconds"]
    problem = QuadraticProblem(torch.full((2 * batch, 1), seconds / batch), torch.ones(1))
    return Learners(SMA(CaffeSGD(), Local(k)), torch.ones(1), Asleep(problem), drawn(spec, "cpu", varied))


def made(spec: RunSpec, execution: Mapping[str, Any], k: int, *, varied: bool = False) -> Learners:
    """Learners on random pictures."""
    device, pictures = execution["device"], PICTURES * spec.settings["batch"]
    problem = random_classification({"name": spec.settings["model"]}, pictures, execution, channels_last=True)
    path = "looped" if "native" in refusals(problem) else "native"
    optimizer = CaffeSGD(0.9)
    solver = InPlace(optimizer, overwrites=False) if device == "cpu" else optimizer
    return Learners(SMA(solver, Local(k)), problem.flat.point(), backend(path, problem), drawn(spec, device, varied))


def drawn(spec: RunSpec, device: str, varied: bool) -> Callable[[Tensor], Tensor]:
    """Examples of a batch; sizes of varied batches are drawn, and as large as the others on average."""
    batch = spec.settings["batch"]
    images = torch.arange(2 * batch, device=device)

    def examples(numbers: Tensor) -> Tensor:
        size = 1 + seed(spec.seed, "size", int(numbers[0])) % (2 * batch - 1) if varied else batch
        return images[:size].expand(len(numbers), -1)

    return examples


def trained(learners: Learners, settings: Mapping[str, Any], **options: Any) -> Callable[[], object]:
    """Some iterations by the engine."""
    rate = torch.tensor(RATE, device=learners.centre.device)
    return partial(Engine(learners, settings["workers"], **options).run, settings["turns"], rate)


def one_by_one(learners: Learners, turns: int) -> None:
    for _ in range(turns):
        learners.step(torch.tensor(RATE, device=learners.centre.device))


def tasks_per_second(learners: Learners, work: Callable[[], object]) -> float:
    """Learning tasks per second of the present number of learners, which go on training."""
    before = learners.taken
    seconds = median(alternating({"tuned": work}, 2)["tuned"])
    return (learners.taken - before) / 3 / seconds


def tasks(spec: RunSpec, context: Context) -> Outcome:
    """Virtual schedules of 2 GPUs with 2 learners (Fig. 8), and a trace recorded from threads.

    Results: idle stream-seconds under both ways to assign batches.
    """
    durations = Durations(lambda batch: 1 + _uniform(spec.seed, batch), local=0.1, overall=0.5)
    virtual = schedule(4, 2, 2, durations)
    # Every second batch takes longer; a quadratic's gradient alone is too short to see.
    problem = QuadraticProblem(torch.tensor([[0.002], [0.003]]), torch.ones(1))  # seconds
    learners = Learners(
        SMA(CaffeSGD(), Local(2)), torch.ones(1), Asleep(problem), lambda numbers: numbers[:, None] % 2
    )
    recorded = Engine(learners, workers=2).run(12, torch.tensor(0.1))
    first_come, round_robin = [], []
    for repeat in range(spec.settings["repeats"]):
        length = lambda batch, repeat=repeat: 0.5 + _uniform(spec.seed, batch, repeat)  # seconds of a learning task
        varied = Durations(length, local=0.05, overall=0.2)
        first_come.append(idle_seconds(schedule(100, 2, 4, varied)))
        round_robin.append(idle_seconds(schedule(100, 2, 4, varied, "round-robin")))
    results: dict[str, Any] = {"idle_first_come": first_come, "idle_round_robin": round_robin}
    frames = {
        name: pd.DataFrame([asdict(t) for t in trace])
        for name, trace in (("virtual", virtual), ("recorded", recorded))
    }
    return Outcome("finished", results, frames)


def _uniform(*coordinates: int) -> float:
    return seed(*coordinates) / 2**63
