"""The experiment ``inverse_law/sweep``: updates that one (model, batch size, rate, seed) needs to its thresholds.

Settings (plain values)::

    data      {name, labels: digits | parity | classes, transform, size?}
    model     {name, ...options}                 descent   {rule, decay?, ...}
    rate, batch, workers?                        limit     updates after which the rest is censored
    share     of the data in each of the two samples (0.2)
    sample    examples of a sample that a test reads; null: all of them
    sample_of "each seed"?: every seed reads examples of its own choice; without it all read the same
    growth    of the test grid; 0 tests every update
    every     least distance of two tests; above 1 crossings are multiples of it
    monitors  {training: [thresholds], validation?: [thresholds]}

The data are permuted once, the same for every run. The first sample is held out for the validation loss, the
second is part of what is trained on; ``sample`` keeps so many examples of each.

The experiment ``inverse_law/noise`` has the variance of the mini-batch gradient by batch size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from paper_figures.inverse_law.experiments.search import SearchRun, SteppedSgd
from suite.data import images, order, transforms
from suite.experiment import Context, Outcome
from suite.spec import RunSpec, seed
from suite.training.build import DTYPES, make_network, make_optimizer
from suite.training.flat import FlatModule
from suite.training.gradient_noise import gradient_variances
from suite.training.gradients.paths import backend_of
from suite.training.loss_reading import LossReading
from suite.training.numerics import apply, kernels
from suite.training.problem import Classification

LABELS = ("classes", "digits", "parity")  # the targets as they are, or whether they are odd


class Trainer(SteppedSgd):
    """SGD on one network from a seed: what a driver of searches steps, and what a search reads."""

    def __init__(self, spec: RunSpec, context: Context):
        settings = spec.settings
        device, dtype = context.device, DTYPES[context.execution["precision"]]
        data = dict(settings["data"])
        name, rule, labels = data.pop("name"), data.pop("transform"), data.pop("labels")
        size = data.pop("size", None)
        if labels not in LABELS:
            raise ValueError(f"labels must be one of {list(LABELS)}, not {labels!r}")
        pictures = images.load_images(name, "train", root=context.data, **data)
        mixed = torch.randperm(len(pictures.targets), generator=torch.Generator().manual_seed(seed("samples", name)))
        held = int(settings["share"] * len(mixed))
        if not 0 < 2 * held < len(mixed):
            raise ValueError(f"share={settings['share']} must leave two samples and more among {len(mixed)} examples")
        inputs, targets = pictures.inputs[mixed].to(device), pictures.targets[mixed].to(device)
        if labels == "parity":
            targets = targets % 2
        network = make_network(settings["model"], spec.seed, device, dtype)
        flat = FlatModule(network, channels_last=context.execution["channels_last"])
        fitted = transforms.fit(rule, inputs[held:], size).to(device)
        decode = lambda pixels: fitted(pixels).to(dtype)
        problem = Classification(flat, inputs[held:], targets[held:], decode, kernels=kernels(context.execution))
        workers = settings.get("workers", 1)
        if settings["batch"] % workers:
            raise ValueError(f"batch={settings['batch']} does not divide over workers={workers}")
        rate = torch.tensor(settings["rate"], dtype=dtype, device=device)
        super().__init__(
            backend_of(context.execution, problem), make_optimizer(settings["descent"], flat), rate, workers
        )
        read = settings["sample"] or held
        chosen = torch.arange(held)
        if settings.get("sample_of") == "each seed":
            chosen = torch.randperm(held, generator=torch.Generator().manual_seed(seed(spec.seed, "sample")))
        chosen = chosen[:read].to(device)
        layout = torch.channels_last if flat.channels_last else torch.contiguous_format
        self.samples = {
            name: (decode(inputs[first + chosen]).contiguous(memory_format=layout), targets[first + chosen])
            for name, first in (("validation", 0), ("training", held))
        }
        self.test_examples = len(self.samples["training"][1])
        self.order = order.Shuffled(len(self.problem.targets), settings["batch"], seed(spec.seed, "order")).to(device)

    def examples(self, t: int) -> Tensor:
        return self.order.indices(torch.tensor([t])).view(self.workers, -1)

    def reader(self, sample: str) -> Callable[[Any, float], LossReading]:
        """How a monitor reads the loss of a state on a sample."""
        reader = self.backend.reader(*self.samples[sample])
        if reader.last is not None:
            self.looked[sample] = reader.last
        model = self.algorithm.model
        return lambda trained, threshold: reader.read(model(trained.state), trained.buffers[0], threshold)


def check(spec: RunSpec, context: Context) -> None:
    """Set a search up. Raises ValueError."""
    SearchRun(spec, context, Trainer(spec, context))


def sweep(spec: RunSpec, context: Context) -> Outcome:
    """Run or resume one search. Thresholds not crossed within the limit are censored and shown as -1."""
    apply(context.execution)
    return SearchRun(spec, context, Trainer(spec, context)).run()


def gradient_noise(spec: RunSpec, context: Context) -> Outcome:
    """Variance of the mini-batch gradient by batch size, at a point reached after ``warm`` updates.

    Settings as of the sweep, with ``batches`` and ``draws``.
    """
    apply(context.execution)
    settings, trainer = spec.settings, Trainer(spec, context)
    state, buffers = trainer.advance(trainer.start(), 0, settings["warm"])
    point = trainer.algorithm.model(state)
    stream = partial(seed, spec.seed, "noise")
    table = gradient_variances(trainer.backend, point, buffers, settings["batches"], settings["draws"], stream)
    return Outcome("finished", {}, {"variance": table})
