"""How a run is executed: chosen once, recorded before it starts, reused by every resume.

Two executions of one specification agree to a bound; the same execution gives the same bits. So path, width,
threads, precision, device and memory format are fixed before the first update and stored with the run.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suite.spec import RunSpec

PRECISIONS = ("float32", "float64", "tf32", "bf16")


def choose(spec: RunSpec, device: str, threads: int) -> dict[str, Any]:
    """The execution of a new run on ``device`` with ``threads`` CPU threads."""
    return {
        "path": spec.settings.get("path", "looped"),
        "width": 1,
        "threads": threads,
        "precision": spec.settings.get("precision", "float32"),
        "device": device,
        "channels_last": True,
        "deterministic": True,
    }


def fixed(folder: Path, spec: RunSpec, device: str, threads: int) -> Mapping[str, Any]:
    """The execution recorded in a run's partial folder; chosen and recorded there if it is new."""
    path = folder / "execution.json"
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        execution = choose(spec, device, threads)
    staging = folder / f".execution-{secrets.token_hex(4)}"
    staging.write_text(json.dumps(execution, indent=1))
    os.replace(staging, path)
    return execution


def apply(execution: Mapping[str, Any]) -> None:
    """Set torch's process-wide switches to what the run recorded. Imports torch."""
    import torch

    precision = execution["precision"]
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {PRECISIONS}, not {precision!r}")
    torch.set_num_threads(execution["threads"])
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.deterministic = execution["deterministic"]
    torch.backends.cudnn.benchmark = False
