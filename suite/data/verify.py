"""Whether a data set is what it claims to be: sizes, labels, and the statistics known of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from suite.data.catalogue import DataError, DatasetInfo, dataset, locate, split_files
from suite.data.images import Images, load_images
from suite.data.text import load_pairs

# mean and deviation of the training pixels over 255, per channel, to four decimals
STATISTICS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "mnist": ((0.1307,), (0.3081,)),
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    "cifar100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
}
STATISTICS_TOLERANCE = 1e-4  # the values above are printed to four decimals, some of them truncated


@dataclass(frozen=True)
class Check:
    """One thing looked at."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Report:
    """What :func:`verify` found."""

    name: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)


def verify(name: str, root: Path | None = None, cache: Path | None = None) -> Report:
    """Read a data set and compare it with what is known of it (of ImageNet, footers and first pictures).

    A missing or damaged set is a failed check, not an exception; only an unknown name raises DataError.
    """
    info = dataset(name)
    checks: list[Check] = []
    try:
        if info.kind == "pairs":
            checks += _pairs(info, root)
        elif info.shape is None:
            checks += _streamed(info, root)
        else:
            for split in info.sizes:
                checks += _images(load_images(name, split, root, cache))
    except DataError as error:
        checks.append(Check("readable", False, str(error)))
    return Report(name, tuple(checks))


def _images(images: Images) -> list[Check]:
    info = dataset(images.name)
    expected = (info.sizes[images.split], *(info.shape or ()))
    size = tuple(images.inputs.shape)
    counts = images.targets.bincount(minlength=info.classes)
    checks = [
        Check(f"{images.split} size", size == expected, f"{list(size)}, expected {list(expected)}"),
        Check(
            f"{images.split} labels",
            len(counts) == info.classes and bool((counts > 0).all()),
            f"{int((counts > 0).sum())} of {info.classes} classes, {int(counts.min())} or more of each",
        ),
        Check(f"{images.split} checksum", True, images.checksum),
    ]
    if images.split == "train" and images.name in STATISTICS:
        means, deviations = STATISTICS[images.name]
        levels = torch.arange(256, dtype=torch.float64) / 255
        for channel, (mean, deviation) in enumerate(zip(means, deviations, strict=True)):
            # a histogram gives exact moments without a float copy of the whole set
            share = images.inputs[:, channel].flatten().bincount(minlength=256).to(torch.float64)
            share /= share.sum()
            found_mean = float((share * levels).sum())
            found_deviation = float((share * (levels - found_mean) ** 2).sum().sqrt())
            checks.append(
                Check(
                    f"channel {channel} statistics",
                    abs(found_mean - mean) < STATISTICS_TOLERANCE
                    and abs(found_deviation - deviation) < STATISTICS_TOLERANCE,
                    f"mean {found_mean:.4f}, deviation {found_deviation:.4f}; known {mean}, {deviation}",
                )
            )
    return checks


def _pairs(info: DatasetInfo, root: Path | None) -> list[Check]:
    checks = []
    for split, size in info.sizes.items():
        count = len(load_pairs(info.name, split, root))
        # releases of a corpus with gaps differ, and its gaps are left out: a tenth missing is a broken copy
        right = 0.9 * size <= count <= 1.1 * size if info.gaps else count == size
        checks.append(Check(f"{split} size", right, f"{count:,} pairs, expected {size:,}"))
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
