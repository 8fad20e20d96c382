"""Streamed pictures: how a point is scored on the first validation pictures, and where batches of a worker begin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from suite.data.imagenet import ImageBatch
from suite.experiment import Context
from suite.spec import RunSpec
from suite.training import streaming
from suite.training.build import make_network
from suite.training.flat import FlatModule
from suite.training.numerics import choose

CLASSES, SIDE, CROP = 7, 12, 8
MODEL = {"name": "tiny_bn", "channels": 3, "classes": CLASSES, "input_size": CROP}


class Pictures:
    """450 random pictures of seven classes in the form of a stream; it notes what it was asked for."""

    splits: list[tuple[str, int]]
    starts: list[int]
    processes: list[int]
    closed: list[str]

    def __init__(self, split: str, batch: int, root: object, *, device: torch.device, side: int, processes: int = 0):
        assert (device.type, side) == ("cpu", SIDE)
        self.splits.append((split, batch))
        self.processes.append(processes)
        draw = torch.Generator().manual_seed(3)
        self.pixels = torch.randint(256, (450, 3, SIDE, SIDE), generator=draw, dtype=torch.uint8)
        self.targets = torch.randint(CLASSES, (450,), generator=draw)
        self.batch, self.batches_per_epoch = batch, -(-450 // batch)

    def __enter__(self) -> Pictures:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self.closed.append(self.splits[-1][0])

    def batches(self, first: int = 0) -> Iterator[ImageBatch]:
        self.starts.append(first)
        number = first
        while True:
            rows = (torch.arange(self.batch) + number % self.batches_per_epoch * self.batch) % 450
            yield ImageBatch(number, self.pixels[rows], self.targets[rows])
            number += 1


@pytest.fixture(autouse=True)
def pictures(monkeypatch: pytest.MonkeyPatch) -> type[Pictures]:
    for noted in ("splits", "starts", "processes", "closed"):
        monkeypatch.setattr(Pictures, noted, [], raising=False)
    monkeypatch.setattr(streaming, "ImageNetStream", Pictures)
    return Pictures


@pytest.fixture
def flat() -> FlatModule:
    return FlatModule(make_network(MODEL, 0, "cpu", torch.float32), channels_last=True)


def images_of(flat: FlatModule, seed: int, workers: int) -> streaming.StreamedImages:
    """Training pictures in batches of 30."""
    return streaming.StreamedImages({"batch": 30, "crop": CROP, "side": SIDE}, flat, seed, workers, None)


def scores(flat: FlatModule, x: Tensor, count: int) -> tuple[float, float, float]:
    """The same of the first pictures at once."""
    source = Pictures("validation", 1, None, device=torch.device("cpu"), side=SIDE)
    mean = torch.tensor([123.0, 117.0, 104.0]).view(3, 1, 1)
    margin = (SIDE - CROP) // 2
    inputs = (source.pixels[:count].float() - mean)[:, :, margin : margin + CROP, margin : margin + CROP]
    targets = source.targets[:count]
    flat.load(x, flat.buffers.clone())
    flat.module.eval()
    with torch.no_grad():
        logits = flat.module(inputs)
    ranks = (logits > logits.gather(1, targets[:, None])).sum(1)
    shares = [(ranks >= most).float().mean().item() for most in (1, 5)]
    return F.cross_entropy(logits, targets).item(), shares[0], shares[1]


@pytest.mark.parametrize("count", [7, 200, 401, 450])
def test_a_point_is_scored_on_the_first_validation_pictures_and_no_others(flat, pictures, count):
    x = flat.point() + 0.3 * torch.randn(flat.d, generator=torch.Generator().manual_seed(1))
    settings = {"evaluate": {"examples": count}, "side": SIDE, "crop": CROP}
    loss, top1, top5 = streaming.validated(flat, x, flat.buffers.clone(), settings, None)
    assert flat.module.training
    assert pictures.splits == [("validation", min(200, count))]
    expected = scores(flat, x, count)
    assert loss == pytest.approx(expected[0], rel=1e-5)
    assert (top1, top5) == pytest.approx(expected[1:], abs=1e-6)
    assert 0 < top5 < top1 < 1


def test_a_batch_is_opened_where_the_worker_stands_and_kept_while_it_is_asked_for_again(flat, pictures):
    images = images_of(flat, seed=0, workers=2)
    assert images.part == 7  # of 15 batches two workers have seven each
    source = Pictures("train", 30, None, device=torch.device("cpu"), side=SIDE)
    pictures.starts.clear()

    def targets(worker: int, number: int) -> list[int]:
        return images.fetch(torch.tensor([worker, number]))[1].tolist()

    def stored(batch: int) -> list[int]:
        return source.targets[30 * batch : 30 * batch + 30].tolist()

    assert [targets(0, n) for n in (0, 1, 1, 2)] == [stored(n) for n in (0, 1, 1, 2)]
    assert pictures.starts == [0]
    assert targets(1, 0) == stored(7)
    assert pictures.starts == [0, 7]
    assert targets(0, 6) == stored(6)  # others were left out
    assert targets(0, 7) == stored(0)  # the next epoch of its part
    assert pictures.starts == [0, 7, 6, 0]
    both = images.fetch(torch.tensor([[0, 8], [1, 1]]))
    assert both[0].shape == (60, 3, CROP, CROP)
    assert both[1].tolist() == stored(1) + stored(8)
    assert pictures.starts == [0, 7, 6, 0]


def test_a_batch_is_cropped_as_its_name_says(flat):
    first, second = torch.tensor([0, 0]), torch.tensor([0, 15])
    images = images_of(flat, seed=0, workers=1)
    one = images.fetch(first)[0].clone()
    assert torch.equal(one, images_of(flat, seed=0, workers=1).fetch(first)[0])
    assert not torch.equal(one, images_of(flat, seed=1, workers=1).fetch(first)[0])
    assert not torch.equal(one, images.fetch(second)[0]), "another epoch crops the same pictures elsewhere"
    assert one.is_contiguous(memory_format=torch.channels_last)
    assert -123 <= one.min() < -100
    assert 100 < one.max() <= 255 - 104


@pytest.mark.parametrize("workers", [None, 3])
def test_streams_are_closed_when_a_run_ends_however_it_ends(pictures, workers, monkeypatch, tmp_path):
    settings = {
        "model": MODEL,
        "algorithm": {"name": "sgd"},
        "descent": {"rule": "caffe"},
        "batch": 30,
        "crop": CROP,
        "side": SIDE,
        "evaluate": {"every": 1, "examples": 1},
        **({"workers": workers} if workers else {}),
    }
    spec = RunSpec("train", {**settings, "updates": 1, "rate": 0.1})
    execution = choose(spec, "cpu", 1)

    def interrupted(*given: object) -> None:
        assert "train" not in pictures.closed
        raise KeyboardInterrupt

    monkeypatch.setattr(streaming, "validated", interrupted)
    with pytest.raises(KeyboardInterrupt):
        streaming.train(spec, Context(tmp_path, execution))
    assert pictures.closed == ["train"] * (workers or 1)
