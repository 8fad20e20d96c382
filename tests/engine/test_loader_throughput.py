"""Pictures per second of a stream, by a clock that the test turns."""

from __future__ import annotations

import pytest

from suite.data.imagenet import ImageNetStream
from suite.data.throughput import throughput, write_sample


@pytest.fixture
def stream(tmp_path):
    write_sample(tmp_path, 6, height=24, width=32)
    with ImageNetStream("train", 4, tmp_path, processes=0, ahead=1, side=16) as made:
        yield made


def test_waiting_and_using_are_told_apart(stream, monkeypatch):
    now, numbers = [0.0], []

    def use(batch):
        assert batch.inputs.shape == (4, 3, 16, 16)
        numbers.append(batch.number)
        now[0] += 3.0

    decode = ImageNetStream._decode

    def slow(self, chunk):
        now[0] += 1.0
        return decode(self, chunk)

    monkeypatch.setattr(ImageNetStream, "_decode", slow)
    found = throughput(stream, 5, consume=use, clock=lambda: now[0])
    assert numbers == [0, 1, 2, 3, 4, 5]
    assert (found.pictures, found.seconds, found.waiting) == (20, 5 * 4.0, 5 * 1.0)
    assert (found.pictures_per_second, found.waiting_share) == (1.0, 0.25)


def test_the_sample_is_a_whole_folder_of_distinct_pictures(stream):
    assert stream.examples == 6
    batches = stream.batches()
    first, second = next(batches), next(batches)
    assert first.targets.tolist() == [0, 1, 2, 3]
    assert second.targets.tolist() == [4, 5, 0, 1]
    assert len({tuple(picture.flatten().tolist()) for picture in first.inputs}) == 4


def test_no_batches_have_no_throughput(stream):
    with pytest.raises(ValueError, match="batches=0 must be at least 1"):
        throughput(stream, 0)
