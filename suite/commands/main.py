"""The table of all commands, and how one begins and ends.

Only modules of commands that the command line names are imported: ``--help`` must not wait for the others, nor
``list``, ``plan`` and ``check`` for torch or matplotlib.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Annotated

from suite.interruption import Interrupted
from suite.runner.gc_tuning import search_rarely

search_rarely()
# typer reads arguments through pydantic, whose search for plugins among all installed packages takes a tenth of the
# time of ``list``. There are none to be found here.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

import typer  # noqa: E402

from suite.commands.output import explain, nobody_reads, say  # noqa: E402

# In the order of ``--help``. A command is the function ``command`` of the module of its name, whose docstring is its
# help; ``data`` has an application of its own.
COMMANDS = (
    *("list", "plan", "run", "vary", "status", "check", "explain", "register", "together", "figures", "report"),
    *("refresh", "reproduce", "compare", "export", "merge", "gate", "doctor", "new-paper", "new-experiment", "data"),
)


def application(words: Collection[str]) -> typer.Typer:
    """All commands; those that are not among the words have no options and do nothing."""
    app = typer.Typer(name="sgd-suite", no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(common)
    for name in COMMANDS:
        path = Path(__file__).with_name(f"{name.replace('-', '_')}.py")
        about = path.read_text(encoding="utf-8").split('"""')[1]
        # A paragraph as one line: typer would keep the breaks of the source beside those of the terminal.
        about = re.sub(r"(?<=\S)\n(?=\S)", " ", about)
        module = import_module(f"{__package__}.{path.stem}") if name in words else None
        if module and name == "data":
            app.add_typer(module.app, name=name, help=about)
        else:
            app.command(name, help=about)(module.command if module else lambda: None)
    return app


def show_version(wanted: bool) -> None:
    """What ``--version`` does."""
    if wanted:
        from suite import __version__

        print(f"sgd-suite {__version__}")
        raise typer.Exit


def common(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="show the version and exit")
    ] = False,
) -> None:
    """Reproduce five papers on data-parallel mini-batch SGD: run, check, draw, report."""


def main() -> None:
    """Entry point: errors a user can act on end in one sentence on stderr and exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr: a locale without a minus sign loses no number
    try:
        # What a shell wants completed comes in one of the variables.
        words = " ".join([*sys.argv, os.environ.get("COMP_WORDS", ""), os.environ.get("_TYPER_COMPLETE_ARGS", "")])
        code = application(words.split())(standalone_mode=False)  # what typer.Exit carries
        if sys.stdout:  # None where the shell closed it, as by >&-
            sys.stdout.flush()
        if code == 128 + signal.SIGINT:  # typer's own answer to Ctrl-C, without a word
            say(str(Interrupted(signal.SIGINT)))
    except Interrupted as interrupted:
        say(str(interrupted))
        code = interrupted.exit_code
    except SystemExit as stop:  # click ends the process itself when the reader of stdout left, and calls it a failure
        code = nobody_reads() if isinstance(stop.__context__, BrokenPipeError) else stop.code
    except BrokenPipeError:
        code = nobody_reads()
    except Exception as error:
        code = explain(error)
    sys.exit(code or 0)
