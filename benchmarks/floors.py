"""How fast this device can be: multiply-adds, large matrix products, copies and calls.

No update is quicker than its operations at the fastest rate, or its bytes at the copy's speed; one that calls the
framework layer by layer is no quicker than its calls on nothing.
Copies are timed at several sizes, because a working set that a cache holds is copied faster than memory allows: the
limit of an update is that of the smallest copy that is at least as large as what it moves.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from suite.lazy import torch

MATRICES = {"cpu": (512, 1024, 2048), "cuda": (2048, 4096, 8192)}  # rows of square matrices
COPIES = tuple(2**exponent for exponent in (18, 20, 22, 24, 26, 28))  # bytes read and written by a copy
SAMPLED = 0.1  # seconds in which a call is timed
TURNS = 100_000  # of the loop of multiply-adds: about a millisecond


def floors(device: str, threads: int) -> dict[str, Any]:
    """``flops_per_second``, ``bytes_per_second`` (of the largest copy), speeds of all ``copies``, ``call_seconds``.

    ``flops_per_second`` is that of the library's best product, ``processor_flops_per_second`` what as many cores can
    do by multiply-adds, two operations each, where a compiler is there. The precision is float32 as the runs have it,
    TF32 off unless torch was told otherwise.
    """
    peak = 0.0
    for rows in MATRICES[device]:
        a, b, out = (torch.ones(rows, rows, device=device) for _ in range(3))
        peak = max(peak, 2.0 * rows**3 / best(partial(torch.mm, a, b, out=out), device, threads))
    copies = []
    for size in COPIES:
        source, target = (torch.ones(size // 8, device=device) for _ in range(2))
        copies.append([size, size / best(partial(target.copy_, source), device, threads)])
    call = best(partial(torch.neg, torch.empty(0, device=device)), device, threads)
    found = {"flops_per_second": peak, "bytes_per_second": copies[-1][1], "copies": copies, "call_seconds": call}
    if device == "cpu" and (core := core_flops()):
        found["processor_flops_per_second"] = threads * core
    return found


def core_flops() -> float | None:
    """Operations per second of a tuned loop of multiply-adds on one core; None without a compiler."""
    from suite.training.machine_code import NativeError, Source

    with contextlib.suppress(NativeError):
        source = Source(Path(__file__).with_name("multiply_adds.cpp"))
        loop = source.library({}, lambda path, _: ctypes.CDLL(str(path)).multiply_adds)
        loop.restype, last = ctypes.c_double, ctypes.byref(ctypes.c_float())
        call = partial(loop, ctypes.c_long(TURNS), ctypes.c_float(0.5), last)
        return float(call()) / best(call, "cpu", 1)
    return None


def best(call: Callable[[], object], device: str, threads: int) -> float:
    """Seconds of a call in so many threads: the least of several samples.

    One thread's seconds are those of its processor, which other processes disturb least.
    """
    from torch.utils.benchmark import Timer

    clock = {"timer": time.thread_time} if device == "cpu" and threads == 1 else {}
    timer = Timer("call()", globals={"call": call}, num_threads=threads, **clock)
    return min(timer.blocked_autorange(min_run_time=SAMPLED).times)


def faster(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The higher of two measurements of the same device: a limit that was reached once is one."""
    copies = [[a[0], max(a[1], b[1])] for a, b in zip(one["copies"], other["copies"], strict=True)]
    found = {"bytes_per_second": copies[-1][1], "copies": copies}
    for name in ("flops_per_second", "processor_flops_per_second"):
        if speeds := [floor[name] for floor in (one, other) if name in floor]:
            found[name] = max(speeds)
    # Older documents lack calls and the processor's own speed.
    found["call_seconds"] = min(floor.get("call_seconds", math.inf) for floor in (one, other))
    return found
