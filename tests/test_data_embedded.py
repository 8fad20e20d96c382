"""The image sets that need no download, and the options of load_images."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from suite.data import embedded
from suite.data.cache import checksum
from suite.data.catalogue import DataError
from suite.data.images import load_images


@pytest.mark.parametrize(("size", "factor", "margin"), [(8, 1, 0), (28, 3, 2), (32, 4, 0)])
def test_digits_are_scikit_learns_enlarged_by_whole_pixels(size: int, factor: int, margin: int) -> None:
    from sklearn.datasets import load_digits

    splits = [load_images("digits", split, size=size) for split in ("train", "test")]
    assert [tuple(images.inputs.shape) for images in splits] == [(1437, 1, size, size), (360, 1, size, size)]
    inputs = torch.cat([images.inputs for images in splits])[:, 0]
    inner = inputs[:, margin : size - margin, margin : size - margin]
    small = inner[:, ::factor, ::factor]
    assert torch.equal(small.repeat_interleave(factor, 1).repeat_interleave(factor, 2), inner)
    assert int(inputs.sum()) == int(inner.sum())  # the margin is empty
    # each of the 1,797 pictures occurs once, with its label
    bunch = load_digits()
    levels = (bunch.data * 255 / 16).round().astype(int)
    wanted = sorted((*row, label) for row, label in zip(levels.tolist(), bunch.target, strict=True))
    labels = torch.cat([images.targets for images in splits])
    found = sorted((*row.flatten().tolist(), int(label)) for row, label in zip(small, labels, strict=True))
    assert [row[-1] for row in found] == [row[-1] for row in wanted]
    assert np.abs(np.array(found) - np.array(wanted)).max() <= 1  # halves round either way


def test_colours_are_reproducible_and_prefixes_of_longer_sets() -> None:
    first, second = (load_images("colours", "train", examples=n) for n in (50, 300))
    assert torch.equal(first.inputs, second.inputs[:50])
    assert torch.equal(first.targets, second.targets[:50])
    assert first.checksum != second.checksum
    test = load_images("colours", "test", examples=50)
    assert not torch.equal(first.targets, test.targets)
    assert len(load_images("colours", "test", examples=1500).inputs) == 1500  # more than the default
    everything = load_images("colours", "train")
    assert tuple(everything.inputs.shape) == (4000, 3, 32, 32)
    assert everything.checksum == load_images("colours", "train").checksum
    counts = everything.targets.bincount(minlength=10)
    # each class is binomial(4000, 1/10), deviation 19: six of them are left by chance in 2e-8 of sets
    assert int((counts - 400).abs().max()) < 114


def test_class_means_of_the_colours_tell_nothing() -> None:
    inputs, targets = embedded.colours("train", 4000)
    held, labels = embedded.colours("test", 1000)
    means = np.stack([inputs[targets == label].mean(0) for label in range(10)]).reshape(10, -1)
    nearest = (held.reshape(1000, -1).astype(float) @ means.T - (means**2).sum(1) / 2).argmax(1)
    # a classifier without knowledge is right in 100 of 1000, deviation 9.5; six deviations: 1e-9
    assert (nearest == labels).sum() < 157


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="size=20 is not offered; choose"):
        load_images("digits", "train", size=20)
    with pytest.raises(DataError, match="size=28 cannot be chosen"):
        load_images("colours", "train", size=28)
    with pytest.raises(DataError, match=r"examples=361 is outside 1\.\.360"):
        load_images("digits", "test", examples=361)
    with pytest.raises(DataError, match="examples=0"):
        load_images("colours", "test", examples=0)
    with pytest.raises(DataError, match=r"text.load_pairs"):
        load_images("multi30k", "train")
    with pytest.raises(DataError, match="ImageNetStream"):
        load_images("imagenet", "train")


@pytest.mark.parametrize(
    ("made", "split", "argument", "begins"),
    [
        (embedded.digits, "train", 8, "9308c72b3064be3f"),
        (embedded.digits, "test", 28, "3ad79c5276e89b14"),
        (embedded.digits, "train", 32, "e0304b67f61e8264"),
        (embedded.colours, "train", 50, "43110d4d73ffbd08"),
        (embedded.colours, "test", 50, "1813b10cb9a74bed"),
    ],
)
def test_embedded_sets_are_the_bytes_that_runs_were_trained_on(made, split, argument, begins) -> None:
    """Made anew, not read from a cache, which a change here must not outlive: raise ``cache.LAYOUT`` with it."""
    assert checksum(*made(split, argument)).startswith(begins)
