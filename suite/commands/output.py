"""What commands write: results folded for a terminal or a pipe, and a sentence where they cannot do what is asked."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import textwrap
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from suite.interruption import Interrupted

INDENT = "    "  # of what does not fit on a line
PIPE = 120  # columns where there is no terminal


def width() -> int:
    """Columns of the terminal, or COLUMNS where the environment sets it; 120 in a pipe."""
    return shutil.get_terminal_size((PIPE, 24)).columns


def folded(lines: Iterable[str], indent: str = INDENT) -> list[str]:
    """Each line in as many as it takes at this width, the further ones indented."""
    text, columns = list[str](), width()
    for line in lines:
        fits = len(line) <= columns
        text += [line] if fits else textwrap.wrap(line, columns, subsequent_indent=indent, break_on_hyphens=False)
    return text


def memory(size: float) -> str:
    """A number of bytes: ``412 MB``, ``11.6 GB``."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def say(text: str) -> None:
    """One line on stderr; what a terminal would obey rather than show is left out."""
    print("".join(c for c in text if c.isprintable()), file=sys.stderr)


def result(document: Any, lines: Iterable[str], as_json: bool) -> None:
    """Print what was found: as one JSON document, or as the lines that say it."""
    print(json.dumps(document, indent=1) if as_json else "\n".join(lines))


def source(store: Path | None, only_mine: bool = False) -> Any:
    """The store to judge from, with the committed evidence beneath it unless the user's own runs alone count."""
    from suite.papers.catalogue import of_user, with_committed

    return of_user(store) if only_mine else with_committed(store)


OURS = ("suite", "reference_impls", "paper_figures", "sgd_scaling_suite")
ALL = "sgd-scaling-suite[all]"
NO_ROOM = re.compile("failed to map segment|cannot allocate memory", re.IGNORECASE)  # in the system loader's words


def nobody_reads() -> int:
    """The exit code where the reader of stdout left, as head does; nothing more is written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 128 + signal.SIGPIPE


def top(module: str) -> str:
    """The package that a module belongs to."""
    return module.partition(".")[0]


def importer(error: ModuleNotFoundError) -> str:
    """The package whose code asked for the module that was not found."""
    frames = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((top(name) for name in reversed(frames) if top(name) not in ("", "importlib")), OURS[0])


def explain(error: Exception) -> int:
    """Say what went wrong: a sentence for what a user can act on, a traceback for a fault of ours."""
    from suite.runs.run import UnusableRun

    # Some versions of typer carry a click of their own, so click's errors are known by name and shape.
    kind = type(error).__name__
    if kind == "Abort":  # what click makes of Ctrl-C where no run is under way
        say(str(Interrupted(signal.SIGINT)))
        return Interrupted(signal.SIGINT).exit_code
    if kind == "NoArgsIsHelpError":
        shown: Any = error
        shown.show()
    elif hasattr(error, "format_message"):
        message = " ".join(error.format_message().replace("Value error, ", "").split())
        if kind == "MissingParameter" and (context := getattr(error, "ctx", None)):
            message = f"{message.removesuffix('.')}; see {context.command_path} --help"
        say(f"sgd-suite: {message}")
    elif isinstance(error, ModuleNotFoundError) and top(str(error.name)) not in (*OURS, importer(error)):
        needing, cure = ("this", ALL) if importer(error) in OURS else (importer(error), top(str(error.name)))
        package = f"the Python package {error.name}, which is not installed here"
        say(f"sgd-suite: {needing} needs {package}: pip install {cure}")
    elif isinstance(error, ValueError | OSError):
        say(f"sgd-suite: {' '.join(str(error).split())}")
    elif type(error) is ImportError and NO_ROOM.search(str(error)):
        say(f"sgd-suite: {error}: there is too little memory to load it; raise the limit that `ulimit -v` shows")
    else:
        traceback.print_exception(error)
    drawing = sys.modules.get("suite.report.drawing")  # not imported here: that fails where a paper's package is lost
    return 1 if isinstance(error, UnusableRun) or (drawing and isinstance(error, drawing.DrawingError)) else 2
