"""The catalogue of data sets: what is absent, fetched or listed."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from suite.commands import data as command
from suite.data.catalogue import DATASETS, DataError, available, locate, missing
from suite.data.fetch import fetch
from suite.data.images import load_images

CHECKOUT = Path(__file__).resolve().parents[1]
STORED = [name for name, info in DATASETS.items() if not info.embedded]


def test_an_absent_set_says_where_it_was_looked_for_and_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cifar10 is not below .*data fetch cifar10.*--data or SGD_SUITE_DATA"):
        load_images("cifar10", "train", tmp_path)
    assert locate("cifar10", tmp_path) is None
    with pytest.raises(ValueError, match="there are mnist, cifar10"):
        load_images("svhn", "train", tmp_path)
    with pytest.raises(DataError, match="split 'dev' does not exist; it has train, test"):
        load_images("digits", "dev")


def test_a_failed_download_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def offline(*_: object, **__: object) -> None:
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(DataError, match=r"ylecun/mnist at 77f3279092a1 could not be downloaded.*not known"):
        fetch("mnist", tmp_path)
    with pytest.raises(DataError, match="no revision of it is pinned"):
        fetch("multi30k", tmp_path)


@pytest.mark.parametrize("name", STORED)
def test_only_a_set_whose_revision_is_pinned_is_fetched(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.snapshot_download", pytest.fail)
    pinned = DATASETS[name].revision is not None
    assert (f"data fetch {name}" in missing(name, tmp_path)) == pinned
    assert available(name, tmp_path) == (False, missing(name, tmp_path))
    if not pinned:
        with pytest.raises(DataError, match=f"{name} cannot be fetched"):
            fetch(name, tmp_path)


@pytest.mark.parametrize("name", ["mnist", "cifar10", "cifar100"])
def test_a_downloaded_file_is_that_of_the_pinned_revision(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one, as a mirror may hand out, is moved to where nothing reads it."""
    info = DATASETS[name]
    content = {file: file.encode() for file in info.sha256}
    assert {file.split("-")[0] for file in content} == set(info.sizes)

    def download(*_: object, local_dir: Path, **__: object) -> None:
        (local_dir / info.config).mkdir(parents=True, exist_ok=True)
        for file, data in content.items():
            (local_dir / info.config / file).write_bytes(data)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    digests = {file: hashlib.sha256(data).hexdigest() for file, data in content.items()}
    monkeypatch.setitem(DATASETS, name, replace(info, sha256=digests))
    assert fetch(name, tmp_path) == tmp_path / str(info.hub) / info.config
    content["train-00000-of-00001.parquet"] = b"another"
    with pytest.raises(DataError, match=r"train-00000-of-00001\.parquet has the SHA-256 .* HF_ENDPOINT"):
        fetch(name, tmp_path)
    assert not available(name, tmp_path)[0]


@pytest.mark.parametrize("name", [name for name in STORED if DATASETS[name].revision])
def test_a_set_without_digests_is_said_to_be_unchecked(name: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(command, "fetch", lambda name, root: tmp_path)
    command.fetch_set(name)
    told = capsys.readouterr()
    assert told.out == f"{tmp_path}\n"
    assert ("no SHA-256" in told.err) == (not DATASETS[name].sha256)


@pytest.mark.parametrize("name", [name for name, info in DATASETS.items() if info.embedded and info.kind == "images"])
def test_embedded_pictures_are_what_the_catalogue_says(name: str) -> None:
    info = DATASETS[name]
    for split, size in info.sizes.items():
        images = load_images(name, split)
        assert images.inputs.shape == (size, *(info.shape or ()))
        assert images.targets.unique().tolist() == list(range(info.classes))


def test_the_documentation_has_the_sizes_of_all_sets():
    page = (CHECKOUT / "docs" / "data.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| `")
    ]
    told = {row[0].strip("`"): row[1:] for row in rows}
    number = lambda value: f"{value:,}" if value else ""
    for name, info in DATASETS.items():
        sizes = [number(info.sizes.get(split)) for split in ("train", "validation", "test")]
        assert told.pop(name) == [info.title + ", embedded" * info.embedded, *sizes, number(info.classes)], name
    assert not told
