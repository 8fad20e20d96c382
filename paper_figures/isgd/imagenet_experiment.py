"""The experiment ``isgd/imagenet``: an algorithm on streamed ImageNet, batches in a fixed cycle."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from reference_impls import isgd
from reference_impls.contract import Entry, Told, Turn
from suite.communication.collectives import Local
from suite.data.catalogue import dataset
from suite.data.imagenet import ImageNetStream
from suite.data.transforms import CropFlip
from suite.experiment import Context, OutOfTime
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed, thaw
from suite.training import checkpoint
from suite.training.build import DTYPES, fields, make_descent, make_network
from suite.training.curves import Recorder
from suite.training.flat import FlatModule
from suite.training.numerics import apply
from suite.training.streamed import MEAN, validated


class Streamed:
    """One batch at a time from a stream that follows the algorithm's batch number.

    Reading that number is the one synchronisation per update: the next pictures are decoded on the host.
    """

    def __init__(self, spec: RunSpec, context: Context, first: int):
        settings = spec.settings
        self.crop, self.seed = CropFlip(settings["crop"]), seed(spec.seed, "crop")
        self.mean = torch.tensor(MEAN, device=context.device).view(3, 1, 1)
        self.stream = ImageNetStream(
            "train", settings["batch"], context.data, device=context.device, side=settings["side"]
        )
        self._batches = self.stream.batches(first)
        self.held = next(self._batches)

    def batch(self, number: int) -> tuple[Tensor, Tensor]:
        """Cropped and mirrored inputs [b, 3, crop, crop] and targets [b] of the batch ``number``."""
        while self.held.number < number:
            self.held = next(self._batches)
        assert self.held.number == number, (self.held.number, number)
        numbers = torch.tensor([number], device=self.mean.device)
        pixels = self.held.inputs[None].float() - self.mean
        return self.crop(pixels, self.seed, numbers)[0], self.held.targets


def evaluate(flat: FlatModule, x: Tensor, spec: RunSpec, context: Context) -> dict[str, float]:
    """Loss, top-1 and top-5 error on the first ``evaluate.examples`` validation images, centre crops."""
    found = validated(flat, x, flat.buffers.clone(), spec.settings, context.data)
    return dict(zip(("test_loss", "test_error", "top5_error"), found, strict=True))


def imagenet(spec: RunSpec, context: Context) -> Outcome:
    """Train as ``train`` does, from a stream instead of resident data; resumes from its last checkpoint."""
    apply(context.execution)
    settings = spec.settings
    dtype = DTYPES[context.execution["precision"]]
    network = make_network(settings["model"], spec.seed, context.device, dtype)
    flat = FlatModule(network, channels_last=context.execution["channels_last"])
    chosen = thaw(settings["algorithm"])
    assert chosen.pop("name") == "isgd"
    if chosen["batches"] == "epoch":
        chosen["batches"] = -(-dataset("imagenet").sizes["train"] // settings["batch"])
    config = isgd.Config(**fields(isgd.Config, {k: _tuple(v) for k, v in chosen.items()}, "algorithm"))
    descent = make_descent(settings["descent"], flat)
    collective: Any = Local(1)
    state = isgd.init(config, flat.point(), 1, 1, descent)
    recorder, t = Recorder(settings.get("record", {}).get("every", 1)), 0
    if found := checkpoint.load(context.folder, state, context.device):
        state, values, tensors = found
        t = values["t"]
        recorder.restore(values["recorder"], tensors)
    source = Streamed(spec, context, int(state.iteration))
    rate, saved, finite = torch.tensor(settings["rate"], dtype=dtype, device=context.device), time.monotonic(), True
    try:
        while t < settings["updates"] and finite:
            inputs, targets = source.batch(int(state.iteration))
            torch.manual_seed(seed(spec.seed, "dropout", t))
            flat.load(state.x)
            flat.grad.zero_()
            loss = F.cross_entropy(flat.module(inputs.to(dtype)), targets)
            loss.backward()
            before, turn = state, Turn(t, (Entry(0, t, t),))
            told = Told(loss.detach()[None], flat.grad[None])
            state = isgd.tell(config, before, turn, told, collective=collective, descent=descent, lr=rate)
            recorder.add(t, {"loss": loss.detach(), **isgd.observe(config, before, state)})
            t += 1
            if t % settings["evaluate"]["every"] == 0 or t == settings["updates"]:
                finite = recorder.settle()
                recorder.evaluate(update=t, **evaluate(flat, state.x, spec, context))
                context.report(t / settings["updates"])
            if context.late or time.monotonic() - saved > context.checkpoint_seconds:
                finite = recorder.settle() and finite
                values = {"t": t, "recorder": recorder.to_plain()}
                checkpoint.save(context.folder, state, values, recorder.tensors())
                saved = time.monotonic()
                if context.late:
                    raise OutOfTime
    finally:
        source.stream.close()
    finite = recorder.settle() and finite
    last: dict[str, Any] = {name: column[-1] for name, column in recorder.evaluations.items()}
    results = {**last, "updates": t, "parameters": flat.d, **isgd.summary(config, state)}
    return Outcome("finished" if finite else "diverged", results, recorder.tables())


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
