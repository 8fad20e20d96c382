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


def flatten(value: Any, name: str, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
    """Spread a state (NamedTuples, tuples, tensors, slices, integers, Pending) over two dictionaries."""
    if isinstance(value, Tensor):
        tensors[name] = value.detach().clone().contiguous()
    elif isinstance(value, slice):
        plain[name] = {"slice": [value.start, value.stop]}
    elif isinstance(value, tuple):
        fields = getattr(value, "_fields", range(len(value)))
        plain[name] = {"tuple": [str(f) for f in fields]}
        for part, item in zip(fields, value, strict=True):
            flatten(item, f"{name}/{part}", tensors, plain)
    elif value is None or isinstance(value, bool | int | float | str):
        plain[name] = {"value": value}
    elif hasattr(value, "wait"):
        plain[name] = {"settled": True}
        tensors[name] = value.wait().detach().clone().contiguous()
    else:
        raise TypeError(f"{name}: a state may not hold a {type(value).__name__}")


def rebuild(like: Any, name: str, tensors: dict[str, Tensor], plain: dict[str, Any]) -> Any:
    """Inverse of ``flatten``; ``like`` supplies the NamedTuple types (a freshly initialised state)."""
    if name not in plain:
        return tensors[name]
    entry = plain[name]
    if "value" in entry:
        return entry["value"]
    if "slice" in entry:
        return slice(*entry["slice"])
    if "settled" in entry:
        return CompletedSum(tensors[name])
    parts = entry["tuple"]
    known = getattr(like, "_fields", None)
    items = [
        rebuild(
            getattr(like, part) if known else (like[i] if isinstance(like, tuple) and i < len(like) else None),
            f"{name}/{part}",
            tensors,
            plain,
        )
        for i, part in enumerate(parts)
    ]
    return type(like)(*items) if known else tuple(items)


def save(folder: Path, state: Any, values: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Write a checkpoint atomically: ``state`` (a tree), plain ``values``, further named ``tensors``.

    The file is the SHA-256 of what follows, then a safetensors document. Raises OSError when it cannot be
    written; the checkpoint before it then still stands.
    """
    flat: dict[str, Tensor] = {f"extra/{k}": v.detach().clone().contiguous() for k, v in tensors.items()}
    plain: dict[str, Any] = {}
    flatten(state, "state", flat, plain)
    document = serialise(flat, metadata={"plain": json.dumps(plain), "values": json.dumps(values)})
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
    return rebuild(like, "state", flat, found.plain), found.values, extra
