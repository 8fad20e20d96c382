"""State of a run under way as one file: tensors by name (safetensors) and plain values (JSON). No pickle."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors.torch import load as deserialise
from safetensors.torch import save as serialise
from torch import Tensor

from suite.communication.collectives import CompletedSum
from suite.files import write_whole
from suite.training.checkpoint_file import NAME, DamagedCheckpoint, read


def flatten(tree: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """``tree`` as JSON holds it, its tensors moved to ``tensors`` by their path; sums under way are waited for."""
    if isinstance(tree, Tensor):
        tensors[name] = tree.detach().contiguous()
        return {"a tensor": name}
    if hasattr(tree, "wait"):
        return {"a sum": flatten(tree.wait(), name, tensors)}
    if isinstance(tree, slice):
        return {"a slice": [tree.start, tree.stop]}
    if isinstance(tree, dict):
        return {str(key): flatten(value, f"{name}/{key}", tensors) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        places = getattr(tree, "_fields", range(len(tree)))
        parts = [flatten(part, f"{name}/{at}", tensors) for at, part in zip(places, tree, strict=True)]
        return {"a tuple": parts} if isinstance(tree, tuple) else parts
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    raise TypeError(f"{name}: a state holds tensors and plain values, not a {type(tree).__name__}")


def rebuild(tree: Any, tensors: dict[str, Tensor], like: Any = None) -> Any:
    """Inverse of ``flatten``; ``like`` (a freshly initialised state) supplies the types of named tuples."""
    match tree:
        case {"a tensor": name}:
            return tensors[name]
        case {"a sum": total}:
            return CompletedSum(rebuild(total, tensors))
        case {"a slice": [start, stop]}:
            return slice(start, stop)
        case {"a tuple": parts}:
            if hasattr(like, "_fields"):
                return type(like)(*(rebuild(part, tensors, own) for part, own in zip(parts, like, strict=True)))
            return tuple(rebuild(part, tensors) for part in parts)
        case dict():
            return {key: rebuild(value, tensors) for key, value in tree.items()}
        case list():
            return [rebuild(part, tensors) for part in tree]
    return tree


def save(folder: Path, state: Any, values: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write a checkpoint atomically: ``state`` (a tree), plain ``values``, further named ``tensors``.

    The file is the SHA-256 of what follows, then a safetensors document. Raises OSError when it cannot be
    written; the checkpoint before it then still stands.
    """
    flat: dict[str, Tensor] = {}
    plain = flatten(state, "state", flat)
    flatten(tensors, "extra", flat)
    apart = {name: tensor.clone() for name, tensor in flat.items()}  # safetensors takes no shared memory
    document = serialise(apart, metadata={"plain": json.dumps(plain), "values": json.dumps(values)})
    write_whole(folder / NAME, hashlib.sha256(document).digest(), document)


def load(folder: Path, like: Any, device: str) -> tuple[Any, dict[str, Any], dict[str, Tensor]] | None:
    """The last checkpoint as (state, values, tensors), or None when there is none or it does not verify.

    Raises OSError where it cannot be read: the work that it holds is not given up for that.
    """
    try:
        found = read(folder)
    except DamagedCheckpoint:
        return None
    if found is None:
        return None
    flat = {name: tensor.to(device) for name, tensor in deserialise(found.document).items()}
    extra = {k.removeprefix("extra/"): v for k, v in flat.items() if k.startswith("extra/")}
    return rebuild(found.plain, flat, like), found.values, extra
