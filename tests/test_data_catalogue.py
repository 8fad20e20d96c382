"""The catalogue of data sets: what is absent, fetched or listed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from suite.data.catalogue import (
    DATASETS,
    DataError,
    available,
    cache_folder,
    data_root,
    fetch,
    locate,
    missing,
    split_files,
)
from suite.data.images import load_images

CHECKOUT = Path(__file__).resolve().parents[1]
STORED = [name for name, info in DATASETS.items() if not info.embedded]
MADE = (3, 0, 5, 1, 4, 2)  # neither rising nor falling, as the files of a folder may be listed


def test_an_absent_set_says_where_it_was_looked_for_and_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cifar10 is not below .*data fetch cifar10.*--data or SGD_SUITE_DATA"):
        load_images("cifar10", "train", tmp_path, tmp_path)
    assert locate("cifar10", tmp_path) is None
    with pytest.raises(DataError, match="there are mnist, cifar10"):
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


@pytest.mark.parametrize("name", sorted(set(DATASETS) - set(STORED)))
def test_an_embedded_set_is_here_and_takes_no_room(name: str, tmp_path: Path) -> None:
    assert available(name, tmp_path)[0]
    assert fetch(name, tmp_path) is None
    assert DATASETS[name].bytes == 0


def test_a_download_without_the_files_of_the_set_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: None)
    with pytest.raises(DataError, match=r"holds no file matching mnist/train-\*.parquet, mnist/test-\*.parquet"):
        fetch("mnist", tmp_path)


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


def test_folders_are_those_named_and_else_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "SGD_SUITE_CACHE", "SGD_SUITE_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "sgd-scaling-suite"
    assert data_root() == cache_folder() / "data"
    monkeypatch.setenv("XDG_CACHE_HOME", "~/kept")
    assert cache_folder() == tmp_path / "kept" / "sgd-scaling-suite"
    monkeypatch.setenv("SGD_SUITE_CACHE", "~/decoded")
    assert cache_folder() == tmp_path / "decoded"
    assert data_root() == tmp_path / "decoded" / "data"
    monkeypatch.setenv("SGD_SUITE_DATA", "~/sets")
    assert data_root() == tmp_path / "sets"
    assert cache_folder(tmp_path / "here") == data_root(tmp_path / "here") == tmp_path / "here"


@pytest.mark.parametrize(
    ("name", "file"), [("mnist", "train-{:05}-of-00006.parquet"), ("europarl", "{}.de"), ("europarl", "part{}.en")]
)
def test_files_are_read_in_the_order_of_their_names(name: str, file: str, tmp_path: Path) -> None:
    for part in MADE:
        (tmp_path / file.format(part)).touch()
    assert [path.name for path in split_files(name, "train", tmp_path)] == [file.format(n) for n in range(6)]


def test_a_corpus_is_its_two_languages_and_nothing_beside_them(tmp_path: Path) -> None:
    for name in ("b.en", "README.md", "a.de"):
        (tmp_path / name).touch()
    (tmp_path / "old.de").mkdir()
    assert [path.name for path in split_files("newstest2013", "test", tmp_path)] == ["a.de", "b.en"]
    assert split_files("wmt14_sample", "train", tmp_path) == []  # which of its two splits would they be?


@pytest.mark.parametrize("word", ["test", "validation"])  # of the suite and of WMT14
def test_of_several_corpora_that_of_the_split_is_taken(word: str, tmp_path: Path) -> None:
    for name in ("other.de", "other.en", f"news.{word}.de", f"news.{word}.en"):
        (tmp_path / name).touch()
    found = [path.name for path in split_files("newstest2013", "test", tmp_path)]
    assert found == [f"news.{word}.de", f"news.{word}.en"]


def test_one_folder_of_classes_is_taken_whatever_lies_beside_the_classes(tmp_path: Path) -> None:
    for name in ("val", "validation"):
        (tmp_path / name / "n01").mkdir(parents=True)
    (tmp_path / "val" / "README").touch()
    assert split_files("imagenet", "validation", tmp_path) == [tmp_path / "val"]


def test_listing_sets_needs_neither_torch_nor_datasets(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from suite.data.catalogue import DATASETS, available\n"
        "[available(name, Path(sys.argv[1])) for name in DATASETS]\n"
        "print([name for name in ('torch', 'datasets', 'numpy', 'pyarrow') if name in sys.modules])"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    assert subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("name", [name for name, info in DATASETS.items() if info.embedded and info.kind == "images"])
def test_embedded_pictures_are_what_the_catalogue_says(name: str) -> None:
    info = DATASETS[name]
    for split, size in info.sizes.items():
        images = load_images(name, split)
        assert images.inputs.shape == (size, *(info.shape or ()))
        assert images.targets.unique().tolist() == list(range(info.classes))


def test_the_colours_stand_for_either_cifar() -> None:
    assert {DATASETS[name].shape for name in ("cifar10", "cifar100", "colours")} == {(3, 32, 32)}


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
