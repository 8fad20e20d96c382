"""State of a run under way as one file: tensors by name (safetensors) and plain values (JSON). No pickle."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from suite.collectives import Settled


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
        return Settled(tensors[name])
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
    """Write a checkpoint atomically: ``state`` (a tree), plain ``values``, further named ``tensors``."""
    flat: dict[str, Tensor] = {f"extra/{k}": v.detach().contiguous() for k, v in tensors.items()}
    plain: dict[str, Any] = {}
    flatten(state, "state", flat, plain)
    meta = {"plain": json.dumps(plain), "values": json.dumps(values)}
    staging = folder / f".checkpoint-{secrets.token_hex(4)}"
    try:
        save_file(flat, staging, metadata=meta)
        os.replace(staging, folder / "checkpoint.safetensors")
    finally:
        staging.unlink(missing_ok=True)


def load(folder: Path, like: Any, device: str) -> tuple[Any, dict[str, Any], dict[str, Tensor]] | None:
    """The last checkpoint as (state, values, tensors), or None when there is none or it is unreadable."""
    path = folder / "checkpoint.safetensors"
    try:
        with safe_open(path, framework="pt", device=device) as file:
            meta = file.metadata()
            flat = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        plain, values = json.loads(meta["plain"]), json.loads(meta["values"])
    except (FileNotFoundError, SafetensorError, KeyError, TypeError, ValueError):
        return None
    extra = {k.removeprefix("extra/"): v for k, v in flat.items() if k.startswith("extra/")}
    return rebuild(like, "state", flat, plain), values, extra


def numpy_tensor(values: list[Tensor]) -> Tensor:
    """Recorded 0-d or small tensors, stacked on the CPU."""
    return torch.stack(values).cpu() if values else torch.zeros(0)
