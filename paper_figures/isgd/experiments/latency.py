"""The experiment ``isgd/latency``: seconds per gradient of a network against batch size, on random images."""

from __future__ import annotations

import time

import pandas as pd
import torch
from torch.nn import functional as F

from suite.experiment import Context
from suite.models import classifier, initialise
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed
from suite.training.flat import FlatModule
from suite.training.numerics import apply


def latency(spec: RunSpec, context: Context) -> Outcome:
    """Time forward and backward passes, batch sizes interleaved so that slow drifts hit them alike.

    Returns the table ``latency`` (batch, repeat, seconds). One warm-up per batch size is left out.
    """
    apply(context.execution)
    settings, device = spec.settings, context.device
    module = classifier(settings["model"])
    initialise(module, seed(spec.seed, "weights"))
    flat = FlatModule(module.to(device), channels_last=context.execution["channels_last"])
    generator = torch.Generator().manual_seed(seed(spec.seed, "images"))
    largest = max(settings["batches"])
    images = torch.randn(largest, *module.input_shape, generator=generator).to(device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(module.classes, (largest,), generator=generator).to(device)
    rows = []
    for repeat in range(-1, settings["repeats"]):
        for batch in settings["batches"]:
            if device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            flat.grad.zero_()
            F.cross_entropy(module(images[:batch]), labels[:batch]).backward()
            if device == "cuda":
                torch.cuda.synchronize()
            if repeat >= 0:
                rows.append({"batch": batch, "repeat": repeat, "seconds": time.perf_counter() - start})
        context.report((repeat + 2) / (settings["repeats"] + 1))
    return Outcome("finished", {"parameters": flat.d}, {"latency": pd.DataFrame(rows)})
