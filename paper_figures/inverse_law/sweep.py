"""The experiment ``inverse_law/sweep``: updates that one (model, batch size, rate, seed) needs to its thresholds.

Settings (plain values)::

    data      {name, labels: digits | parity | classes, transform, size?}
    model     {name, ...options}                 descent   {rule, decay?, ...}
    rate, batch, workers?                        limit     updates after which the rest is censored
    share     of the data in each of the two samples (0.2)
    sample    examples of a sample that a test reads; null: all of them
    growth    of the test grid; 0 tests every update
    every     least distance of two tests; above 1 crossings are multiples of it
    monitors  {training: [thresholds], validation?: [thresholds]}

The data are permuted once, the same for every run. The first sample is held out for the validation loss, the
second is part of what is trained on; ``sample`` keeps the first so many examples of each.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from paper_figures.inverse_law.lockstep import Lockstep
from suite import checkpoint, evaluation
from suite.assembly import DTYPES, make_descent, make_network
from suite.data import images, order, transforms
from suite.execution import apply
from suite.experiments import Context, OutOfTime
from suite.flat import FlatModule
from suite.gradients import PATHS
from suite.problems import Classification
from suite.spec import RunSpec, seed
from suite.store import Outcome
from suite.threshold import Monitor, Reading, Search, Test

CHUNKS = {"cpu": 50, "cuda": 2000}  # examples of a test read at a time: small ones let a test end early
LABELS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "digits": lambda targets: targets,
    "classes": lambda targets: targets,
    "parity": lambda targets: targets % 2,
}


class Trainer(Lockstep):
    """SGD on one network from a seed: what a driver of searches steps, and what a search reads."""

    def __init__(self, spec: RunSpec, context: Context):
        settings = spec.settings
        device, dtype = context.device, DTYPES[context.execution["precision"]]
        data = dict(settings["data"])
        name, rule, labels = data.pop("name"), data.pop("transform"), data.pop("labels")
        size = data.pop("size", None)
        if labels not in LABELS:
            raise ValueError(f"labels must be one of {sorted(LABELS)}, not {labels!r}")
        pictures = images.load_images(name, "train", root=context.data, **data)
        mixed = torch.randperm(len(pictures.targets), generator=torch.Generator().manual_seed(seed("samples", name)))
        held = int(settings["share"] * len(mixed))
        if not 0 < 2 * held < len(mixed):
            raise ValueError(f"share={settings['share']} must leave two samples and more among {len(mixed)} examples")
        inputs, targets = pictures.inputs[mixed].to(device), LABELS[labels](pictures.targets[mixed]).to(device)
        network = make_network(settings["model"], spec.seed, device, dtype)
        flat = FlatModule(network, channels_last=context.execution["channels_last"])
        fitted = transforms.fit(rule, inputs[held:], size)
        decode = lambda pixels: fitted(pixels).to(dtype)
        problem = Classification(flat, inputs[held:], targets[held:], decode)
        workers = settings.get("workers", 1)
        if settings["batch"] % workers:
            raise ValueError(f"batch={settings['batch']} does not divide over workers={workers}")
        rate = torch.tensor(settings["rate"], dtype=dtype, device=device)
        path = PATHS[context.execution["path"]]
        super().__init__(path(problem), make_descent(settings["descent"], flat), rate, workers)
        read = settings["sample"] or held
        self.samples = {
            "validation": self._sample(decode, inputs[:held][:read], targets[:held][:read]),
            "training": self._sample(decode, inputs[held : 2 * held][:read], targets[held : 2 * held][:read]),
        }
        self.test_examples = len(self.samples["training"][1])
        self.order = order.Shuffled(len(self.problem.targets), settings["batch"], seed(spec.seed, "order"))

    def _sample(self, decode: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor) -> Any:
        pixels = decode(inputs)
        if self.flat.channels_last:
            pixels = pixels.contiguous(memory_format=torch.channels_last)
        return pixels, targets

    def examples(self, t: int) -> Tensor:
        return self.order.indices(torch.tensor([t])).view(self.workers, -1)

    def reader(self, sample: str) -> Callable[[Any, float], Reading]:
        """How a monitor reads the loss of a state on a sample."""
        inputs, targets = self.samples[sample]
        chunk = CHUNKS[inputs.device.type]

        def read(state: Any, threshold: float) -> Reading:
            x = self.algorithm.model(None, state, self.collective)
            already = lambda pixels: pixels  # the samples are kept decoded
            return evaluation.read(
                self.problem, x, self.buffers[0], inputs, targets, threshold, chunk=chunk, decode=already
            )

        return read


def sweep(spec: RunSpec, context: Context) -> Outcome:
    """Run or resume one search. Thresholds not crossed within the limit are censored and shown as -1."""
    apply(context.execution)
    return search_run(spec, context, Trainer(spec, context))


def search_run(
    spec: RunSpec, context: Context, trainer: Any, judge: Callable[[Any], dict[str, Any]] = lambda state: {}
) -> Outcome:
    """Drive one search of any trainer: something that can ``start``, ``advance`` and be read.

    ``judge`` adds results about the state in which the search ended.
    """
    search = resume(spec, context, trainer)
    limit, saved = spec.settings["limit"], time.monotonic()
    diverged = False
    while not (search.done or diverged):
        update, state = search.position
        search.see(trainer.advance(state, update, search.next_update))
        diverged = math.isinf(search.tests[-1].reading.loss)
        context.report(search.position[0] / limit)
        if search.at_rest and (time.monotonic() - saved > context.checkpoint_seconds or context.late):
            save(context, trainer, search)
            saved = time.monotonic()
            if context.late:
                raise OutOfTime
    made = outcome(trainer, search, diverged)
    return Outcome(made.status, {**made.results, **judge(search.position[1])}, made.curves)


def monitors(spec: RunSpec, trainer: Any) -> list[Monitor]:
    return [Monitor(name, trainer.reader(name), tuple(t)) for name, t in sorted(spec.settings["monitors"].items())]


def save(context: Context, trainer: Any, search: Search) -> None:
    update, state = search.position
    values = {
        "update": update,
        "seconds": trainer.seconds,
        "crossed": {m.name: sorted(m.crossed.items()) for m in search.monitors},
        "tests": [[t.monitor, t.update, *t.reading] for t in search.tests],
    }
    checkpoint.save(context.folder, state, values, {"buffers": trainer.buffers})


def resume(spec: RunSpec, context: Context, trainer: Any) -> Search:
    """The search from its last checkpoint, or a new one."""
    watched, state, update = monitors(spec, trainer), trainer.start(), 0
    grid = {name: spec.settings[name] for name in ("growth", "every", "limit") if name in spec.settings}
    found = checkpoint.load(context.folder, state, context.device)
    if found is None:
        return Search(watched, state, **grid)
    state, values, tensors = found
    update, trainer.seconds, trainer.buffers = values["update"], values["seconds"], tensors["buffers"]
    for monitor in watched:
        monitor.crossed = dict(values["crossed"][monitor.name])
    search = Search(watched, state, **grid, update=update)
    search.tests = [Test(name, at, Reading(*reading)) for name, at, *reading in values["tests"]]
    return search


def outcome(trainer: Any, search: Search, diverged: bool) -> Outcome:
    """``crossed_NAME`` holds the updates to each of ``thresholds_NAME``, -1 where censored."""
    import pandas as pd

    results: dict[str, Any] = {
        "updates": search.position[0],
        "update_seconds": trainer.seconds,
        "parameters": trainer.problem.d,
        "test_examples": trainer.test_examples,
    }
    for monitor in search.monitors:
        results[f"thresholds_{monitor.name}"] = list(monitor.thresholds)
        results[f"crossed_{monitor.name}"] = [monitor.crossed.get(t, -1) for t in monitor.thresholds]
    rows = [(t.monitor, t.update, t.reading.loss, t.reading.cut, t.reading.examples) for t in search.tests]
    tests = pd.DataFrame(rows, columns=["monitor", "update", "loss", "cut", "examples"])
    status = "diverged" if diverged else "out of budget" if any(m.pending for m in search.monitors) else "finished"
    return Outcome(status, results, {"tests": tests})
