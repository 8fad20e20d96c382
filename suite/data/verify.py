"""Whether a data set is what it claims to be: sizes, labels, and the digest known of its contents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from suite.data.catalogue import DATASETS, DataError, DatasetInfo, locate, split_files
from suite.data.images import Images, load_images
from suite.data.text import load_pairs


@dataclass(frozen=True)
class Check:
    """One thing looked at."""

    name: str
    passed: bool
    detail: str


def verify(name: str, root: Path | None = None) -> list[Check]:
    """Read a data set and compare it with what is known of it (of ImageNet, footers and first pictures).

    A missing or damaged set is a failed check, not an exception; only an unknown name raises UnknownName.
    """
    info = DATASETS[name]
    checks: list[Check] = []
    try:
        if info.kind == "pairs":
            checks += _pairs(info, root)
        elif info.shape is None:
            checks += _streamed(info, root)
        else:
            for split in info.sizes:
                checks += _images(load_images(name, split, root))
    except DataError as error:
        checks.append(Check("readable", False, str(error)))
    return checks


def _images(images: Images) -> list[Check]:
    info = DATASETS[images.name]
    expected = (info.sizes[images.split], *(info.shape or ()))
    size = tuple(images.inputs.shape)
    counts = images.targets.flatten().bincount(minlength=info.classes)
    labelled = zip(images.inputs.numpy(), images.targets.numpy(), strict=True)
    examples = (picture.tobytes() + label.tobytes() for picture, label in labelled)
    some = info.kind == "characters"  # not every character need occur
    return [
        Check(f"{images.split} size", size == expected, f"{list(size)}, expected {list(expected)}"),
        Check(
            f"{images.split} labels",
            len(counts) == info.classes and (some or bool((counts > 0).all())),
            f"{int((counts > 0).sum())} of {info.classes} classes, {int(counts.min())} or more of each",
        ),
        _content(images.name, images.split, examples),
        Check(f"{images.split} checksum", True, f"{images.checksum} (of this copy, in its order)"),
    ]


def content(examples: Iterable[bytes]) -> str:
    """SHA-256 of the sorted SHA-256 of all examples: the same for the same examples in whatever order."""
    return hashlib.sha256(b"".join(sorted(hashlib.sha256(example).digest() for example in examples))).hexdigest()


def _content(name: str, split: str, examples: Iterable[bytes]) -> Check:
    """Whether the examples are those that are known of the split; passed where none are known."""
    found, known = content(examples), DATASETS[name].content.get(split)
    detail = (
        "as published" if found == known else f"{found}, expected {known}" if known else f"{found}, none is known"
    )
    return Check(f"{split} content", known in (None, found), detail)


def _pairs(info: DatasetInfo, root: Path | None) -> list[Check]:
    checks = []
    for split, size in info.sizes.items():
        pairs = load_pairs(info.name, split, root)
        count = len(pairs)
        # releases of a corpus with gaps differ, and its gaps are left out: a tenth missing is a broken copy
        right = 0.9 * size <= count <= 1.1 * size if info.gaps else count == size
        checks.append(Check(f"{split} size", right, f"{count:,} pairs, expected {size:,}"))
        checks.append(_content(info.name, split, ("\0".join(pair).encode() for pair in pairs)))
    return checks


def _streamed(info: DatasetInfo, root: Path | None) -> list[Check]:
    from suite.data.imagenet import ImageNetStream

    checks = []
    folder = locate(info.name, root)
    for split, size in info.sizes.items():
        if folder is not None and not split_files(info.name, split, folder):
            checks.append(Check(f"{split} size", False, f"{folder} lacks it"))
            continue
        with ImageNetStream(split, 1, root, processes=0, ahead=1) as stream:
            checks.append(Check(f"{split} size", stream.examples == size, f"{stream.examples:,} rows of {size:,}"))
            next(stream.batches())
            checks.append(Check(f"{split} readable", True, "the first pictures decode"))
    return checks
