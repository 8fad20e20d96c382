"""Runs Python modules one after another, each in a fork of a process that has imported the large libraries.

Started as a script in the folder whose modules are to run. A line of standard input is a JSON object with
``arguments`` (what follows ``python -m``) and ``limit`` in seconds; a line of standard output answers it with
``code``, the exit status or null past the limit, and ``seconds``. Nothing of the folder is imported before a fork,
so that a module may change between two lines. An import of torch, of scipy and of pytest takes seconds, and most
tests of a mutant take little more.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import select
import signal
import sys
import time
import traceback
from collections.abc import Sequence

# No plugin of pytest: it warns of those that are imported before it can rewrite them, and warnings are errors here.
LIBRARIES = ("matplotlib.pyplot", "pandas", "pytest", "scipy.stats", "seaborn", "torch", "torchvision")


def ran(arguments: Sequence[str], limit: float) -> int | None:
    """Exit status of a module in a fork, None past the limit; whatever it started is gone afterwards."""
    child = os.fork()
    if child == 0:
        os._exit(_module(arguments))
    with open(os.pidfd_open(child), "rb", buffering=0) as ended:
        in_time = bool(select.select([ended], [], [], limit)[0])
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)  # where it had no time to lead a group
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status) if in_time else None


def _module(arguments: Sequence[str]) -> int:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    sys.argv[1:] = arguments[1:]
    try:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    sys.path[0] = os.getcwd()
    for library in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    for line in sys.stdin:
        asked, began = json.loads(line), time.monotonic()
        code = ran(asked["arguments"], asked["limit"])
        print(json.dumps({"code": code, "seconds": time.monotonic() - began}), flush=True)


if __name__ == "__main__":
    main()
