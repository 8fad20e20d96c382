"""Files of optimisers: their states as safetensors documents, and checkpoints of workers in several processes.

A document holds tensors by name, and everything else as JSON. No pickle. A checkpoint is one file of each worker, and
only those count that every worker has:

    FOLDER/update-1200/worker-0/checkpoint        state of worker 0 after 1,200 updates
    FOLDER/update-1200/worker-1/checkpoint        ...

A worker reads nothing but its own files, so workers on several nodes need no common file system as long as each
is started again where it was.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file as write_file
from torch import Tensor

from suite.communication.group import Group
from suite.files import sync_folder
from suite.training import checkpoint

Found = tuple[dict[str, Any], dict[str, Tensor]]


def save_file(state_dict: dict[str, Any], path: str | Path) -> None:
    """Write what ``state_dict()`` of an optimiser returned, without pickle.

    Args:
        state_dict: of an optimiser: tensors and plain values.
        path: of the file, which is replaced.

    Raises:
        OSError: where that cannot be written.
        TypeError: for what is neither a tensor nor a plain value.

    Example:
        >>> import tempfile, torch
        >>> from suite.optim import DelayedSGD
        >>> opt = DelayedSGD(torch.nn.Linear(2, 1), lr=0.1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_file(opt.state_dict(), f"{folder}/state")
        ...     opt.load_state_dict(load_file(f"{folder}/state"))
    """
    tensors: dict[str, Tensor] = {}
    tree = checkpoint.flatten(state_dict, "state", tensors)
    write_file({name: value.clone() for name, value in tensors.items()}, path, {"tree": json.dumps(tree)})


def load_file(path: str | Path) -> dict[str, Any]:
    """Read what ``save_file`` wrote; see there for an example.

    Args:
        path: of the file.

    Returns:
        What ``load_state_dict`` takes, on the CPU.

    Raises:
        OSError: where there is no file.
    """
    with safe_open(path, framework="pt") as document:
        tensors = {name: document.get_tensor(name) for name in document.keys()}  # noqa: SIM118 (not a dictionary)
        return checkpoint.rebuild(json.loads(document.metadata()["tree"]), tensors)


def write_checkpoint(folder: Path, group: Group, t: int, values: dict[str, Any], tensors: dict[str, Tensor]) -> None:
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


def newest_checkpoint(folder: Path, group: Group) -> Found | None:
    """This worker's values and tensors of the newest checkpoint that every worker has whole, or None.

    Warns where there are checkpoints and none of them is whole.
    """
    held = [set(updates) for updates in group.everyone(_updates(folder, group))]
    for t in sorted(set.intersection(*held), reverse=True):
        found = checkpoint.load(_own(folder, group, t), (), str(group.device))
        if all(group.everyone(found is not None)):
            return found and found[1:]
    if any(held):
        warnings.warn(f"no state under {folder} is whole in every process; training begins anew", stacklevel=3)
    return None


def _own(folder: Path, group: Group, t: int) -> Path:
    return folder / f"update-{t}" / f"worker-{group.rank}"


def _updates(folder: Path, group: Group) -> list[int]:
    """Updates at which this worker has a checkpoint, damaged ones included."""
    numbers = (
        path.parts[-3].removeprefix("update-") for path in folder.glob(f"update-*/worker-{group.rank}/checkpoint")
    )
    return sorted(int(number) for number in numbers if number.isdecimal())
