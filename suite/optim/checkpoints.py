"""Checkpoints of workers in several processes: one file each, and only those count that every worker has.

    FOLDER/update-1200/worker-0/checkpoint        state of worker 0 after 1,200 updates
    FOLDER/update-1200/worker-1/checkpoint        ...

A worker reads nothing but its own files, so workers on several nodes need no common file system as long as each
is started again where it was.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from suite.runs.files import sync_folder
from suite.training import checkpoint

if TYPE_CHECKING:
    from suite.communication.group import Group

Found = tuple[dict[str, Any], dict[str, Tensor]]


def write(folder: Path, group: Group, t: int, values: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write this worker's checkpoint after ``t`` updates; once all have written theirs, remove its older ones.

    A kill or a power cut at any moment leaves one checkpoint that is complete. Raises ValueError on every worker if
    they do not stand at the same update, OSError if the file cannot be written, and WorkerLost when another worker
    does not come.
    """
    own = _own(folder, group, t)
    own.mkdir(parents=True, exist_ok=True)
    checkpoint.save(own, (), values, tensors)
    for parent in (own.parent, folder):
        sync_folder(parent)
    group.agree({"update at which it saves": t})
    for older in _updates(folder, group):
        if older != t:
            shutil.rmtree(_own(folder, group, older), ignore_errors=True)
            with contextlib.suppress(OSError):  # the last worker to leave removes what they shared
                _own(folder, group, older).parent.rmdir()


def newest(folder: Path, group: Group) -> Found | None:
    """This worker's values and tensors of the newest checkpoint that every worker has whole, or None."""
    held = [set(updates) for updates in group.everyone(_updates(folder, group))]
    for t in sorted(set.intersection(*held), reverse=True):
        found = checkpoint.load(_own(folder, group, t), (), str(group.device))
        if all(group.everyone(found is not None)):
            return found and found[1:]
    return None


def _own(folder: Path, group: Group, t: int) -> Path:
    return folder / f"update-{t}" / f"worker-{group.rank}"


def _updates(folder: Path, group: Group) -> list[int]:
    """Updates at which this worker has a checkpoint, damaged ones included."""
    numbers = (
        path.parts[-3].removeprefix("update-") for path in folder.glob(f"update-*/worker-{group.rank}/checkpoint")
    )
    return sorted(int(number) for number in numbers if number.isdecimal())
