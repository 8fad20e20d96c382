"""The data sets that the papers train on, and where a machine keeps them.

Names and layouts are the Hugging Face Hub's, so a folder filled by any client of the Hub works as it is:
``DIR/uoft-cs/cifar10/plain_text/train-00000-of-00001.parquet``. Nothing here imports torch or ``datasets``,
and nothing here touches the network: :mod:`suite.data.fetch` does.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from suite.tables import Table


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
    content: Mapping[str, str] = field(default_factory=dict)  # digests of the splits as published, where known
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


def _entries() -> dict[str, DatasetInfo]:
    """The sets of ``catalogue.toml`` by name."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {name: DatasetInfo(name, **_with_tuples(fields)) for name, fields in tables.items()}


def _with_tuples(value: Any) -> Any:
    """The same, its lists as tuples."""
    if isinstance(value, dict):
        return {key: _with_tuples(part) for key, part in value.items()}
    return tuple(value) if isinstance(value, list) else value


DATASETS: Table[DatasetInfo] = Table("data set", _entries())


def cache_folder() -> Path:
    """Where decoded sets are kept: ``$SGD_SUITE_CACHE``, else below the user's cache."""
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
    info = DATASETS[name]
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
    info = DATASETS[name]
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
        raise DataError(f"{name}: {folder} lacks split {split}; copy it again" if folder else missing(name, root))
    return folder, files


def available(name: str, root: Path | None = None) -> tuple[bool, str]:
    """Whether every split of the set is here, and where, or what is missing and how to get it. Cheap."""
    info = DATASETS[name]
    if info.embedded:
        return True, f"{name} is generated, nothing to download"
    try:
        folders = [present_files(name, split, root)[0] for split in info.sizes]
    except DataError as error:
        return False, str(error)
    return True, str(folders[0])


def missing(name: str, root: Path | None = None) -> str:
    """One sentence on where the set was looked for and how to get it."""
    info = DATASETS[name]
    place = f"{info.hub or info.folders[0]}/{info.config}"
    cure = ""
    if info.hub and info.revision:
        cure = f"run `sgd-suite data fetch {name}` ({max(info.bytes // 10**6, 1):,} MB), or "
    cure += f"put its files into {place} below a folder named with --data or SGD_SUITE_DATA"
    if info.downloads:
        cure += f" or point it at what torchvision.datasets.{info.name.upper()} downloaded"
    if info.class_folders:
        cure += ", or a folder per class into imagenet/train and imagenet/val there"
    if root and not root.is_dir():
        return f"{name} is missing, since there is no folder {root}; {cure}"
    return f"{name} is not below {data_root(root)}; {cure}"
