"""The experiment ``matex_agd/compute``: how long GoogLeNet and AlexNet compute on an image, without communication.

Settings: ``model`` and ``beside``, two networks; ``batches``, the images of each at once; ``repeats``. The networks
take turns, so that slow drifts hit both alike. On a processor its own seconds are counted, not those of a clock on
the wall, which other programs would lengthen; on a card, those from start to end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pandas as pd
import torch
from torch.nn import functional as F

from suite.experiment import Context
from suite.models import classifier, initialise
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed
from suite.training.flat import FlatModule
from suite.training.numerics import apply

AUXILIARY = 0.3  # of each auxiliary loss, in Caffe's train_val.prototxt


def compute(spec: RunSpec, context: Context) -> Outcome:
    """Times forward and backward passes in training mode. One of each to warm up is left out.

    Returns the table ``compute`` (network, repeat, seconds per image).
    """
    apply(context.execution)
    settings = spec.settings
    names = (settings["model"], settings["beside"])
    steps = {name: step(name, batch, spec, context) for name, batch in zip(names, settings["batches"], strict=True)}
    rows = []
    for repeat in range(settings["repeats"] + 1):
        for name, batch in zip(names, settings["batches"], strict=True):
            row = {"network": name, "repeat": repeat, "seconds": timed(steps[name], context.device) / batch}
            rows += [row] if repeat else []
        context.report((repeat + 1) / (settings["repeats"] + 1))
    return Outcome("finished", {}, {"compute": pd.DataFrame(rows)})


def step(name: str, batch: int, spec: RunSpec, context: Context) -> Callable[[], None]:
    """One forward and backward pass on a batch of noise."""
    module = classifier(name)
    initialise(module, seed(spec.seed, "weights"))
    channels_last = bool(context.execution.get("channels_last"))
    flat = FlatModule(module.to(context.device), channels_last=channels_last)
    draw = torch.Generator().manual_seed(seed(spec.seed, "images"))
    images = torch.randn(batch, *module.input_shape, generator=draw).to(context.device)
    if channels_last:
        images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(module.classes, (batch,), generator=draw).to(context.device)

    def update() -> None:
        flat.grad.zero_()
        logits = module(images)
        main, *auxiliary = logits if isinstance(logits, tuple) else (logits,)
        losses = [AUXILIARY * F.cross_entropy(each, labels) for each in auxiliary]
        torch.stack([F.cross_entropy(main, labels), *losses]).sum().backward()

    return update


def timed(work: Callable[[], None], device: str) -> float:
    """Seconds of some work: of the processor, or of the card from start to end."""
    if device == "cuda":
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        return time.perf_counter() - began
    began = time.process_time()
    work()
    return time.process_time() - began
