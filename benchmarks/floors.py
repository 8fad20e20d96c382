"""How fast this device can be at all: the best matrix product and the best copy seen here.

No update can be quicker than its operations at the peak or its bytes at the copy's speed, whichever takes longer.
Copies are timed at several sizes, because a working set that a cache holds is copied faster than memory allows: the
limit of an update is that of the smallest copy that is at least as large as what it moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

MATRICES = {"cpu": (512, 1024, 2048), "cuda": (2048, 4096, 8192)}  # rows of square matrices
COPIES = tuple(2**exponent for exponent in (18, 20, 22, 24, 26, 28))  # bytes read and written by a copy
REPEATS, PATIENCE = 15, 0.5  # samples of a call, and seconds for all of them


def floors(
    device: str, threads: int, timed: Callable[[Callable[[], object], str], float] | None = None
) -> dict[str, Any]:
    """``flops_per_second``, ``bytes_per_second`` (of the largest copy) and the speeds of all ``copies``.

    The precision is float32 as the runs have it, TF32 off unless torch was told otherwise.
    """
    import torch

    timed = timed or best
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        peak = 0.0
        for rows in MATRICES[device]:
            a, b, out = (torch.ones(rows, rows, device=device) for _ in range(3))
            peak = max(peak, 2.0 * rows**3 / timed(partial(torch.mm, a, b, out=out), device))
        copies = []
        for size in COPIES:
            source, target = (torch.ones(size // 8, device=device) for _ in range(2))
            copies.append([size, size / timed(partial(target.copy_, source), device)])
    finally:
        torch.set_num_threads(before)
    return {"flops_per_second": peak, "bytes_per_second": copies[-1][1], "copies": copies}


def best(call: Callable[[], object], device: str) -> float:
    """Seconds of a call: the least of several samples, each of as many calls as take about 5 ms.

    On a busy machine, where threads wait for each other, a call may take a thousand times as long: sampling then
    ends after ``PATIENCE`` seconds.
    """
    import torch

    wait: Callable[[], None] = torch.cuda.synchronize if device == "cuda" else lambda: None
    call()
    wait()
    began = time.perf_counter()
    call()
    wait()
    count = max(1, round(0.005 / max(time.perf_counter() - began, 1e-7)))
    samples: list[float] = []
    ended = time.perf_counter() + PATIENCE
    while len(samples) < REPEATS and not (samples and time.perf_counter() > ended):
        began = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        samples.append((time.perf_counter() - began) / count)
    return min(samples)


def faster(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The higher of two measurements of the same device: a limit that was reached once is one."""
    copies = [[a[0], max(a[1], b[1])] for a, b in zip(one["copies"], other["copies"], strict=True)]
    peak = max(one["flops_per_second"], other["flops_per_second"])
    return {"flops_per_second": peak, "bytes_per_second": copies[-1][1], "copies": copies}
