"""Image sets that need no download: scikit-learn's digits, and coloured gratings in CIFAR's shape."""

from __future__ import annotations

import numpy as np

from suite.data.catalogue import DataError

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
