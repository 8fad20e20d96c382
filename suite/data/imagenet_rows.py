"""Where ImageNet's encoded pictures come from: parquet shards of the Hub, or class folders as in ``ImageFolder``.

Both are read in one stored order, from any row on, in a cycle.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Protocol

from suite.data import parquet
from suite.data.catalogue import DataError, dataset, present_files

TOGETHER = 32  # rows of a shard read at a time

Row = tuple[str, bytes, int]
"""Where it stands, the encoded picture, its label."""


class Rows(Protocol):
    """A split in stored order."""

    place: Path
    examples: int

    def rows(self, first: int) -> Iterator[Row]:
        """Rows ``first``, ``first`` + 1, ... without end; after the last comes the first. Raises DataError."""
        ...


class Shards:
    """Parquet files of the Hub, their rows in the order of the files. Reads the footers."""

    def __init__(self, files: list[Path]):
        parquet.check_shards("imagenet", files)
        self.files, self.place = files, files[0].parent
        self._ends = list(accumulate(parquet.count_rows("imagenet", [file]) for file in files))
        self.examples = self._ends[-1]

    def rows(self, first: int) -> Iterator[Row]:
        classes = dataset("imagenet").classes
        shard = bisect_right(self._ends, first)
        skip = first - (self._ends[shard - 1] if shard else 0)
        while True:
            file = self.files[shard]
            row = 0
            for table in parquet.batches("imagenet", file, dataset("imagenet").columns, rows=TOGETHER):
                if row + len(table) <= skip:
                    row += len(table)
                    continue
                for entry in table.to_pylist():
                    if row >= skip:
                        where = f"imagenet: row {row} of {file}"
                        yield where, _content(entry["image"], where), _label(entry["label"], classes, where)
                    row += 1
            shard, skip = (shard + 1) % len(self.files), 0


class ClassFolders:
    """A folder per class, labelled in alphabetical order as ``torchvision.datasets.ImageFolder`` does.

    In that class's own order all pictures of a label are neighbours, which no fixed cycle of batches survives: they
    are put in the order of the SHA-256 of their names, once and for ever, as ImageNet's makers shuffle their list.
    """

    def __init__(self, place: Path):
        try:
            from torchvision.datasets.folder import IMG_EXTENSIONS, make_dataset
        except ModuleNotFoundError as error:
            raise DataError(f"imagenet: class folders ({place}) are read by torchvision: install it") from error
        try:
            found = make_dataset(place, extensions=IMG_EXTENSIONS)
        except OSError as error:
            raise DataError(f"imagenet: {place} cannot be read ({error}); copy it again") from error
        self.place = place
        relative = [(Path(name).relative_to(place).as_posix(), label) for name, label in found]
        self._files = sorted(relative, key=lambda file: hashlib.sha256(file[0].encode()).digest())
        self.examples = len(self._files)

    def rows(self, first: int) -> Iterator[Row]:
        classes, row = dataset("imagenet").classes, first
        while True:
            name, label = self._files[row % self.examples]
            where = f"imagenet: {self.place / name}"
            try:
                content = (self.place / name).read_bytes()
            except OSError as error:
                raise DataError(f"{where} cannot be read ({error}); copy the file again") from error
            yield where, content, _label(label, classes, where)
            row += 1


def open_rows(split: str, root: Path | None) -> Rows:
    """A split in whichever layout it lies below ``root``. Raises DataError where it is absent or incomplete."""
    dataset("imagenet").prefix(split)
    _, files = present_files("imagenet", split, root)
    found: Rows = ClassFolders(files[0]) if files[0].is_dir() else Shards(files)
    if not found.examples:
        raise DataError(f"imagenet: {found.place} holds no row of split {split}; copy it again")
    return found


def _content(picture: object, where: str) -> bytes:
    content = picture.get("bytes") if isinstance(picture, dict) else None
    if not content:
        raise DataError(f"{where} holds no encoded picture; copy the file again")
    return content


def _label(label: object, classes: int, where: str) -> int:
    if not isinstance(label, int) or not 0 <= label < classes:
        raise DataError(f"{where} has label {label!r} outside 0..{classes - 1}; copy the file again")
    return label
