"""States of optimisers as safetensors documents: tensors by name, and everything else as JSON. No pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file as write_file
from torch import Tensor

TENSOR = "a tensor"  # stands in the JSON for one, with its name


def pack(tree: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """``tree`` of dictionaries, lists and plain values with its tensors moved to ``tensors`` by their path."""
    if isinstance(tree, Tensor):
        tensors[name] = tree.detach().contiguous()
        return {TENSOR: name}
    if isinstance(tree, dict):
        return {str(key): pack(value, f"{name}/{key}", tensors) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [pack(value, f"{name}/{place}", tensors) for place, value in enumerate(tree)]
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    raise TypeError(f"{name}: a state holds tensors and plain values, not a {type(tree).__name__}")


def unpack(tree: Any, tensors: dict[str, Tensor]) -> Any:
    """Inverse of ``pack``; tuples come back as lists."""
    if isinstance(tree, dict):
        if set(tree) == {TENSOR}:
            return tensors[tree[TENSOR]]
        return {key: unpack(value, tensors) for key, value in tree.items()}
    return [unpack(value, tensors) for value in tree] if isinstance(tree, list) else tree


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
    tree = pack(state_dict, "state", tensors)
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
        return unpack(json.loads(document.metadata()["tree"]), tensors)
