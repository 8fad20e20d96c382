"""Image sets: reading, decoding, caching, and what happens to damaged files."""

from __future__ import annotations

import dataclasses
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from suite.data import cache, catalogue
from suite.data import verify as verify_module
from suite.data.catalogue import DATASETS, DataError, available
from suite.data.fetch import fetch
from suite.data.images import load_images
from suite.data.verify import verify

CHECKOUT = Path(__file__).resolve().parents[1]
FEW = {"train": 40, "test": 12}


def pictures(count: int, shape: tuple[int, int, int], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def encoded(pixels: np.ndarray) -> dict[str, object]:
    stream = io.BytesIO()
    Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)).save(stream, "PNG")
    return {"bytes": stream.getvalue(), "path": None}


def write_shard(path: Path, columns: tuple[str, ...], pixels: np.ndarray, labels: list[object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({columns[0]: [encoded(each) for each in pixels], columns[1]: labels})
    pq.write_table(table, path, row_group_size=8)


@pytest.fixture(params=["mnist", "cifar10", "cifar100"])
def small(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    """A set of 40 and 12 pictures in the layout of a real one, its training split in two shards."""
    return make_small(request.param, tmp_path, monkeypatch)


@pytest.fixture
def mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    return make_small("mnist", tmp_path, monkeypatch)


def make_small(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    info = dataclasses.replace(DATASETS[name], sizes=FEW)
    monkeypatch.setitem(catalogue.DATASETS, name, info)
    monkeypatch.setenv("SGD_SUITE_CACHE", str(root / "cache"))
    assert info.hub is not None
    assert info.shape is not None
    for split, files in {"train": 2, "test": 1}.items():
        pixels = pictures(FEW[split], info.shape, seed=files)
        for part, chunk in enumerate(np.split(pixels, files)):
            labels: list[object] = [(part + i) % info.classes for i in range(len(chunk))]
            path = root / info.hub / info.config / f"{split}-{part:05}-of-{files:05}.parquet"
            write_shard(path, info.columns, chunk, labels)
    return name, root


def shard(root: Path, pattern: str = "train-00001-*") -> Path:
    return next(root.rglob(pattern))


def test_pixels_and_labels_arrive_as_stored(small: tuple[str, Path], tmp_path: Path) -> None:
    name, root = small
    info = DATASETS[name]
    assert info.shape is not None
    for _ in range(2):  # decoded, then out of the cache
        images = load_images(name, "train", root)
        assert images.inputs.dtype == torch.uint8
        assert images.targets.dtype == torch.int64
        assert torch.equal(images.inputs, torch.from_numpy(pictures(40, info.shape, 2)))
        labels = [(part + i) % info.classes for part in range(2) for i in range(20)]
        assert images.targets.tolist() == labels
        assert images.classes == info.classes


def test_a_changed_source_is_decoded_again(mnist: tuple[str, Path], tmp_path: Path) -> None:
    name, root = mnist
    load_images(name, "test", root)
    other = pictures(12, (1, 28, 28), 99)
    write_shard(shard(root, "test-*"), DATASETS[name].columns, other, [0] * 12)
    assert torch.equal(load_images(name, "test", root).inputs, torch.from_numpy(other))


def spoil_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def spoil_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def spoil_all(path: Path) -> None:
    path.write_bytes(b"")


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


@pytest.mark.parametrize("spoil", [spoil_end, spoil_middle, spoil_all, Path.unlink])
@pytest.mark.parametrize("ending", [".inputs.npy", ".targets.npy", ".json"])
def test_a_damaged_cache_is_rebuilt(mnist: tuple[str, Path], tmp_path: Path, spoil: object, ending: str) -> None:
    name, root = mnist
    before = load_images(name, "test", root)
    kept = before.inputs.clone(), before.targets.clone()
    del before
    path = next((tmp_path / "cache").rglob(f"*{ending}"))
    spoil(path)
    after = load_images(name, "test", root)
    assert torch.equal(after.inputs, kept[0])
    assert torch.equal(after.targets, kept[1])
    assert not list((tmp_path / "cache").rglob(".*.npy*"))  # no partial file stays behind


def test_writing_to_a_loaded_set_leaves_the_cache_alone(mnist: tuple[str, Path], tmp_path: Path) -> None:
    name, root = mnist
    load_images(name, "test", root)
    images = load_images(name, "test", root)
    images.inputs.zero_()
    again = load_images(name, "test", root)
    assert torch.equal(again.inputs, torch.from_numpy(pictures(12, (1, 28, 28), 1)))


def test_a_failed_write_leaves_nothing_and_says_so(
    mnist: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    name, root = mnist
    monkeypatch.setattr(cache.np, "save", full)
    with pytest.raises(DataError, match=r"No space left on device.*SGD_SUITE_CACHE"):
        load_images(name, "test", root)
    assert not [path for path in (tmp_path / "cache" / "images").rglob("*") if path.is_file()]


@pytest.mark.processes
def test_two_processes_build_the_cache_at_once(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; import numpy as np; from suite.data.cache import cached\n"
        "folder, gate = Path(sys.argv[1]), Path(sys.argv[2])\n"
        "def decode():\n"
        "    (gate / sys.argv[3]).touch()\n"
        "    while len(list(gate.iterdir())) < 2: pass\n"  # both are inside before either writes
        "    return np.arange(40_000, dtype=np.uint8).reshape(40, 1, 25, 40), np.arange(40)\n"
        "print(cached(folder, 'key', decode).checksum)\n"
    )
    gate = tmp_path / "gate"
    gate.mkdir()
    command = [sys.executable, "-W", "error", "-c", script, str(tmp_path / "cache"), str(gate)]
    running = [
        subprocess.Popen([*command, str(n)], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) for n in range(2)
    ]
    outputs = [process.communicate(timeout=600)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    found = cache.cached(tmp_path / "cache", "key", pytest.fail)
    assert outputs == [found.checksum + "\n"] * 2
    assert np.array_equal(found.targets, np.arange(40))


@pytest.mark.parametrize("spoil", [spoil_end, spoil_all, lengthen])
def test_a_damaged_parquet_file_is_named(mnist: tuple[str, Path], tmp_path: Path, spoil: object) -> None:
    name, root = mnist
    spoil(shard(root))
    with pytest.raises(DataError, match=r"mnist: .*train-00001-of-00002.parquet is damaged"):
        load_images(name, "train", root)
    assert not (tmp_path / "cache").exists()


def rewritten(path: Path, row: int, column: str, value: object) -> None:
    rows = pq.read_table(path).to_pylist()
    rows[row][column] = value
    pq.write_table(pa.Table.from_pylist(rows), path)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("label", 10, "row 5 of .* has label 10 outside 0..9"),
        ("label", None, "row 5 of .* has label None"),
        ("label", -1, "has label -1"),
        ("image", {"bytes": b"\x89PNG\r\n", "path": None}, "row 5 of .* cannot be decoded"),
        ("image", {"bytes": None, "path": "a.png"}, "row 5 of .* holds no encoded picture"),
        ("image", encoded(pictures(1, (1, 28, 27), 0)[0]), "28x27 pixels instead of 28x28"),
    ],
)
def test_a_bad_row_is_named(
    mnist: tuple[str, Path], tmp_path: Path, column: str, value: object, message: str
) -> None:
    name, root = mnist
    rewritten(shard(root), 5, column, value)
    with pytest.raises(DataError, match=message):
        load_images(name, "train", root)


def test_incomplete_sets_are_refused(mnist: tuple[str, Path], tmp_path: Path) -> None:
    name, root = mnist
    path = shard(root)
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 19), path)
    with pytest.raises(DataError, match="holds 39 rows of split train instead of 40"):
        load_images(name, "train", root)
    path.unlink()
    with pytest.raises(DataError, match="shard 1 of 2 is missing"):
        load_images(name, "train", root)
    shard(root, "train-00000-*").unlink()
    with pytest.raises(DataError, match="lacks split train"):
        load_images(name, "train", root)
    assert available(name, root)[0] is False


def test_reading_never_opens_a_connection(
    mnist: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refuse(*where: object, **_: object) -> None:
        asked.append(where)
        raise OSError("no network in this test")

    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(f"socket.{name}", refuse)
    monkeypatch.setattr("socket.socket.connect", refuse)
    load_images("mnist", "train", mnist[1])
    assert not asked


def test_the_network_is_used_when_asked_for_and_only_then(
    mnist: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    name, source = mnist
    asked = []

    def snapshot(hub: str, *, revision: str, local_dir: Path, **_: object) -> None:
        asked.append((hub, revision))
        local_dir.parent.mkdir(parents=True)
        (source / hub).rename(local_dir)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    monkeypatch.setattr("suite.data.fetch._check_digest", lambda *given: None)  # these files are made up
    empty = tmp_path / "empty"
    with pytest.raises(DataError):
        load_images(name, "test", empty)
    assert not asked
    fetch(name, empty)
    assert len(load_images(name, "test", empty).inputs) == 12
    assert asked == [("ylecun/mnist", "77f3279092a1c1579b2250db8eafed0ad422088c")]


@pytest.mark.data
def test_mnist_is_mnist(data_of) -> None:
    report = verify("mnist", data_of("mnist"))
    assert all(check.passed for check in report), report
    pixels = load_images("mnist", "train", data_of("mnist")).inputs.double() / 255
    assert (pixels.mean().item(), pixels.std().item()) == pytest.approx((0.1307, 0.3081), abs=1e-4)
    test = load_images("mnist", "test", data_of("mnist"))
    assert test.targets.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


@pytest.mark.data
@pytest.mark.slow
def test_cifar10_is_cifar10(data_of) -> None:
    report = verify("cifar10", data_of("cifar10"))
    assert all(check.passed for check in report), report
    pixels = load_images("cifar10", "train", data_of("cifar10")).inputs.double() / 255
    assert pixels.mean((0, 2, 3)).tolist() == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4)
    assert pixels.std((0, 2, 3)).tolist() == pytest.approx([0.2470, 0.2435, 0.2616], abs=1e-4)


def test_verify_reports_what_is_wrong(mnist: tuple[str, Path], tmp_path: Path) -> None:
    name, root = mnist
    report = verify(name, root)
    # random pixels are not MNIST's
    assert {check.name for check in report if not check.passed} >= {"train content", "test content"}
    spoil_end(shard(root))
    damaged = verify(name, root)
    assert [check.name for check in damaged] == ["readable"]
    assert "is damaged" in damaged[0].detail
    assert all(check.passed for check in verify("digits"))


@pytest.mark.data
def test_shifted_labels_are_found_and_another_order_is_not_held_against_a_copy(data_of) -> None:
    """All labels one picture further: size, classes, pixels and statistics are those of MNIST."""
    images = load_images("mnist", "test", data_of("mnist"))
    failed = lambda found: [check.name for check in verify_module._images(found) if not check.passed]
    order = torch.randperm(10_000, generator=torch.Generator().manual_seed(0))
    assert failed(images._replace(inputs=images.inputs[order], targets=images.targets[order])) == []
    assert failed(images._replace(targets=images.targets.roll(1))) == ["test content"]
