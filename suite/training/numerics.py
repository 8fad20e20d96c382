"""How a run is executed: chosen once, recorded before it starts, reused by every resume.

Two executions of one specification agree to a bound; the same execution gives the same bits. So path, threads,
precision, device and memory format are fixed before the first update and stored with the run.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from suite.files import read_note, write_whole
from suite.lazy import torch
from suite.spec import RunSpec

PRECISIONS = ("float32", "float64")
PATHS = ("looped", "vectorised", "captured", "native")

RECORD = "execution.json"  # in the folder of a run under way
FIELDS = {
    "path": str,
    "threads": int,
    "precision": str,
    "device": str,
    "channels_last": bool,
    "onednn": bool,  # on a CPU: gradients of convolutions by oneDNN, else by torch's own kernels
    "deterministic": bool,
}

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc, malloc.h
KEPT_BYTES = 1 << 30


def pick_device(device: str) -> str:
    """``auto`` is CUDA where there is one. Raises ValueError when CUDA is asked for and absent."""
    if device != "cpu" and torch.cuda.is_available():
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
        "threads": threads,
        "precision": precision,
        "device": device,
        "channels_last": True,
        "onednn": True,
        "deterministic": True,
    }


def recorded(folder: Path) -> dict[str, Any] | None:
    """The execution recorded in a run's partial folder; None where there is none that a run could have.

    Raises OSError where it cannot be read now.
    """
    found = read_note(folder / RECORD, FIELDS)
    return found if found is not None and sound(found) else None


def sound(execution: Mapping[str, Any]) -> bool:
    """Whether an execution of these fields names what there is; a native one names its builds."""
    builds = execution.get("builds", [])
    named = isinstance(builds, list) and all(isinstance(name, str) for name in (execution.get("build"), *builds))
    return (
        execution["path"] in PATHS
        and execution["precision"] in PRECISIONS
        and execution["threads"] > 0
        and (named or execution["path"] != "native")
    )


def record(folder: Path, execution: Mapping[str, Any]) -> None:
    """Write the execution of a run into its partial folder, whole or not at all."""
    write_whole(folder / RECORD, json.dumps(dict(execution), indent=1).encode())


def apply(execution: Mapping[str, Any]) -> None:
    """Set torch's process-wide switches to what the run recorded; :func:`kernels` is the rest. Imports torch."""
    torch.set_num_threads(execution["threads"])
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = execution["deterministic"]
    torch.backends.cudnn.benchmark = False
    keep_freed_memory()


def synchronise(device: str) -> None:
    """Wait until a device has done what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


class OwnKernels:
    """Inside it a CPU differentiates convolutions by torch's own kernels, not by oneDNN's."""

    def __enter__(self) -> None:
        self.before = torch.backends.mkldnn.enabled
        torch.backends.mkldnn.enabled = False  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        torch.backends.mkldnn.enabled = self.before


ONEDNN: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()


def kernels(execution: Mapping[str, Any]) -> contextlib.AbstractContextManager[Any]:
    """Where a recorded execution computes gradients.

    For a few examples torch's own kernels, which unfold pictures into a matrix, were up to 1.7 times as fast as
    oneDNN's; for many they are slower. What a test of hundreds of images uses does not depend on it.
    """
    return ONEDNN if execution.get("onednn", True) else OwnKernels()


def keep_freed_memory() -> None:
    """Have the C library keep freed memory instead of handing it back to the kernel, where it can (glibc).

    By default every fresh vector above a threshold is mapped anew, and touching its pages costs more than the
    arithmetic on it: an update of 431,080 parameters by whole-vector operations took 2.3 times as long.
    """
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        library.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)


NO_PROMISE = re.compile(r"(\w+) does not have a deterministic implementation")


@contextlib.contextmanager
def same_bits(device: str) -> Iterator[set[str]]:
    """Have torch take deterministic kernels on ``device``; gives the names of those that ran and are not.

    A kernel without a deterministic form is used and named rather than refused: the backward pass of max-pooling,
    which all papers' networks need, adds its shares in no order where maps lie channels-last. cuBLAS must be told
    before its first product. On a CPU nothing is set: its kernels sum in one order for one number of threads.
    """
    named: set[str] = set()
    if device != "cuda":
        yield named
        return

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    with warnings.catch_warnings():
        warnings.filterwarnings("always", message=f".*{NO_PROMISE.pattern}")
        show = warnings.showwarning

        def noted(message: Any, *where: Any, **more: Any) -> None:
            if found := NO_PROMISE.search(str(message)):
                named.add(found[1])
            else:
                show(message, *where, **more)

        warnings.showwarning = noted
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield named
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
