"""The image set that needs no download, and the options of load_images."""

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


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="size=20 is not offered; choose"):
        load_images("digits", "train", size=20)
    with pytest.raises(DataError, match="size=28 cannot be chosen"):
        load_images("mnist", "train", size=28)
    with pytest.raises(DataError, match=r"examples=361 is outside 1\.\.360"):
        load_images("digits", "test", examples=361)
    with pytest.raises(DataError, match="examples=0"):
        load_images("digits", "test", examples=0)
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
    ],
)
def test_embedded_sets_are_the_bytes_that_runs_were_trained_on(made, split, argument, begins) -> None:
    """Made anew, not read from a cache, which a change here must not outlive: raise ``cache.LAYOUT`` with it."""
    assert checksum(*made(split, argument)).startswith(begins)
