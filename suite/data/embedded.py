"""The image set that needs no download: scikit-learn's digits."""

from __future__ import annotations

import numpy as np

from suite.data.catalogue import DataError

DIGIT_SIZES = (8, 28, 32)


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
