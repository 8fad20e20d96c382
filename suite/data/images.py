"""Image sets as tensors: ``load_images("cifar10", "train")`` is uint8 [50000, 3, 32, 32] and its labels.

Windows of characters are read the same way: their codes are the pixels of a picture of one row, and the label is the
next character at each place.
"""

from __future__ import annotations

import hashlib
import io
from functools import cache
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from suite.data import embedded, parquet
from suite.data.cache import Decoded, cached, decoded, source_key
from suite.data.catalogue import DATASETS, DataError, DatasetInfo, cache_folder, present_files
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
        examples: keep the first so many.
        digest: of the pixels and labels of all splits (:func:`content_digest`), which must be those that are found.

    Raises:
        DataError: the set is absent, incomplete or damaged, or an option does not fit it.
    """
    info = DATASETS[name]
    _check_request(info, split, size, examples)
    if name == "digits":
        found = _digits(split, 28 if size is None else size)
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
    if examples is not None and not 1 <= examples <= info.sizes[split]:
        raise DataError(f"{name}: examples={examples} is outside 1..{info.sizes[split]} of split {split}")


@cache
def _of_ones_own(name: str, split: str) -> Decoded:
    """A split of a set that a package of one's own brings; read once in a process."""
    load = DATASETS[name].load
    assert load is not None
    inputs, targets = (np.ascontiguousarray(each) for each in load(split))
    return decoded(inputs, targets.astype(np.int64))


def content_digest(name: str, root: Path | None = None) -> str:
    """16 hex digits of all splits of a set, for the settings of its runs: other data have other runs."""
    found = [load_images(name, split, root).checksum for split in DATASETS[name].sizes]
    return hashlib.sha256(" ".join(found).encode()).hexdigest()[:16]


def _digits(split: str, size: int) -> Decoded:
    """The digits as they were made at first use: importing scikit-learn takes longer than a short run."""
    make = lambda: embedded.digits(split, size)
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
    found = chain.from_iterable(parquet.pictures(info, file) for file in files)
    for row, (where, content, label) in enumerate(found):
        inputs[row], targets[row] = decode_picture(content, info.shape, where), label
    return inputs, targets


def decode_picture(content: bytes, shape: tuple[int, int, int], where: str) -> np.ndarray:
    """Pixels uint8 [C, H, W] of an encoded picture that must have ``shape``.

    Raises:
        DataError: it cannot be decoded or has another size; ``where`` begins the message.
    """
    from PIL import Image

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
