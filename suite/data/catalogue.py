"""The data sets that the papers train on, and where a machine keeps them.

Names and layouts are the Hugging Face Hub's, so a folder filled by any client of the Hub works as it is:
``DIR/uoft-cs/cifar10/plain_text/train-00000-of-00001.parquet``. Nothing here imports torch or ``datasets``,
and nothing here touches the network: :mod:`suite.data.fetch` does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from suite.tables import Table, UnknownName


class DataError(ValueError):
    """A data set is missing, damaged or not what it claims to be; the message names it and the way out."""


@dataclass(frozen=True)
class DatasetInfo:
    """What is known about a data set before any of it is read.

    ``sizes`` are the rows expected of each split; ``files`` renames a split where its files are called
    otherwise; ``downloads`` are the files of each split that torchvision's own download leaves below its root, and
    ``class_folders`` the names that a split of an ``ImageFolder`` may have; ``shape`` is [channels, height, width],
    None for text and for images of varying size; ``bytes`` is about what the files take on disk, 0 for an embedded
    set.
    """

    name: str
    title: str
    kind: Literal["images", "pairs", "characters"]
    sizes: Mapping[str, int]
    embedded: bool = False
    hub: str | None = None
    revision: str | None = None  # commit of the Hub repository; None: not on the Hub, or none is vouched for
    config: str = ""  # folder of the parquet files below the repository's
    sha256: Mapping[str, str] = field(default_factory=dict)  # of the files at that commit, by name; empty: not known
    columns: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    shape: tuple[int, int, int] | None = None
    classes: int = 0
    bytes: int = 0
    folders: tuple[str, ...] = ()  # other folders below the root that are searched too
    downloads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    class_folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    part_of: str = ""  # the larger set that this one is taken from
    load: Callable[[str], tuple[Any, Any]] | None = None  # of a split, where a package of one's own brings the set
    gaps: bool = False  # text whose export holds pairs with an empty side, which are left out

    def prefix(self, split: str) -> str:
        """How the names of a split's files begin.

        Raises:
            DataError: the set has no such split.
        """
        if split not in self.sizes:
            raise DataError(f"{self.name}: split {split!r} does not exist; it has {', '.join(self.sizes)}")
        return self.files.get(split, split)


_ENTRIES = (
    DatasetInfo(
        "mnist",
        "MNIST handwritten digits",
        "images",
        {"train": 60_000, "test": 10_000},
        hub="ylecun/mnist",
        revision="77f3279092a1c1579b2250db8eafed0ad422088c",
        config="mnist",
        sha256={
            "train-00000-of-00001.parquet": "f2c01285a9f89399335b00ee4e8d499dc4e46db5e39c74903ce5618d895eb3bf",
            "test-00000-of-00001.parquet": "d49fcf556ce25b002b302e318ce4a11098bbfe5d4499c3f35d7c72297c52374b",
        },
        columns=("image", "label"),
        shape=(1, 28, 28),
        classes=10,
        bytes=18_157_506,
        downloads={
            "train": ("MNIST/raw/train-images-idx3-ubyte", "MNIST/raw/train-labels-idx1-ubyte"),
            "test": ("MNIST/raw/t10k-images-idx3-ubyte", "MNIST/raw/t10k-labels-idx1-ubyte"),
        },
    ),
    DatasetInfo(
        "cifar10",
        "CIFAR-10",
        "images",
        {"train": 50_000, "test": 10_000},
        hub="uoft-cs/cifar10",
        revision="0b2714987fa478483af9968de7c934580d0bb9a2",
        config="plain_text",
        sha256={
            "train-00000-of-00001.parquet": "8428b53a88a11ac374111006708df51469e315a22ac6d66470afd9c78d2ae883",
            "test-00000-of-00001.parquet": "841389e6f2d64f28bf17310e430aebac20ec3ba611a3c5e231dc93c645ce84de",
        },
        columns=("img", "label"),
        shape=(3, 32, 32),
        classes=10,
        bytes=143_646_105,
        downloads={
            "train": tuple(f"cifar-10-batches-py/data_batch_{part}" for part in range(1, 6)),
            "test": ("cifar-10-batches-py/test_batch",),
        },
    ),
    DatasetInfo(
        "cifar100",
        "CIFAR-100 with its 100 fine labels",
        "images",
        {"train": 50_000, "test": 10_000},
        hub="uoft-cs/cifar100",
        revision="aadb3af77e9048adbea6b47c21a81e47dd092ae5",
        config="cifar100",
        sha256={
            "train-00000-of-00001.parquet": "694865d6b990e234804f01268586c41e88bcbbb75e20858432c05ad4081aca23",
            "test-00000-of-00001.parquet": "98776c529bb146a9c791229df74a5cf076be9b43d82dbbd334b6a7788d73dc68",
        },
        columns=("img", "fine_label"),
        shape=(3, 32, 32),
        classes=100,
        bytes=142_291_368,
        downloads={"train": ("cifar-100-python/train",), "test": ("cifar-100-python/test",)},
    ),
    DatasetInfo(
        "imagenet",
        "ImageNet (ILSVRC 2012), streamed",
        "images",
        {"train": 1_281_167, "validation": 50_000},
        hub="ILSVRC/imagenet-1k",
        revision="49e2ee26f3810fb5a7536bbf732a7b07389a47b5",
        config="data",
        columns=("image", "label"),
        classes=1000,
        bytes=166_000_000_000,
        folders=("imagenet", "."),
        class_folders={"train": ("train",), "validation": ("val", "validation")},
    ),
    DatasetInfo(
        "digits",
        "scikit-learn's 8x8 digits, enlarged by whole pixels",
        "images",
        {"train": 1_437, "test": 360},
        embedded=True,
        shape=(1, 28, 28),
        classes=10,
    ),
    DatasetInfo(
        "colours",
        "generated coloured gratings in CIFAR's shape",
        "images",
        {"train": 4_000, "test": 1_000},
        embedded=True,
        shape=(3, 32, 32),
        classes=10,
    ),
    DatasetInfo(
        "europarl",
        "Europarl, German to English",
        "pairs",
        {"train": 1_961_119},
        hub="Helsinki-NLP/europarl",
        config="de-en",
        columns=("translation",),
        bytes=291_376_506,
        folders=("europarl",),
        gaps=True,
    ),
    DatasetInfo(
        "europarl_sample",
        "seven sittings of Europarl, two of them held out, German to English",
        "pairs",
        {"train": 14_112, "validation": 947, "test": 922},
        config="de-en",
        columns=("translation",),
        bytes=2_060_000,
        folders=("europarl-sample",),
        part_of="europarl",
    ),
    DatasetInfo(
        "newstest2013",
        "newstest2013, German to English",
        "pairs",
        {"test": 3_000},
        hub="wmt/wmt14",
        revision="b199e406369ec1b7634206d3ded5ba45de2fe696",
        config="de-en",
        columns=("translation",),
        files={"test": "validation"},  # WMT14 hands out newstest2013 as its validation split
        bytes=474_000,
        folders=("newstest2013",),
    ),
    DatasetInfo(
        "multi30k",
        "Multi30k task 1, German to English captions",
        "pairs",
        {"train": 29_000, "validation": 1_014, "test": 1_000},
        config="de-en",
        columns=("translation",),
        bytes=2_500_000,
        folders=("multi30k",),
    ),
    DatasetInfo(
        "multi30k_characters",
        "Multi30k's English captions one after another, in windows of 64 characters",
        "characters",
        {"train": 28_144, "test": 969},
        config="de-en",
        shape=(1, 1, 64),
        classes=96,
        bytes=2_500_000,
        folders=("multi30k",),
        part_of="multi30k",
    ),
    DatasetInfo(
        "wmt14_sample",
        "10,000 tokenised pairs of the WMT14 mixture, German to English",
        "pairs",
        {"train": 9_999, "validation": 50},
        config="de-en",
        columns=("translation",),
        bytes=2_000_000,
        folders=("wmt14-sample",),
    ),
    DatasetInfo(
        "number_phrases",
        "generated number words, German to English",
        "pairs",
        {"train": 4_000, "validation": 500, "test": 500},
        embedded=True,
    ),
)

DATASETS: Table[DatasetInfo] = Table("data set", {info.name: info for info in _ENTRIES})


def dataset(name: str) -> DatasetInfo:
    """The entry called ``name``.

    Raises:
        DataError: there is none.
    """
    try:
        return DATASETS[name]
    except UnknownName as error:
        raise DataError(str(error)) from None


def cache_folder(cache: Path | None = None) -> Path:
    """Where decoded sets are kept: ``cache``, else ``$SGD_SUITE_CACHE``, else below the user's cache."""
    if cache is not None:
        return Path(cache)
    named = os.environ.get("SGD_SUITE_CACHE")
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "sgd-scaling-suite"


def data_root(root: Path | None = None) -> Path:
    """Where data sets are looked for: ``root``, else ``$SGD_SUITE_DATA``, else below the cache folder."""
    if root is not None:
        return Path(root)
    named = os.environ.get("SGD_SUITE_DATA")
    return Path(named).expanduser() if named else cache_folder() / "data"


def locate(name: str, root: Path | None = None) -> Path | None:
    """The folder that holds files of the set, or None if there is none or the set is embedded.

    Cheap: lists folders, opens no file.
    """
    info = dataset(name)
    if info.embedded:
        return None
    base = data_root(root)
    for folder in (*((info.hub,) if info.hub else ()), *info.folders):
        for place in (base / folder / info.config, base / folder):
            if any(split_files(name, split, place) for split in info.sizes):
                return place
    return base if any(split_files(name, split, base) for split in info.downloads) else None


def split_files(name: str, split: str, folder: Path) -> list[Path]:
    """The files of one split in ``folder``, in reading order: parquet shards, or a text file per language.

    Of image sets also what torchvision downloaded, or the one folder that holds a folder per class.

    Text files are ``*.de`` and ``*.en``; where a folder holds several corpora, those whose name contains the
    split's win. The lists of a split that is absent, and of a folder that does not exist, are empty.
    """
    info = dataset(name)
    prefix = info.prefix(split)
    shards = sorted(folder.glob(f"{prefix}-*.parquet"))
    if shards:
        return shards
    if info.kind == "images":
        named = [folder / name for name in info.downloads.get(split, ())]
        if named and all(file.is_file() for file in named):
            return named
        places = [folder / name for name in info.class_folders.get(split, ())]
        return [place for place in places if any(entry.is_dir() for entry in place.glob("*"))][:1]
    texts = [path for path in sorted(folder.glob("*")) if path.suffix in (".de", ".en") and path.is_file()]
    named = [path for path in texts if split in path.name.split(".") or prefix in path.name.split(".")]
    if named or len(info.sizes) > 1:
        return named
    return texts


def present_files(name: str, split: str, root: Path | None = None) -> tuple[Path, list[Path]]:
    """The folder of a set and the files of one split in it. Raises DataError where they are not there."""
    folder = locate(name, root)
    files = split_files(name, split, folder) if folder else []
    if folder is None or not files:
        raise DataError(f"{name}: {folder} lacks split {split}" if folder else missing(name, root))
    return folder, files


def available(name: str, root: Path | None = None) -> tuple[bool, str]:
    """Whether every split of the set is here, and where, or what is missing and how to get it. Cheap."""
    info = dataset(name)
    if info.embedded:
        return True, f"{name} is generated, nothing to download"
    folder = locate(name, root)
    if folder is None:
        return False, missing(name, root)
    absent = [split for split in info.sizes if not split_files(name, split, folder)]
    if absent:
        return False, f"{name}: {folder} lacks the files of split {', '.join(absent)}; copy it again"
    return True, str(folder)


def missing(name: str, root: Path | None = None) -> str:
    """One sentence on where the set was looked for and how to get it."""
    info = dataset(name)
    place = f"{info.hub or info.folders[0]}/{info.config}"
    cure = ""
    if info.hub and info.revision:
        cure = f"run `sgd-suite data fetch {name}` ({max(info.bytes // 10**6, 1):,} MB), or "
    cure += f"put its files into {place} below a folder named with --data or SGD_SUITE_DATA"
    if info.downloads:
        cure += f" or point it at what torchvision.datasets.{info.name.upper()} downloaded"
    if info.class_folders:
        cure += ", or a folder per class into imagenet/train and imagenet/val there"
    return f"{name} is not below {data_root(root)}; {cure}"
