"""ImageNet, streamed: pictures read in stored order, decoded in worker processes, copied ahead to the device.

Encoded pictures come from parquet shards of the Hub, or from class folders as in ``ImageFolder``. Both are read in
one stored order, from any row on, in a cycle.

torchvision decodes and torch resizes a JPEG in 0.55 of Pillow's time (500x375 to 256x256, one thread), and the
pixels differ from Pillow's by one level at most, in one of five hundred. Pillow takes what torchvision does not
read alike: other formats, CMYK, files without their end, and pictures that Pillow can decode at a fraction of their
size.

torchvision announces since 0.29 that its decoder will move to another package; until it is gone it is used, and
afterwards, as where torchvision is not installed, Pillow takes all pictures.
"""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import os
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from itertools import accumulate, count, islice
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from suite.data import parquet
from suite.data.catalogue import DATASETS, DataError, present_files

END = b"\xff\xd9"  # the last marker of a JPEG; torchvision shows what there is of a file that lacks it


@cache
def decoder() -> str:
    """Who decodes most JPEGs here: "torchvision" or "pillow"."""
    try:
        from torchvision.io import decode_jpeg  # noqa: F401
    except ImportError:
        return "pillow"
    return "torchvision"


def decode_resized(pictures: list[tuple[str, bytes]], side: int) -> np.ndarray:
    """uint8 [n, 3, side, side] of (where, encoded picture): squashed to a square as Caffe's ImageNet is.

    JPEGs of twice ``side`` and more are decoded at the smallest of the codec's scales (1/1, 1/2, 1/4, 1/8) that is
    no smaller than ``side``; all are resized bilinearly with antialiasing. Grey and CMYK pictures become RGB.

    Raises:
        DataError: a picture cannot be decoded; the message begins with its ``where``.
    """
    pixels = np.empty((len(pictures), 3, side, side), np.uint8)
    for row, (where, content) in enumerate(pictures):
        try:
            with Image.open(io.BytesIO(content)) as image:
                suits = _suits(image, content, side)
                pixels[row] = _by_torchvision(content, side) if suits else _by_pillow(image, side)
        except (OSError, ValueError, SyntaxError, RuntimeError) as error:
            raise DataError(f"{where} cannot be decoded ({error}); copy the file again") from error
    return pixels


def _suits(image: Image.Image, content: bytes, side: int) -> bool:
    return (
        decoder() == "torchvision"
        and image.format == "JPEG"
        and image.mode in ("L", "RGB")
        and min(image.size) < 2 * side
        and content.rstrip(b"\0").endswith(END)
    )


def _by_torchvision(content: bytes, side: int) -> np.ndarray:
    from torch.nn.functional import interpolate
    from torchvision.io import ImageReadMode, decode_jpeg

    encoded = torch.frombuffer(bytearray(content), dtype=torch.uint8)  # a copy: torch wants to own what it reads
    decoded = decode_jpeg(encoded, mode=ImageReadMode.RGB)
    return interpolate(decoded[None], (side, side), mode="bilinear", antialias=True)[0].numpy()


def _by_pillow(image: Image.Image, side: int) -> np.ndarray:
    image.draft("RGB", (side, side))
    resized = image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
    return np.asarray(resized).transpose(2, 0, 1)


TOGETHER = 32  # rows of a shard read at a time


class Shards:
    """Parquet files of the Hub, their rows in the order of the files. Reads the footers.

    ``rows`` of a split are without end: after the last comes the first. They raise DataError.
    """

    def __init__(self, files: list[Path]):
        parquet.check_shards("imagenet", files)
        self.files, self.place = files, files[0].parent
        self._ends = list(accumulate(parquet.count_rows("imagenet", [file]) for file in files))
        self.examples = self._ends[-1]

    def rows(self, first: int) -> Iterator[parquet.Picture]:
        shard = bisect_right(self._ends, first)
        skip = first - (self._ends[shard - 1] if shard else 0)
        while True:
            yield from parquet.pictures(DATASETS["imagenet"], self.files[shard], skip, rows=TOGETHER)
            shard, skip = (shard + 1) % len(self.files), 0


class ClassFolders:
    """A folder per class, labelled in alphabetical order as ``torchvision.datasets.ImageFolder`` does.

    In that class's own order all pictures of a label are neighbours, which no fixed cycle of batches survives: they
    are put in the order of the SHA-256 of their names, once and for ever, as ImageNet's makers shuffle their list.
    """

    def __init__(self, place: Path):
        from torchvision.datasets.folder import IMG_EXTENSIONS, make_dataset

        try:
            found = make_dataset(place, extensions=IMG_EXTENSIONS)
        except OSError as error:
            raise DataError(f"imagenet: {place} cannot be read ({error}); copy it again") from error
        self.place = place
        relative = [(Path(name).relative_to(place).as_posix(), label) for name, label in found]
        self._files = sorted(relative, key=lambda file: hashlib.sha256(file[0].encode()).digest())
        self.examples = len(self._files)

    def rows(self, first: int) -> Iterator[parquet.Picture]:
        classes, row = DATASETS["imagenet"].classes, first
        while True:
            name, label = self._files[row % self.examples]
            where = f"imagenet: {self.place / name}"
            try:
                content = (self.place / name).read_bytes()
            except OSError as error:
                raise DataError(f"{where} cannot be read ({error}); copy the file again") from error
            yield where, content, parquet.labelled(label, classes, where)
            row += 1


def open_rows(split: str, root: Path | None) -> Shards | ClassFolders:
    """A split in whichever layout it lies below ``root``. Raises DataError where it is absent or incomplete."""
    DATASETS["imagenet"].prefix(split)
    _, files = present_files("imagenet", split, root)
    found = ClassFolders(files[0]) if files[0].is_dir() else Shards(files)
    if not found.examples:
        raise DataError(f"imagenet: {found.place} holds no row of split {split}; copy it again")
    return found


SIDE = 256  # pixels, as all papers store ImageNet
CHUNK = 32  # pictures that a worker decodes at a time


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
        processes = (os.cpu_count() or 1) if processes is None else processes
        # spawn: a fork would copy this process's threads' locks in whatever state they are
        spawn = multiprocessing.get_context("spawn")
        # there is one per core, so each computes alone
        self._pool: Executor = (
            ProcessPoolExecutor(processes, spawn, initializer=torch.set_num_threads, initargs=(1,))
            if processes
            else ThreadPoolExecutor(1)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker processes; batches not yet delivered are dropped."""
        self._pool.shutdown(cancel_futures=True)

    def batches(self, first: int = 0) -> Iterator[ImageBatch]:
        """Batches ``first``, ``first`` + 1, ... without end."""
        delivery = _Delivery(self.device)
        host = self._host_batches(first)
        # one batch is copied to the device while the one before it is used
        number, pixels, labels = next(host)
        following = delivery.send(number, pixels, labels)
        for number, pixels, labels in host:
            current, following = following, delivery.send(number, pixels, labels)
            yield delivery.receive(current)

    def _host_batches(self, first: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Batches by number, with ``ahead`` of them being decoded."""
        waiting: deque[tuple[int, list[Future[np.ndarray]], np.ndarray]] = deque()
        for number in count(first):
            place = number % self.batches_per_epoch
            if number == first or place == 0:
                rows = self.source.rows(place * self.batch)
            taken = list(islice(rows, self.batch))
            pictures = [(where, content) for where, content, _ in taken]
            chunks = [pictures[at : at + CHUNK] for at in range(0, len(pictures), CHUNK)]
            parts = [self._pool.submit(decode_resized, chunk, self.side) for chunk in chunks]
            waiting.append((number, parts, np.array([label for *_, label in taken], np.int64)))
            if len(waiting) == self.ahead:
                ready, parts, targets = waiting.popleft()
                yield ready, np.concatenate([part.result() for part in parts]), targets


class _Delivery:
    """Copies from pinned memory in a stream of its own on CUDA; nothing but a wrapping elsewhere."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def send(self, number: int, pixels: np.ndarray, labels: np.ndarray) -> ImageBatch:
        parts = torch.from_numpy(pixels), torch.from_numpy(labels)
        if self._stream is None:
            return ImageBatch(number, *(part.to(self.device) for part in parts))
        with torch.cuda.stream(self._stream):  # torch keeps pinned memory, and reuses it once it has been copied
            return ImageBatch(number, *(part.pin_memory().to(self.device, non_blocking=True) for part in parts))

    def receive(self, batch: ImageBatch) -> ImageBatch:
        if self._stream is not None:
            current = torch.cuda.current_stream(self.device)
            current.wait_stream(self._stream)
            # the allocator must not reuse the memory while the consumer's stream still reads it
            batch.inputs.record_stream(current)
            batch.targets.record_stream(current)
        return batch
