"""The toy paper's command line in forks of one process that has imported it: a start costs a fork, and no imports.

Each line of stdin is a JSON object with ``arguments``, ``folder``, ``environment`` and the files ``out`` and ``err``;
each line of stdout is the exit code of the fork that ran it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pandas as pd  # noqa: F401
import pyarrow.parquet  # noqa: F401
import scipy.stats  # noqa: F401
import torch  # noqa: F401
import toy

from suite.cli import main


def request() -> dict[str, Any]:
    """What to run, in a fork of its own; the process that forks never comes back."""
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            return json.loads(line)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    sys.exit()


def become(asked: dict[str, Any]) -> None:
    """Take the place of a process that was started with these arguments."""
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for stream, place in enumerate((os.devnull, asked["out"], asked["err"])):
        handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, stream)
        os.close(handle)
    sys.argv = [toy.__file__, *asked["arguments"]]
    toy.install()


if __name__ == "__mp_main__":  # a worker of a fork
    toy.install()

if __name__ == "__main__":
    become(request())
    main()
