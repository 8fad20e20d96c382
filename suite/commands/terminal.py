"""Lines for a terminal, folded at words; for a pipe or a file, as they are."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable

INDENT = "    "  # of what does not fit on a line


def folded(lines: Iterable[str], width: int) -> list[str]:
    """Each line in as many of at most ``width`` characters as it takes, the further ones indented."""
    text: list[str] = []
    for line in lines:
        text += [line]
        if len(line) > width:
            text[-1:] = textwrap.wrap(
                line, width, subsequent_indent=INDENT, drop_whitespace=True, break_on_hyphens=False
            )
    return text


def show(lines: Iterable[str]) -> None:
    """Print on standard output."""
    if sys.stdout.isatty():
        lines = folded(lines, shutil.get_terminal_size().columns)
    print("\n".join(lines))
