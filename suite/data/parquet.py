"""Rows of parquet shards in the Hub's layout, read through ``datasets``; every failure names its file.

Where ``datasets`` is not installed, as on a machine that only lends its GPU, pyarrow reads the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from suite.data.catalogue import DataError, DatasetInfo, cache_folder

Picture = tuple[str, bytes, int]  # where it stands, encoded, its label
_SHARD = re.compile(r"-(\d+)-of-(\d+)\.parquet$")


def check_shards(name: str, files: list[Path]) -> None:
    """Raise DataError if the names of the shards say that one of them is missing."""
    numbers = [(int(found[1]), int(found[2])) for found in map(_SHARD.search, map(str, files)) if found]
    totals = {total for _, total in numbers}
    if len(totals) > 1:
        raise DataError(f"{name}: {files[0].parent} mixes shards of several exports ({files[0].name}, ...); keep one")
    absent = sorted(set(range(max(totals, default=0))) - {number for number, _ in numbers})
    if absent:
        raise DataError(f"{name}: shard {absent[0]} of {totals.pop()} is missing beside {files[0]}; copy it again")


def count_rows(name: str, files: list[Path]) -> int:
    """Rows of all shards together, from their footers alone."""
    return sum(_footer(name, file).num_rows for file in files)


def columns(name: str, file: Path) -> list[str]:
    """Names of the shard's columns."""
    return _footer(name, file).schema.to_arrow_schema().names


def batches(name: str, file: Path, wanted: tuple[str, ...], rows: int = 1000) -> Iterator[pa.Table]:
    """The columns of one shard in order, at most ``rows`` rows at a time.

    Raises:
        DataError: the file is no parquet file, is damaged, or lacks a column, or the cache cannot be written.
    """
    present = columns(name, file)
    absent = [column for column in wanted if column not in present]
    if absent:
        raise DataError(
            f"{name}: {file} has no column {absent[0]!r}, only {', '.join(present)}; "
            f"it must be a shard of the data set in the Hub's layout"
        )
    try:
        yield from _tables(file, list(wanted), rows)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(name, file, error) from error


def pictures(info: DatasetInfo, file: Path, skip: int = 0, rows: int = 1000) -> Iterator[Picture]:
    """The pictures of one shard in order, but for the first ``skip``. Raises DataError as ``batches``."""
    picture, label = info.columns
    row = 0
    for table in batches(info.name, file, info.columns, rows):
        begin = max(0, skip - row)
        for at, entry in enumerate(table.slice(begin).to_pylist(), start=row + begin):
            where = f"{info.name}: row {at} of {file}"
            yield where, encoded(entry[picture], where), labelled(entry[label], info.classes, where)
        row += len(table)


def encoded(picture: object, where: str) -> bytes:
    """The encoded picture of a row; ``where`` begins the message of DataError where there is none."""
    content = picture.get("bytes") if isinstance(picture, dict) else None
    if not content:
        raise DataError(f"{where} holds no encoded picture; copy the file again")
    return content


def labelled(label: object, classes: int, where: str) -> int:
    """The label of a row; ``where`` begins the message of DataError for one that is no class."""
    if not isinstance(label, int) or not 0 <= label < classes:
        raise DataError(f"{where} has label {label!r} outside 0..{classes - 1}; copy the file again")
    return label


def _footer(name: str, file: Path) -> Any:
    try:
        return pq.read_metadata(file)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(name, file, error) from error


def _damaged(name: str, file: Path, error: Exception) -> DataError:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return DataError(f"{name}: {file} is damaged or no parquet file ({reason}); delete it and copy it again")


def _tables(file: Path, wanted: list[str], rows: int) -> Iterator[pa.Table]:
    # Half a second and a hundred modules: only once something is read. The reader and not load_dataset, which
    # reports every call to the Hub, local files included; streaming, since otherwise the shard would first be
    # copied into a second cache on disk.
    from datasets.io.parquet import ParquetDatasetReader

    cache = cache_folder() / "datasets"
    try:
        reader = ParquetDatasetReader([str(file)], split="train", cache_dir=str(cache), streaming=True)
    except OSError as error:
        raise DataError(
            f"the cache of the package datasets cannot be stored in {cache} ({error.strerror or error}); "
            f"name another folder in SGD_SUITE_CACHE"
        ) from error
    yield from reader.read().select_columns(wanted).with_format("arrow").iter(batch_size=rows)
