"""ImageNet, streamed: pictures read in stored order, decoded in worker processes, copied ahead to the device."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from suite.data.imagenet_rows import open_rows
from suite.data.jpeg import decode_resized, one_thread

SIDE = 256  # pixels, as all papers store ImageNet
CHUNK = 32  # pictures that a worker decodes at a time

# number of the batch, its pictures in chunks, its labels
_Submitted = tuple[int, "list[Future[np.ndarray] | np.ndarray]", np.ndarray]


class ImageBatch(NamedTuple):
    """One batch of the stream, on the stream's device."""

    number: int
    inputs: Tensor  # [b, 3, side, side] uint8; crop and mirror with suite.data.transforms.CropFlip
    targets: Tensor  # [b] int64


class ImageNetStream:
    """Batches of ImageNet in stored order, in a cycle (FCPR: ISGD, section 3.1), from shards or class folders.

    An epoch has ceil(N / b) batches, the last completed with the split's first rows. A batch depends on its
    number alone, so a stream may start at any.

    Use it as a context manager, or call :meth:`close`, to end the worker processes.
    """

    def __init__(
        self,
        split: str,
        batch: int,
        root: Path | None = None,
        *,
        device: torch.device | str = "cpu",
        processes: int | None = None,
        ahead: int = 4,
        side: int = SIDE,
    ) -> None:
        """Open the split; reads the footers of its shards, or the names in its class folders.

        Args:
            split: "train" or "validation".
            batch: pictures per batch.
            root: folder in the Hub's layout, or with ``train`` and ``val`` as ``ImageFolder`` reads them, in itself
                or in ``imagenet``; by default ``$SGD_SUITE_DATA``.
            device: where batches are delivered.
            processes: workers that decode, by default one per core; 0 decodes in this process.
            ahead: batches under way at most.
            side: height and width of the pictures.

        Raises:
            DataError: the split is absent, incomplete or damaged.
        """
        if batch < 1 or ahead < 1 or side < 1:
            raise ValueError(f"batch={batch}, ahead={ahead} and side={side} must be at least 1")
        self.batch, self.side, self.ahead = batch, side, ahead
        self.source = open_rows(split, root)
        self.examples = self.source.examples
        self.batches_per_epoch = -(-self.examples // batch)
        self.device = torch.device(device)
        count = (os.cpu_count() or 1) if processes is None else processes
        self._pool: ProcessPoolExecutor | None = None
        if count > 0:
            # spawn: a fork would copy this process's threads' locks in whatever state they are
            self._pool = ProcessPoolExecutor(
                count, mp_context=multiprocessing.get_context("spawn"), initializer=one_thread
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker processes; batches not yet delivered are dropped."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def batches(self, first: int = 0) -> Iterator[ImageBatch]:
        """Batches ``first``, ``first`` + 1, ... without end."""
        if first < 0:
            raise ValueError(f"batch number {first} must not be negative")
        delivery = _Delivery(self.device)
        host = self._host_batches(first)
        # one batch is copied to the device while the one before it is used
        number, pixels, labels = next(host)
        following = delivery.send(number, pixels, labels)
        for number, pixels, labels in host:
            current, following = following, delivery.send(number, pixels, labels)
            yield delivery.receive(current)

    def _host_batches(self, first: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        waiting: deque[_Submitted] = deque()
        for number, parts, labels in self._submitted(first):
            waiting.append((number, parts, labels))
            if len(waiting) < self.ahead:
                continue
            ready, pieces, targets = waiting.popleft()
            pixels = [piece.result() if isinstance(piece, Future) else piece for piece in pieces]
            yield ready, np.concatenate(pixels), targets

    def _submitted(self, first: int) -> Iterator[_Submitted]:
        """Batches whose pictures are being decoded."""
        number = first
        while True:
            in_epoch = number % self.batches_per_epoch
            rows = self.source.rows(in_epoch * self.batch)
            for _ in range(in_epoch, self.batches_per_epoch):
                taken = [next(rows) for _ in range(self.batch)]
                pictures = [(where, content) for where, content, _ in taken]
                chunks = [pictures[at : at + CHUNK] for at in range(0, len(pictures), CHUNK)]
                yield (
                    number,
                    [self._decode(chunk) for chunk in chunks],
                    np.array([label for *_, label in taken], np.int64),
                )
                number += 1

    def _decode(self, chunk: list[tuple[str, bytes]]) -> Future[np.ndarray] | np.ndarray:
        if self._pool is None:
            return decode_resized(chunk, self.side)
        return self._pool.submit(decode_resized, chunk, self.side)


class _Delivery:
    """Two pinned buffers and a stream of their own on CUDA; nothing but a wrapping elsewhere."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.cuda = device.type == "cuda"
        self._buffers: list[tuple[Tensor, Tensor, torch.cuda.Event] | None] = [None, None]
        self._sent = 0
        self._stream = torch.cuda.Stream(device) if self.cuda else None

    def send(self, number: int, pixels: np.ndarray, labels: np.ndarray) -> ImageBatch:
        inputs, targets = torch.from_numpy(pixels), torch.from_numpy(labels)
        if not self.cuda:
            return ImageBatch(number, inputs.to(self.device), targets.to(self.device))
        slot, self._sent = self._sent % 2, self._sent + 1
        buffer = self._buffers[slot]
        if buffer is None:
            buffer = inputs.pin_memory(), targets.pin_memory(), torch.cuda.Event()
            self._buffers[slot] = buffer
        else:
            buffer[2].synchronize()  # the copy that last read this buffer, two batches ago
            buffer[0].copy_(inputs)
            buffer[1].copy_(targets)
        with torch.cuda.stream(self._stream):
            batch = ImageBatch(
                number,
                buffer[0].to(self.device, non_blocking=True),
                buffer[1].to(self.device, non_blocking=True),
            )
            buffer[2].record()
        return batch

    def receive(self, batch: ImageBatch) -> ImageBatch:
        if self.cuda and self._stream is not None:
            current = torch.cuda.current_stream(self.device)
            current.wait_stream(self._stream)
            # the allocator must not reuse the memory while the consumer's stream still reads it
            batch.inputs.record_stream(current)
            batch.targets.record_stream(current)
        return batch
