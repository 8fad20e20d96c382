"""MNIST and CIFAR as torchvision's own downloads leave them, read by torchvision.

The examples stand in torchvision's order, which is not that of every copy on the Hub: the same pictures, another
sequence of batches. torchvision checks CIFAR's files against their MD5 before it unpickles them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from suite.data.catalogue import DataError, DatasetInfo


def read(info: DatasetInfo, split: str, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Pixels uint8 [N, C, H, W] and labels int64 [N] of a split below ``folder``, where ``root=`` once pointed.

    Raises:
        DataError: torchvision is not installed, or finds the files damaged.
    """
    try:
        from torchvision import datasets
    except ModuleNotFoundError as error:
        raise DataError(f"{info.name}: what torchvision downloaded ({folder}) is read by it: install it") from error
    reader = getattr(datasets, info.name.upper())
    try:
        found = reader(folder, train=split == "train", download=False)
    except Exception as error:  # assertions and unpickling errors among them
        why = str(error) or "no file of its format"
        raise DataError(f"{info.name}: torchvision cannot read {folder} ({why}); download it again") from error
    pixels = np.asarray(found.data)
    pixels = pixels[:, None] if pixels.ndim == 3 else pixels.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(pixels), np.asarray(found.targets, np.int64)
