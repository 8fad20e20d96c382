"""torchvision as oracle and as source: its downloads, its networks, its crops."""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torchvision import datasets, models
from torchvision.transforms.v2 import functional as theirs

from suite.data import catalogue
from suite.data.catalogue import DATASETS, DataError, available
from suite.data.images import load_images
from suite.data.transforms import CropFlip, centre_crop
from suite.models.registry import construct

FEW = {"train": 20, "test": 4}


def pixels(split: str, *shape: int) -> np.ndarray:
    return np.random.default_rng(FEW[split]).integers(0, 256, (FEW[split], *shape), dtype=np.uint8)


def idx(values: np.ndarray) -> bytes:
    """The format of MNIST's files: a magic number, the sizes, the bytes."""
    return bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">i4").tobytes() + values.tobytes()


@pytest.fixture
def mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(catalogue.DATASETS, "mnist", dataclasses.replace(DATASETS["mnist"], sizes=FEW))
    monkeypatch.setenv("SGD_SUITE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for split, name in (("train", "train"), ("test", "t10k")):
        (folder / f"{name}-images-idx3-ubyte").write_bytes(idx(pixels(split, 28, 28)))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx(np.arange(FEW[split], dtype=np.uint8) % 10))
    return tmp_path


def test_mnist_is_read_where_torchvision_left_it(mnist: Path) -> None:
    assert available("mnist", mnist) == (True, str(mnist))
    for _ in range(2):  # decoded, then out of the cache
        images = load_images("mnist", "train", mnist)
        assert torch.equal(images.inputs[:, 0], datasets.MNIST(mnist, train=True).data)
        assert images.targets.tolist() == [label % 10 for label in range(20)]


def test_an_incomplete_download_is_refused(mnist: Path) -> None:
    path = mnist / "MNIST" / "raw" / "t10k-images-idx3-ubyte"
    path.write_bytes(idx(pixels("test", 28, 28)[:3]))
    (path.parent / "t10k-labels-idx1-ubyte").write_bytes(idx(np.zeros(3, np.uint8)))
    with pytest.raises(DataError, match="holds 3 rows of split test instead of 4"):
        load_images("mnist", "test", mnist)
    for damaged in (path.read_bytes()[:-5], b"", b"<html>404</html>"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"torchvision cannot read .* download it again"):
            load_images("mnist", "test", mnist)
    path.unlink()
    with pytest.raises(DataError, match="lacks split test"):
        load_images("mnist", "test", mnist)


def write_cifar(root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few pictures as torchvision unpickles them, and their MD5 where it expects that of the real files."""
    reader = getattr(datasets, name.upper())
    label = "labels" if name == "cifar10" else "fine_labels"

    def write(file: str, content: object) -> str:
        path = root / reader.base_folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(pickle.dumps(content))
        return hashlib.md5(path.read_bytes()).hexdigest()

    for split, files in (("train", reader.train_list), ("test", reader.test_list)):
        parts = np.split(pixels(split, 3072), len(files))
        made = [
            [file, write(file, {"data": part, label: list(range(len(part)))})]
            for (file, _), part in zip(files, parts, strict=True)
        ]
        monkeypatch.setattr(reader, f"{split}_list", made)
    names = reader.meta["key"]
    meta = {**reader.meta, "md5": write(reader.meta["filename"], {names: ["a", "b"]})}
    monkeypatch.setattr(reader, "meta", meta)


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_cifar_is_read_where_torchvision_left_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalogue.DATASETS, name, dataclasses.replace(DATASETS[name], sizes=FEW))
    monkeypatch.setenv("SGD_SUITE_CACHE", str(tmp_path / "cache"))
    write_cifar(tmp_path, name, monkeypatch)
    images = load_images(name, "train", tmp_path)
    assert torch.equal(images.inputs, torch.from_numpy(pixels("train", 3, 32, 32)))
    each = 20 // len(getattr(datasets, name.upper()).train_list)
    assert images.targets.tolist() == list(range(each)) * (20 // each)
    next(tmp_path.glob("cifar-*/*test*")).write_bytes(b"another file")
    with pytest.raises(DataError, match="corrupted"):
        load_images(name, "test", tmp_path)


def test_resnet50_has_the_parameters_and_shapes_of_torchvisions() -> None:
    """The paper's has its strides in the first convolution of a block, which changes no shape of a parameter."""
    with torch.device("meta"):
        ours, reference = construct("crossbow_resnet50"), models.resnet50()
        sizes = [sorted(tuple(p.shape) for p in network.parameters()) for network in (ours, reference)]
        assert sizes[0] == sizes[1]
        assert sum(p.numel() for p in reference.parameters()) == 25_557_032
        batch = torch.empty(2, 3, 224, 224)
        assert ours(batch).shape == reference(batch).shape == (2, 1000)


@pytest.mark.parametrize(("crop", "margin"), [(32, 4), (27, 0)])
def test_crops_and_flips_are_torchvisions_given_the_same_numbers(crop: int, margin: int) -> None:
    batches, batch = torch.tensor([3, 8]), 6
    pictures = torch.rand(2, batch, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    rule = CropFlip(crop, margin)
    found = rule(pictures, 7, batches)
    top, left, mirror = rule.choices(32, 32, batch, 7, batches)
    assert mirror.any()
    assert not mirror.all()
    for n in range(2):
        for b in range(batch):
            padded = theirs.pad(pictures[n, b], [margin])
            cut = theirs.crop(padded, int(top[n, b]), int(left[n, b]), crop, crop)
            assert torch.equal(found[n, b], theirs.horizontal_flip(cut) if mirror[n, b] else cut)
    assert torch.equal(centre_crop(pictures, 28), theirs.center_crop(pictures, [28, 28]))
