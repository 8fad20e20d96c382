"""Text for a terminal or a pipe: lines folded at words; times and sizes as a person says them."""

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
        text += [line]
        if len(line) > width:
            text[-1:] = textwrap.wrap(
                line, width, subsequent_indent=indent, drop_whitespace=True, break_on_hyphens=False
            )
    return text


def show(lines: Iterable[str], indent: str = INDENT) -> None:
    """Print on standard output."""
    print("\n".join(folded(lines, width(), indent)))


def duration(seconds: float) -> str:
    """A time in its two largest units: ``97 d 3 h``, ``2 h 5 min``, ``4 min 30 s``, ``12 s``, ``0.4 s``."""
    if 0 < seconds < 0.95:
        return f"{max(seconds, 0.1):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def memory(size: float) -> str:
    """A number of bytes: ``412 MB``, ``11.6 GB``."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
