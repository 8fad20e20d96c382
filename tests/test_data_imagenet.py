"""The ImageNet stream, on a generated folder of the same layout: 3 classes, 24 JPEGs, 2 shards."""

from __future__ import annotations

import io
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from suite.communication.launch import FORKED
from suite.data import imagenet
from suite.data.catalogue import DataError
from suite.data.imagenet import ImageBatch, ImageNetStream, open_rows
from suite.data.verify import verify

SIDE = 16
LABELS = [row % 3 for row in range(24)]


def jpeg(row: int) -> bytes:
    """A picture of its own size whose grey level, and in part its mode, tell its row."""
    mode = "L" if row % 5 == 0 else "RGB"
    level = 10 * row
    image = Image.new(mode, (20 + row, 60 - row), level if mode == "L" else (level, level, 255 - level))
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=95)
    return stream.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "ILSVRC" / "imagenet-1k" / "data"
    folder.mkdir(parents=True)
    for part, rows in enumerate((range(14), range(14, 24))):
        table = pa.table(
            {
                "image": [{"bytes": jpeg(row), "path": f"{row}.JPEG"} for row in rows],
                "label": [LABELS[row] for row in rows],
            }
        )
        pq.write_table(table, folder / f"train-{part:05}-of-00002.parquet", row_group_size=4)
    return tmp_path


def take(root: Path, first: int, count: int, **options: object) -> list[ImageBatch]:
    settings = {"processes": 0, "side": SIDE} | options
    with ImageNetStream("train", 5, root, **settings) as stream:
        return list(islice(stream.batches(first), count))


def test_batches_follow_the_stored_order_in_a_cycle(root: Path) -> None:
    batches = take(root, 0, 11)
    assert [batch.number for batch in batches] == list(range(11))
    rows = [n * 5 % 25 + i for n in range(11) for i in range(5)]
    wanted = [row % 24 for row in rows]  # five batches an epoch, the last completed with row 0
    assert torch.cat([batch.targets for batch in batches]).tolist() == [LABELS[row] for row in wanted]
    green = torch.cat([batch.inputs for batch in batches])[:, 1].double().mean((1, 2))
    assert torch.allclose(green, torch.tensor([10.0 * row for row in wanted], dtype=torch.float64), atol=2.0)
    for batch in batches:
        assert batch.inputs.shape == (5, 3, SIDE, SIDE)
        assert batch.inputs.dtype == torch.uint8


@pytest.mark.parametrize(("first", "ahead"), [(1, 4), (7, 1)])
def test_a_stream_may_start_at_any_batch(root: Path, first: int, ahead: int) -> None:
    whole = take(root, 0, first + 3)[first:]
    resumed = take(root, first, 3, ahead=ahead)
    for one, other in zip(whole, resumed, strict=True):
        assert one.number == other.number
        assert torch.equal(one.inputs, other.inputs)
        assert torch.equal(one.targets, other.targets)


@pytest.mark.processes
def test_worker_processes_change_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker comes from the process that has imported torch, in no time."""
    monkeypatch.setattr(imagenet.multiprocessing, "get_context", lambda method: FORKED)
    for one, other in zip(take(root, 2, 4), take(root, 2, 4, processes=1), strict=True):
        assert torch.equal(one.inputs, other.inputs)
        assert torch.equal(one.targets, other.targets)


@pytest.fixture
def class_folders(tmp_path: Path) -> Path:
    """The same pictures as ``ImageFolder`` has them: a folder per class, under the names of ImageNet's own."""
    for split, rows in {"train": range(24), "val": range(6)}.items():
        for row in rows:
            folder = tmp_path / "imagenet" / split / f"n0{LABELS[row]}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"n0{LABELS[row]}_{row}.JPEG").write_bytes(jpeg(row))
    return tmp_path


def test_class_folders_hold_the_same_pictures_in_one_mixed_order(class_folders: Path) -> None:
    first = take(class_folders, 0, 5)
    levels = torch.cat([batch.inputs for batch in first])[:24, 1].double().mean((1, 2)) / 10
    labels = torch.cat([batch.targets for batch in first])[:24].tolist()
    rows = levels.round().int().tolist()
    assert sorted(rows) == list(range(24))
    assert labels == [LABELS[row] for row in rows]
    assert labels != sorted(labels)  # not class by class
    for one, other in zip(first[2:], take(class_folders, 2, 3), strict=True):  # a stream may start at any batch
        assert torch.equal(one.inputs, other.inputs)
    moved = class_folders / "elsewhere"
    (class_folders / "imagenet").rename(moved)  # named itself, as ImageFolder's users do, and at another place
    for one, other in zip(first, take(moved, 0, 5), strict=True):
        assert torch.equal(one.inputs, other.inputs)


def test_class_folders_are_labelled_as_torchvision_does(class_folders: Path) -> None:
    from torchvision.datasets import ImageFolder

    theirs = ImageFolder(class_folders / "imagenet" / "val")
    ours = open_rows("validation", class_folders)
    taken = [row for row, _ in zip(ours.rows(0), range(ours.examples), strict=False)]
    assert {(where.removeprefix("imagenet: "), label) for where, _, label in taken} == set(theirs.samples)


def spoil(root: Path, row: int, **values: object) -> None:
    path = next(root.rglob("train-00000-*"))
    rows = pq.read_table(path).to_pylist()
    rows[row].update(values)
    pq.write_table(pa.Table.from_pylist(rows), path)


def test_bad_rows_are_named(root: Path) -> None:
    spoil(root, 2, image={"bytes": jpeg(2)[:60], "path": None})
    with pytest.raises(DataError, match=r"imagenet: row 2 of .*train-00000-.* cannot be decoded"):
        take(root, 0, 1)
    spoil(root, 2, image={"bytes": None, "path": "x"})
    with pytest.raises(DataError, match=r"row 2 of .* holds no encoded picture"):
        take(root, 0, 1)
    spoil(root, 2, image={"bytes": jpeg(2), "path": None}, label=1000)
    with pytest.raises(DataError, match=r"row 2 of .* label 1000 outside 0..999"):
        take(root, 0, 1)


def test_absent_and_incomplete_splits_are_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="lacks split validation"):
        ImageNetStream("validation", 5, root)
    with pytest.raises(DataError, match="imagenet is missing, since there is no folder"):
        ImageNetStream("train", 5, tmp_path / "nowhere")
    with pytest.raises(DataError, match="split 'test' does not exist; it has train, validation"):
        ImageNetStream("test", 5, tmp_path / "nowhere")
    next(root.rglob("train-00001-*")).unlink()
    with pytest.raises(DataError, match="shard 1 of 2 is missing"):
        ImageNetStream("train", 5, root)


def test_verify_names_the_splits_that_are_not_whole(root: Path) -> None:
    checks = {check.name: check for check in verify("imagenet", root)}
    assert checks["train size"].detail == "24 rows of 1,281,167"
    assert not checks["train size"].passed
    assert checks["train readable"].passed
    assert not checks["validation size"].passed


@pytest.mark.gpu
def test_pinned_buffers_deliver_the_same_batches(root: Path) -> None:
    for one, other in zip(take(root, 0, 9), take(root, 0, 9, device="cuda"), strict=True):
        assert np.array_equal(one.inputs.numpy(), other.inputs.cpu().numpy())
        assert torch.equal(one.targets, other.targets.cpu())
