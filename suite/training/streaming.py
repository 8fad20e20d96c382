"""Training on streamed ImageNet: pictures are decoded ahead of the updates instead of lying on the device.

Each worker has a contiguous part of the training set in stored order (all of it for one worker), and goes through
it in a cycle, a random crop and mirroring of each picture at a time. Batches are named by worker and number, so a
run is a function of its specification and may be resumed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from suite.communication.collectives import in_process
from suite.data.imagenet import SIDE, ImageBatch, ImageNetStream
from suite.data.order import Order
from suite.data.transforms import CropFlip, centre_crop
from suite.experiment import Context, Outcome
from suite.spec import RunSpec, seed
from suite.training.build import DTYPES, Setup, make_algorithm, make_network, make_optimizer
from suite.training.flat import FlatModule
from suite.training.gradients.paths import backend
from suite.training.loop import TrainingRun
from suite.training.numerics import ONEDNN, apply, kernels

MEAN = (123.0, 117.0, 104.0)  # red, green, blue of ImageNet's training set, 0..255 (Caffe's mean_value)


class Named(Order):
    """An order whose "examples" [n, 2] are the worker and the number of each batch."""

    def __init__(self, batch: int, batches_per_epoch: int):
        self.batch, self.batches_per_epoch = batch, batches_per_epoch

    def indices(self, numbers: Tensor, workers: Tensor | None = None) -> Tensor:
        assert workers is not None
        return torch.stack([workers, numbers], 1)


class StreamedImages:
    """Classification of streamed pictures, in the form in which :class:`suite.training.problem.Classification` is
    used.

    Args:
        settings: ``batch`` of a worker, ``crop`` and ``side`` pixels.
        workers: parts of the training set; each has a stream of its own.

    Raises DataError where ImageNet is absent or damaged. Call :meth:`close` to end the decoding processes.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        flat: FlatModule,
        run_seed: int,
        workers: int,
        root: Path | None,
        kernels: AbstractContextManager[Any] = ONEDNN,
    ):
        self.flat, self.d, self.q, self.device = flat, flat.d, flat.q, flat.x.device
        self.kernels, self.batch_norm, self.dropout = kernels, flat.batch_norm, flat.dropout
        self.criterion = F.cross_entropy
        self.crop, self.seed = CropFlip(settings["crop"]), seed(run_seed, "crop")
        self.mean = torch.tensor(MEAN, dtype=flat.x.dtype, device=self.device).view(3, 1, 1)
        processes = max(1, (os.cpu_count() or 1) // workers)
        self.streams = [
            ImageNetStream(
                "train",
                settings["batch"],
                root,
                device=self.device,
                processes=processes,
                side=settings.get("side", SIDE),
            )
            for _ in range(workers)
        ]
        self.part = self.streams[0].batches_per_epoch // workers  # batches of a worker
        # of each worker the last batch, and where the next comes from
        self._open: list[tuple[ImageBatch, Iterator[ImageBatch]] | None] = [None] * workers
        self._initial_buffers = flat.buffers.clone()

    def close(self) -> None:
        for stream in self.streams:
            stream.close()

    def b0(self) -> Tensor:
        """Initial buffers [q]."""
        return self._initial_buffers.clone()

    def fetch(self, examples: Tensor) -> tuple[Tensor, Tensor]:
        """Cropped inputs [b, 3, crop, crop] and targets [b] of one or several named batches, [2] or [2 m]."""
        parts = [self._batch(worker, number) for worker, number in examples.view(-1, 2).tolist()]
        inputs, targets = (torch.cat(part) for part in zip(*parts, strict=True))
        return inputs.contiguous(memory_format=self.flat.layout), targets

    def _batch(self, worker: int, number: int) -> tuple[Tensor, Tensor]:
        wanted = worker * self.part + number % self.part
        opened = self._open[worker]
        if opened is None or wanted - opened[0].number not in (0, 1):
            batches = self.streams[worker].batches(wanted)
            opened = next(batches), batches
        elif wanted > opened[0].number:
            opened = next(opened[1]), opened[1]
        # else the worker stays on its batch, as ISGD does while it is undertrained: it is not decoded again
        self._open[worker], found = opened, opened[0]
        assert found.number == wanted, (found.number, wanted)
        at = [torch.tensor([value], device=self.device) for value in (number, worker)]
        pixels = found.inputs[None].to(self.mean.dtype) - self.mean
        return self.crop(pixels, self.seed, *at)[0], found.targets


def validated(
    flat: FlatModule, x: Tensor, buffers: Tensor, settings: Mapping[str, Any], root: Path | None
) -> tuple[float, float, float]:
    """Mean loss (nats), top-1 and top-5 error of a point on the first ``evaluate.examples`` validation pictures.

    Centre crops, in evaluation mode. Raises DataError where the split is absent or damaged.
    """
    wanted, side = settings["evaluate"]["examples"], settings.get("side", SIDE)
    seen, loss, wrong, wrong5, size = 0, 0.0, 0, 0, min(200, wanted)
    mean = torch.tensor(MEAN, dtype=x.dtype, device=x.device).view(3, 1, 1)
    stream = ImageNetStream("validation", size, root, device=x.device, side=side)
    with stream, flat.evaluating():
        flat.load(x, buffers)
        for batch in stream.batches():
            take = min(size, wanted - seen)
            cut = centre_crop(batch.inputs.to(x.dtype) - mean, settings["crop"])
            outputs = flat.module(cut.contiguous(memory_format=flat.layout))[:take]
            targets = batch.targets[:take]
            loss += F.cross_entropy(outputs, targets, reduction="sum").item()
            best = outputs.topk(min(5, outputs.shape[1]), 1).indices == targets[:, None]
            wrong += take - int(best[:, 0].sum())
            wrong5 += take - int(best.any(1).sum())
            seen += take
            if seen >= wanted:
                break
    return loss / seen, wrong / seen, wrong5 / seen


def assemble_streamed(
    settings: Mapping[str, Any], run_seed: int, execution: Mapping[str, Any], root: Path | None
) -> Setup:
    """What :func:`suite.training.build.assemble` makes, with pictures streamed until its problem is closed."""
    network = make_network(settings["model"], run_seed, execution["device"], DTYPES[execution["precision"]])
    flat = FlatModule(network, channels_last=execution["channels_last"])
    workers = settings.get("workers", 1)
    problem: Any = StreamedImages(settings, flat, run_seed, workers, root, kernels(execution))
    nothing = flat.x.new_zeros(0)
    return Setup(
        problem=problem,
        x0=flat.point(),
        order=Named(settings["batch"], problem.part),
        algorithm=make_algorithm(
            settings["algorithm"], make_optimizer(settings["descent"], flat), in_process(workers), problem.part
        ),
        test_inputs=nothing,
        test_targets=nothing,
    )


def train(spec: RunSpec, context: Context, *, top5: bool = False) -> Outcome:
    """Run or resume a training; with ``top5`` it is tested by the top-5 error besides.

    Settings are those of ``train`` with ``crop`` and ``side`` pixels in place of ``data`` and ``order``, and
    ``evaluate.examples`` validation pictures, centre crops. Raises DataError where ImageNet is absent.
    """
    apply(context.execution)
    made = assemble_streamed(spec.settings, spec.seed, context.execution, context.data)
    problem: Any = made.problem
    with closing(problem):

        def test(x: Tensor, buffers: Tensor) -> dict[str, float]:
            loss, error, fifth = validated(problem.flat, x, buffers, spec.settings, context.data)
            return {"test_loss": loss, "test_error": error} | ({"top5_error": fifth} if top5 else {})

        return TrainingRun(spec, context, made, backend("looped", problem), test=test).run()


train_top5 = partial(train, top5=True)
