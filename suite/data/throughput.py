"""How many pictures per second a stream delivers: told apart from training, which it may or may not hold up."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from suite.data.catalogue import dataset
from suite.data.imagenet import Batch, ImageNetStream


class Throughput(NamedTuple):
    """Of consecutive batches, the first delivered one left out: with it the workers start."""

    pictures: int
    seconds: float
    waiting: float  # of these seconds, spent waiting for the stream

    @property
    def pictures_per_second(self) -> float:
        return self.pictures / self.seconds

    @property
    def waiting_share(self) -> float:
        """0 where the consumer never waits, 1 where it does nothing else."""
        return self.waiting / self.seconds


def throughput(
    stream: ImageNetStream,
    batches: int,
    *,
    consume: Callable[[Batch], object] = lambda batch: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Throughput:
    """Take ``batches`` batches of a stream, handing each to ``consume`` (a training step, say).

    On CUDA the device is waited for at the end, so copies under way are counted. Raises ValueError for fewer than
    one batch.
    """
    if batches < 1:
        raise ValueError(f"batches={batches} must be at least 1")
    arriving = stream.batches()
    consume(next(arriving))
    _finish(stream)
    waiting, began = 0.0, clock()
    for _ in range(batches):
        asked = clock()
        batch = next(arriving)
        waiting += clock() - asked
        consume(batch)
    _finish(stream)
    return Throughput(batches * stream.batch, clock() - began, waiting)


def _finish(stream: ImageNetStream) -> None:
    if stream.device.type == "cuda":
        torch.cuda.synchronize(stream.device)


def write_sample(root: Path, pictures: int, *, height: int = 375, width: int = 500, seed: int = 0) -> None:
    """A folder in ImageNet's layout with smooth random pictures: for timing where ImageNet itself is not at hand.

    The default size is the training set's most frequent one; as JPEG a picture takes about 60 kB, which is half of
    ImageNet's average, so decoding it is somewhat cheaper.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    info = dataset("imagenet")
    assert info.hub is not None
    folder = root / info.hub / info.config
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    rows = []
    for row in range(pictures):
        coarse = generator.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
        image = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        encoded = io.BytesIO()
        image.save(encoded, "JPEG", quality=90)
        rows.append({"bytes": encoded.getvalue(), "path": f"{row}.JPEG"})
    picture, label = info.columns
    table = pa.table({picture: rows, label: [row % info.classes for row in range(pictures)]})
    pq.write_table(table, folder / "train-00000-of-00001.parquet", row_group_size=64)
