"""How a run is executed: chosen once, recorded before it starts, reused by every resume.

Two executions of one specification agree to a bound; the same execution gives the same bits. So path, width,
threads, precision, device and memory format are fixed before the first update and stored with the run.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.spec import RunSpec

if TYPE_CHECKING:
    import torch

PRECISIONS = ("float32", "float64", "tf32", "bf16")
PATHS = ("looped", "vectorised", "captured", "native")

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc, malloc.h
KEPT_BYTES = 1 << 30

_autocast: torch.dtype | None = None
_onednn, _unfolded = True, False


def pick_device(device: str) -> str:
    """``auto`` is CUDA where there is one. Raises ValueError when CUDA is asked for and absent."""
    if device == "cpu":
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if device == "cuda":
        raise ValueError("--device cuda: this machine has no usable CUDA device; use --device cpu")
    return "cpu"


def choose(spec: RunSpec, device: str, threads: int) -> dict[str, Any]:
    """The execution of a new run on ``device`` with ``threads`` CPU threads, before anything is measured.

    Raises ValueError for a path or a precision that does not exist.
    """
    path, precision = spec.settings.get("path", "looped"), spec.settings.get("precision", "float32")
    if path not in PATHS:
        raise ValueError(f"path must be one of {PATHS}, not {path!r}")
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {PRECISIONS}, not {precision!r}")
    return {
        "path": path,
        "width": 1,  # runs in the pack this one belongs to
        "slot": 0,  # its place among them
        "threads": threads,
        "precision": precision,
        "device": device,
        "channels_last": True,
        "onednn": True,  # on a CPU: gradients of convolutions by oneDNN, else by torch's own kernels
        "unfolded": False,  # gradients of convolutions as products of unfolded pictures
        "deterministic": True,
    }


Refine = Callable[[dict[str, Any]], Mapping[str, Any]]


def recorded(folder: Path) -> dict[str, Any] | None:
    """The execution recorded in a run's partial folder, if there is one."""
    try:
        return json.loads((folder / "execution.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def fixed(
    folder: Path, spec: RunSpec, device: str, threads: int, refine: Refine = lambda execution: execution
) -> Mapping[str, Any]:
    """The execution recorded in a run's partial folder; chosen, refined and recorded there if it is new."""
    if (known := recorded(folder)) is not None:
        return known
    execution = refine(choose(spec, device, threads))
    staging = folder / f".execution-{secrets.token_hex(4)}"
    staging.write_text(json.dumps(execution, indent=1))
    os.replace(staging, folder / "execution.json")
    return execution


def apply(execution: Mapping[str, Any]) -> None:
    """Set torch's process-wide switches to what the run recorded. Imports torch."""
    import torch

    global _autocast, _onednn, _unfolded
    precision = execution["precision"]
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {PRECISIONS}, not {precision!r}")
    torch.set_num_threads(execution["threads"])
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.deterministic = execution["deterministic"]
    torch.backends.cudnn.benchmark = False
    _autocast = torch.bfloat16 if precision == "bf16" else None
    _onednn, _unfolded = execution.get("onednn", True), execution.get("unfolded", False)
    keep_freed_memory()


def lowered(device: str) -> contextlib.AbstractContextManager[Any]:
    """Where a network computes: under autocast when the run's precision is bf16, as written otherwise.

    Parameters, gradients and updates stay in float32.
    """
    if _autocast is None:
        return contextlib.nullcontext()
    import torch

    return torch.autocast(device, dtype=_autocast)


class Kernels:
    """Where gradients are computed: with the kernels of convolutions of the execution applied when this was made.

    For a few examples torch's own, which unfold pictures into a matrix, were up to 1.7 times as fast as oneDNN's;
    for many they are slower. What a test of hundreds of images uses does not depend on it.
    """

    def __init__(self) -> None:
        from suite.training.unfolding import Unfolded

        self.onednn = _onednn
        self.mode: contextlib.AbstractContextManager[Any] = Unfolded() if _unfolded else contextlib.nullcontext()

    def __enter__(self) -> None:
        import torch

        self._before = bool(torch.backends.mkldnn.enabled)
        torch.backends.mkldnn.enabled = self._before and self.onednn  # type: ignore[assignment]
        self.mode.__enter__()

    def __exit__(self, *raised: Any) -> None:
        import torch

        torch.backends.mkldnn.enabled = self._before  # type: ignore[assignment]
        self.mode.__exit__(*raised)


def keep_freed_memory() -> bool:
    """Have the C library keep freed memory instead of handing it back to the kernel; True where it can (glibc).

    By default every fresh vector above a threshold is mapped anew, and touching its pages costs more than the
    arithmetic on it: an update of 431,080 parameters by whole-vector operations took 2.3 times as long.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, KEPT_BYTES) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES))
