"""Text for a terminal or a pipe: lines folded at words; sizes as a person says them."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable

INDENT = "    "  # of what does not fit on a line
PIPE = 120  # columns where there is no terminal


def width() -> int:
    """Columns of the terminal, or COLUMNS where the environment sets it; 120 in a pipe."""
    return shutil.get_terminal_size((PIPE, 24)).columns


def folded(lines: Iterable[str], width: int, indent: str = INDENT) -> list[str]:
    """Each line in as many of at most ``width`` characters as it takes, the further ones indented."""
    text: list[str] = []
    for line in lines:
        fits = len(line) <= width
        text += [line] if fits else textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)
    return text


def show(lines: Iterable[str], indent: str = INDENT) -> None:
    """Print on standard output."""
    print("\n".join(folded(lines, width(), indent)))


def memory(size: float) -> str:
    """A number of bytes: ``412 MB``, ``11.6 GB``."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
