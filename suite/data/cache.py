"""Decoded data sets on disk: built once, memory-mapped afterwards, never trusted without their checksum."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from suite.data.catalogue import DataError
from suite.files import whole, write_whole

LAYOUT = 1  # raise it when decoding changes, so that no older cache is read


class Decoded(NamedTuple):
    """A decoded split: uint8 inputs [N, C, H, W], int64 targets [N] and the sha256 of both."""

    inputs: np.ndarray
    targets: np.ndarray
    checksum: str


def decoded(inputs: np.ndarray, targets: np.ndarray) -> Decoded:
    """A split in memory."""
    return Decoded(inputs, targets, checksum(inputs, targets))


def checksum(inputs: np.ndarray, targets: np.ndarray) -> str:
    """sha256 over shape, inputs and targets: the identity of a decoded split, not of its files."""
    digest = hashlib.sha256(repr((inputs.shape, str(inputs.dtype), str(targets.dtype))).encode())
    digest.update(np.ascontiguousarray(inputs).data)
    digest.update(np.ascontiguousarray(targets).data)
    return digest.hexdigest()


def source_key(files: list[Path], *settings: object) -> str:
    """sha256 over the contents of the source files in order, and over what else the decoding depends on."""
    digest = hashlib.sha256(repr((LAYOUT, *settings)).encode())
    for file in files:
        with open(file, "rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def cached(folder: Path, key: str, decode: Callable[[], tuple[np.ndarray, np.ndarray]]) -> Decoded:
    """The split stored under ``key``, memory-mapped; decoded and stored first if absent or damaged.

    Every file appears by an atomic rename and holds the same bytes whoever writes it, so any number of
    processes may build the same entry at once.

    Raises:
        DataError: the folder cannot be written.
    """
    found = _read(folder, key)
    if found is not None:
        return found
    found = decoded(*decode())
    inputs, targets, _ = found
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in (("inputs", inputs), ("targets", targets)):
            with whole(folder / f"{key}.{name}.npy") as stream:
                np.save(stream, array)
        write_whole(folder / f"{key}.json", json.dumps({"checksum": found.checksum}).encode())
    except OSError as error:
        raise DataError(
            f"the data cannot be stored in {folder} ({error.strerror or error}); "
            f"free some space ({inputs.nbytes / 1e6:,.0f} MB) or name another folder in SGD_SUITE_CACHE"
        ) from error
    return _read(folder, key) or found


def _read(folder: Path, key: str) -> Decoded | None:
    """The entry if it is whole, else None."""
    try:
        record = json.loads((folder / f"{key}.json").read_bytes())
        # copy-on-write: the mapping is writable, as torch.from_numpy demands, and the file never changes
        inputs = np.load(folder / f"{key}.inputs.npy", mmap_mode="c", allow_pickle=False)
        targets = np.load(folder / f"{key}.targets.npy", allow_pickle=False)
    except (OSError, ValueError, EOFError):  # absent, truncated, or not what numpy or json write
        return None
    if not isinstance(record, dict) or record.get("checksum") != checksum(inputs, targets):
        return None
    return Decoded(inputs, targets, record["checksum"])
