"""Image sets as tensors: ``load_images("cifar10", "train")`` is uint8 [50000, 3, 32, 32] and its labels.

Windows of characters are read the same way: their codes are the pixels of a picture of one row, and the label is the
next character at each place.
"""

from __future__ import annotations

import hashlib
import io
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from suite.data import parquet
from suite.data.cache import Decoded, cached, decoded, source_key
from suite.data.catalogue import DataError, DatasetInfo, cache_folder, dataset, present_files
from suite.data.text import character_windows, load_pairs


class Images(NamedTuple):
    """A split of an image set. ``checksum`` is the sha256 of its pixels and labels."""

    inputs: Tensor  # [N, C, H, W] uint8
    targets: Tensor  # [N] int64, 0 <= target < classes; of characters [N, W]
    classes: int
    name: str
    split: str
    checksum: str

    def to(self, device: torch.device | str) -> Images:
        """The same split with both tensors on ``device``."""
        return self._replace(inputs=self.inputs.to(device), targets=self.targets.to(device))


def load_images(
    name: str,
    split: str,
    root: Path | None = None,
    *,
    size: int | None = None,
    examples: int | None = None,
    digest: str | None = None,
) -> Images:
    """A whole split on the CPU.

    Args:
        name: as in :data:`suite.data.catalogue.DATASETS`; ImageNet is streamed instead.
        split: of that set, as the same table names it.
        root: folder in the Hub's layout, or where torchvision downloaded the set to; by default ``$SGD_SUITE_DATA``.
        size: height and width of ``digits`` (8, 28 or 32); no other set offers a choice.
        examples: keep the first so many; ``colours`` generates any number.
        digest: of the pixels and labels of all splits (:func:`content_digest`), which must be those that are found.

    Raises:
        DataError: the set is absent, incomplete or damaged, or an option does not fit it.
    """
    info = dataset(name)
    _check_request(info, split, size, examples)
    if name == "digits":
        found = _digits(split, 28 if size is None else size)
    elif name == "colours":
        found = decoded(*colours(split, examples or info.sizes[split]))
    elif info.load is not None:
        found = _of_ones_own(name, split)
    else:
        found = _stored(info, split, root)
    if digest is not None and digest != (content := content_digest(name, root)):
        raise DataError(
            f"{name}: its content is {content}, and the run is of {digest}; bring that back, or plan the run "
            "anew, in an experiment of your own once its data.json is deleted"
        )
    if examples is not None and examples < len(found.targets):
        found = decoded(found.inputs[:examples], found.targets[:examples])
    pixels, labels = torch.from_numpy(found.inputs), torch.from_numpy(found.targets)
    return Images(pixels, labels, info.classes, name, split, found.checksum)


def _check_request(info: DatasetInfo, split: str, size: int | None, examples: int | None) -> None:
    """Raise DataError for what ``load_images`` cannot give of a set."""
    name = info.name
    info.prefix(split)
    if info.kind == "pairs" or (not info.embedded and info.shape is None):
        reader = "suite.data.imagenet.ImageNetStream" if info.kind == "images" else "suite.data.text.load_pairs"
        raise DataError(f"{name} is not read as one tensor; use {reader}")
    if size is not None and name != "digits":
        raise DataError(f"{name}: size={size} cannot be chosen, pictures are {info.shape}; only digits offers sizes")
    limit = None if name == "colours" else info.sizes[split]
    if examples is not None and not 1 <= examples <= (limit or examples):
        raise DataError(f"{name}: examples={examples} is outside 1..{limit or 'any number'} of split {split}")


@cache
def _of_ones_own(name: str, split: str) -> Decoded:
    """A split of a set that a package of one's own brings; read once in a process."""
    load = dataset(name).load
    assert load is not None
    inputs, targets = (np.ascontiguousarray(each) for each in load(split))
    return decoded(inputs, targets.astype(np.int64))


def content_digest(name: str, root: Path | None = None) -> str:
    """16 hex digits of all splits of a set, for the settings of its runs: other data have other runs."""
    found = [load_images(name, split, root).checksum for split in dataset(name).sizes]
    return hashlib.sha256(" ".join(found).encode()).hexdigest()[:16]


def _digits(split: str, size: int) -> Decoded:
    """The digits as they were made at first use: importing scikit-learn takes longer than a short run."""
    make = lambda: digits(split, size)
    key = source_key([], "digits", split, size, metadata.version("scikit-learn"))
    try:
        return cached(cache_folder() / "images", key, make)
    except DataError:  # nowhere to keep them
        return decoded(*make())


def _stored(info: DatasetInfo, split: str, root: Path | None) -> Decoded:
    folder, files = present_files(info.name, split, root)
    key = source_key(files, info.name, split, info.shape)
    if info.shape is not None and info.kind == "characters":
        length = info.shape[-1]
        read = lambda: character_windows([english for _, english in load_pairs(info.part_of, split, root)], length)
    elif files[0].suffix == ".parquet":
        parquet.check_shards(info.name, files)
        rows = parquet.count_rows(info.name, files)
        _complete(info, split, rows, files)
        return cached(cache_folder() / "images", key, lambda: _decode(info, files, rows))
    else:
        read = lambda: _downloaded(info, split, folder)
    found = cached(cache_folder() / "images", key, read)
    _complete(info, split, len(found.targets), files)
    return found


def _complete(info: DatasetInfo, split: str, rows: int, files: list[Path]) -> None:
    """Raise DataError unless there are as many examples as the set has."""
    if rows != info.sizes[split]:
        raise DataError(
            f"{info.name}: {files[0].parent} holds {rows:,} rows of split {split} "
            f"instead of {info.sizes[split]:,}; copy the set again"
        )


def _decode(info: DatasetInfo, files: list[Path], rows: int) -> tuple[np.ndarray, np.ndarray]:
    assert info.shape is not None
    inputs = np.empty((rows, *info.shape), np.uint8)
    targets = np.empty(rows, np.int64)
    picture, label = info.columns
    filled = 0
    for file in files:
        first = filled
        for table in parquet.batches(info.name, file, info.columns):
            for entry in table.to_pylist():
                where = f"{info.name}: row {filled - first} of {file}"
                inputs[filled] = decode_picture(entry[picture], info.shape, where)
                targets[filled] = parquet.labelled(entry[label], info.classes, where)
                filled += 1
    return inputs, targets


def decode_picture(picture: object, shape: tuple[int, int, int], where: str) -> np.ndarray:
    """Pixels uint8 [C, H, W] of an encoded picture ``{"bytes": ...}`` that must have ``shape``.

    Raises:
        DataError: it cannot be decoded or has another size; ``where`` begins the message.
    """
    from PIL import Image

    content = parquet.encoded(picture, where)
    channels, height, width = shape
    try:
        with Image.open(io.BytesIO(content)) as image:
            pixels = np.asarray(image.convert("L" if channels == 1 else "RGB"))
    except (OSError, ValueError, SyntaxError) as error:  # pillow reports a broken PNG as a SyntaxError
        raise DataError(f"{where} holds a picture that cannot be decoded ({error}); copy the file again") from error
    if pixels.shape[:2] != (height, width):
        found = "x".join(map(str, pixels.shape[:2]))
        raise DataError(f"{where} holds a picture of {found} pixels instead of {height}x{width}")
    return pixels[None] if channels == 1 else pixels.transpose(2, 0, 1)


def _downloaded(info: DatasetInfo, split: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pixels uint8 [N, C, H, W] and labels int64 [N] of a split that torchvision downloaded with ``root=folder``.

    The examples stand in torchvision's order, which is not that of every copy on the Hub. It checks CIFAR's files
    against their MD5 before it unpickles them. Raises DataError where it finds them damaged.
    """
    from torchvision import datasets

    reader = getattr(datasets, info.name.upper())
    try:
        found = reader(folder, train=split == "train", download=False)
    except Exception as error:  # assertions and unpickling errors among them
        why = str(error) or "no file of its format"
        raise DataError(f"{info.name}: torchvision cannot read {folder} ({why}); download it again") from error
    pixels = np.asarray(found.data)
    pixels = pixels[:, None] if pixels.ndim == 3 else pixels.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(pixels), np.asarray(found.targets, np.int64)


DIGIT_SIZES = (8, 28, 32)
CLASSES = 10
ORIENTATIONS = 5


def digits(split: str, size: int = 28) -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's 1,797 digits, 1,437 of them to train on: uint8 [N, 1, size, size] and int64 [N].

    The 8x8 pictures are enlarged by whole pixels (3 times within a margin of 2 for 28, 4 times for 32), so no
    interpolation is involved. Their 17 grey levels are spread over 0..255. One fixed permutation, made before
    the split, because neighbours in scikit-learn's order were written by the same person.

    Raises:
        DataError: ``size`` is not 8, 28 or 32.
    """
    if size not in DIGIT_SIZES:
        raise DataError(f"digits: size={size} is not offered; choose one of {', '.join(map(str, DIGIT_SIZES))}")
    from sklearn.datasets import load_digits

    bunch = load_digits()
    order = np.argsort(np.random.default_rng(1797).random(len(bunch.target)), kind="stable")
    kept = order[:1437] if split == "train" else order[1437:]
    grey = (bunch.images[kept].astype(np.int64) * 255 + 8) // 16
    factor = size // 8
    margin = (size - 8 * factor) // 2
    large = grey.repeat(factor, axis=1).repeat(factor, axis=2)
    padded = np.pad(large, ((0, 0), (margin, margin), (margin, margin)))
    return padded.astype(np.uint8)[:, None], bunch.target[kept].astype(np.int64)


def colours(split: str, examples: int) -> tuple[np.ndarray, np.ndarray]:
    """Generated 32x32 RGB pictures of ten classes: uint8 [examples, 3, 32, 32] and int64 [examples].

    Class c is a sinusoidal grating of orientation 36 (c mod 5) degrees whose bars run between red and green
    for c < 5, between blue and yellow otherwise. Within a class the orientation varies by up to 14 degrees,
    the wavelength from 5 to 10 pixels, contrast, phase and the colour of the ground freely; a blob of random
    colour, place and width lies on top, and noise on everything. The random phase gives all classes the same
    mean, so a network must learn oriented, coloured filters: it needs a few epochs, a linear model fails.

    The first n of a larger set are the set of n, and the classes of the two splits are drawn independently.
    """

    def uniform(quantity: int, *shape: int) -> np.ndarray:
        # one stream per quantity: a longer set then begins with the shorter one
        seed = (32, int(split == "train"), quantity)
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))).random((examples, *shape))

    targets = np.floor(uniform(0) * CLASSES).astype(np.int64)
    angle = np.deg2rad(36.0 * (targets % ORIENTATIONS) + 28.0 * (uniform(1) - 0.5))
    cycles = 1 / (5.0 + 5.0 * uniform(2))
    phase = 2 * np.pi * uniform(3)
    contrast = 12.0 + 28.0 * uniform(4)
    axis = np.where(targets[:, None] < ORIENTATIONS, [1.0, -1.0, 0.0], [-0.6, -0.6, 1.0])
    ground = 80.0 + 95.0 * uniform(5, 3)
    place, width = 32.0 * uniform(6, 2), 3.0 + 4.0 * uniform(7)
    tint = 160.0 * (uniform(8, 3) - 0.5)

    y, x = np.mgrid[:32, :32].astype(np.float64)
    along = np.cos(angle)[:, None, None] * x + np.sin(angle)[:, None, None] * y
    bars = np.sin(2 * np.pi * cycles[:, None, None] * along + phase[:, None, None]) * contrast[:, None, None]
    # the blob is separable: exp(-(dx^2 + dy^2) / 2 w^2) is an outer product
    steps = np.arange(32.0)
    slopes = [np.exp(-(((steps - place[:, i : i + 1]) / width[:, None]) ** 2) / 2) for i in range(2)]
    blob = slopes[1][:, :, None] * slopes[0][:, None, :]

    pictures = np.empty((examples, 3, 32, 32), np.uint8)
    for channel in range(3):
        level = ground[:, channel, None, None] + axis[:, channel, None, None] * bars
        level += tint[:, channel, None, None] * blob
        level += 110.0 * (uniform(9 + channel, 32, 32) - 0.5)  # noise of standard deviation 32
        pictures[:, channel] = np.clip(np.rint(level), 0, 255)
    return pictures, targets
