"""The command line: one module of commands a subject, and here the table of them all. It alone knows every room.

Exit codes: 0 nothing red, 1 something red or a regression, 2 unusable input, 3 (``gate`` alone) measured too
little to tell. stdout carries results (with ``--json`` one document and nothing else), stderr progress and errors.
Commands import what they need inside: ``list``, ``plan`` and ``check`` must not load torch or matplotlib.
"""

from __future__ import annotations

import inspect
import io
import os
import re
import signal
import sys
from collections.abc import Callable
from typing import Annotated

from suite.interruption import Interrupted
from suite.runner.gc_tuning import search_rarely

search_rarely()
# typer reads arguments through pydantic, whose search for plugins among all installed packages takes a tenth of the
# time of ``list``. There are none to be found here.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

import typer  # noqa: E402

from suite.cli import claims, runs  # noqa: E402
from suite.cli.output import explain, nobody_reads, say  # noqa: E402

# Name -> command, in the order of ``--help``.
COMMANDS: dict[str, Callable[..., None]] = {
    "list": runs.list_,
    "plan": runs.plan,
    "run": runs.run,
    "vary": runs.vary,
    "status": runs.status,
    "check": claims.check,
    "explain": claims.explain_,
    "register": claims.register,
    "together": claims.together,
    "figures": claims.figures,
    "report": claims.report,
    "refresh": claims.refresh_,
    "reproduce": claims.reproduce,
    "compare": runs.compare,
    "export": runs.export,
    "merge": runs.merge,
    "gate": runs.gate,
    "doctor": claims.doctor,
    "new-paper": claims.new_paper_,
    "new-experiment": claims.new_experiment_,
}

app = typer.Typer(
    name="sgd-suite",
    help="Reproduce five papers on data-parallel mini-batch SGD: run, check, draw, report.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
for name, command in COMMANDS.items():
    # A paragraph as one line: typer would keep the breaks of the source beside those of the terminal.
    app.command(name, help=re.sub(r"(?<=\S)\n(?=\S)", " ", inspect.getdoc(command) or ""))(command)
app.add_typer(claims.data_app, name="data")


def show_version(wanted: bool) -> None:
    """What ``--version`` does."""
    if wanted:
        from suite import __version__

        print(f"sgd-suite {__version__}")
        raise typer.Exit


@app.callback()
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
        code = app(standalone_mode=False)  # what typer.Exit carries
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
