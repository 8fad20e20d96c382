"""Kernels of a GPU that give the same bits every time, and which of those that ran promise none."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterator
from typing import Any

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
    import torch

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
