"""The toy paper's command line in forks of one process that has imported it: a start costs a fork, and no imports.

Each line of stdin is a JSON object. One with ``arguments``, ``folder``, ``environment`` and the files ``out`` and
``err`` is answered by the process id of the fork that runs it; one with a fork to ``wait`` for, under these ``flags``
of ``os.waitpid``, by its exit code, or null while it goes on.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NoReturn

import toy
from typer.main import get_command

from suite.commands import main


def request() -> dict[str, Any]:
    """What to run, in a fork of its own; the process that forks never comes back."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            ended, status = os.waitpid(asked["wait"], asked["flags"])
            print(os.waitstatus_to_exitcode(status) if ended else "null", flush=True)
        elif pid := os.fork():
            print(pid, flush=True)
        else:
            return asked
    sys.exit()


def become(asked: dict[str, Any]) -> None:
    """Take the place of a process that was started with these arguments, in a group of its own."""
    os.setsid()
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


def leave(end: SystemExit) -> NoReturn:
    """End as the interpreter does, without taking all modules apart: that costs more than most commands."""
    if isinstance(end.code, str):
        print(end.code, file=sys.stderr)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(end.code if isinstance(end.code, int) else int(end.code is not None))


def prepare() -> None:
    """Import what any command may, once; a worker of a fork imports what it needs."""
    drawn = ("jinja2", "matplotlib.backends.backend_svg", "seaborn")
    for name in (*drawn, "pandas", "pyarrow.parquet", "pydantic.type_adapter", "scipy.stats", "torch"):
        import_module(name)
    for room in ("commands", "engines", "report", "report.site", "runner", "speed", "training"):
        package = import_module(f"suite.{room}")
        for module in iter_modules(package.__path__, f"suite.{room}."):
            import_module(module.name)
    commands = get_command(main.application(["list"])).commands
    commands["list"].make_context("list", ["toy"])  # imports what reads a command line


if __name__ == "__main__":
    prepare()
    gc.freeze()  # what is imported is never garbage, and pages that are not looked at are not copied
    become(request())
    try:
        main.main()
    except SystemExit as end:
        leave(end)
