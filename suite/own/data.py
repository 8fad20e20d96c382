"""Any data set of labelled examples as arrays, and what is known of it without reading it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from suite.data.catalogue import DATASETS, DataError, DatasetInfo
from suite.lazy import np

SPLITS = ("train", "test")
Splits = Callable[[], tuple[Any, Any]]  # training and test examples


@dataclass(frozen=True)
class Facts:
    """What plans need of a data set: digest of its content, examples by split, shape and kind of one, classes."""

    digest: str
    sizes: dict[str, int]
    shape: tuple[int, ...]
    kind: str  # "uint8" or "float32"
    classes: int


def facts(name: str, data: Splits, kept: Path) -> Facts:
    """The facts in the file ``kept``, or else those of the data, which are then written there.

    Raises DataError where the data cannot be read or the file is none of these.
    """
    if kept.exists():
        try:
            found = Facts(**json.loads(kept.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{kept} does not hold the facts of {name}; delete it, they are found anew") from error
        return replace(found, shape=tuple(found.shape))
    from suite.data.images import content_digest

    train, test = (arrays(split, name) for split in _called(name, data))
    sizes = {split: len(targets) for split, (_, targets) in zip(SPLITS, (train, test), strict=True)}
    classes = int(max(train[1].max(), test[1].max())) + 1
    found = Facts("", sizes, train[0].shape[1:], str(train[0].dtype), classes)
    register(name, data, found)
    found = replace(found, digest=content_digest(name))
    kept.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    return found


def register(name: str, data: Splits, known: Facts) -> None:
    """Let settings name the data set."""
    load = lambda split: arrays(_called(name, data)[SPLITS.index(split)], name)
    shape: Any = known.shape
    DATASETS[name] = DatasetInfo(
        name, name, "images", known.sizes, embedded=True, shape=shape, classes=known.classes, load=load
    )


def _called(name: str, data: Splits) -> tuple[Any, Any]:
    try:
        train, test = data()
    except Exception as error:
        raise DataError(f"{name}: its data cannot be read ({type(error).__name__}: {error})") from error
    return train, test


def arrays(examples: Any, name: str = "the data set") -> tuple[np.ndarray, np.ndarray]:
    """Inputs uint8 or float32 [N, ...] and targets int64 [N] of one split.

    Args:
        examples: A pair (inputs, targets) of tensors or arrays; a data set of torchvision's kind, of such pairs; or
            one of ``datasets``, whose first image and first label are taken. Pictures become [C, H, W].
        name: For messages.

    Raises:
        DataError: It is none of these, or its examples differ in shape.
    """
    if hasattr(examples, "features"):
        examples = _of_hub(examples, name)
    if isinstance(examples, tuple | list) and len(examples) == 2 and hasattr(examples[0], "shape"):
        inputs, targets = (np.asarray(each) for each in examples)
    else:
        pairs = [examples[i] for i in range(len(examples))]
        try:
            inputs = np.stack([_picture(each) for each, _ in pairs])
        except ValueError as error:
            raise DataError(f"{name}: its examples cannot be stacked ({error}); bring them to one shape") from error
        targets = np.asarray([int(target) for _, target in pairs])
    if inputs.dtype != np.uint8:
        inputs = inputs.astype(np.float32)
    return inputs, targets.astype(np.int64)


def _of_hub(examples: Any, name: str) -> list[tuple[Any, Any]]:
    """The pairs of a data set of the Hub's library."""
    kinds = {column: type(feature).__name__ for column, feature in examples.features.items()}
    image = next((column for column, kind in kinds.items() if kind in ("Image", "Sequence", "List", "Array2D")), None)
    label = next((column for column, kind in kinds.items() if kind == "ClassLabel"), None)
    if image is None or label is None:
        raise DataError(f"{name}: of its columns {', '.join(kinds)} none is an image, or none a label; give pairs")
    return [(row[image], row[label]) for row in examples]


def _picture(example: Any) -> np.ndarray:
    """One example as an array; a picture of PIL's as [C, H, W]."""
    values = np.asarray(example)
    if hasattr(example, "getbands"):
        return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)
    return values
