"""The experiment ``matex_agd/compute``: how long GoogLeNet and AlexNet compute on an image, without communication.

Settings: ``model`` and ``beside``, two networks; ``batches``, the images of each at once; ``repeats``. The networks
take turns, so that slow drifts hit both alike. On a processor its own seconds are counted, not those of a clock on
the wall, which other programs would lengthen; on a card, those from start to end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch.nn import functional as F

from suite.experiment import Context
from suite.models import classifier, initialise
from suite.runner.autotune import alternating, by_repeat
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
    s = spec.settings
    batches = dict(zip((s["model"], s["beside"]), s["batches"], strict=True))
    steps = {name: step(name, batch, spec, context) for name, batch in batches.items()}
    clock = time.perf_counter if context.device == "cuda" else time.process_time
    seconds = alternating(steps, s["repeats"], clock, report=context.report)
    table = by_repeat(seconds, "network")
    return Outcome(
        "finished", {}, {"compute": table.assign(seconds=table["seconds"] / table["network"].map(batches))}
    )


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
        if context.device == "cuda":
            torch.cuda.synchronize()

    return update
