"""Small JSON files beside runs under way, read with their fields checked: they may be torn or of another age."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suite.runs.files import twice_if_stale

NUMBER = (int, float)
LARGEST = 1e18
LONGEST = 300  # characters of what is quoted

Fields = Mapping[str, type | tuple[type, ...]]


def read_note(path: Path, fields: Fields) -> dict[str, Any] | None:
    """The mapping that a file holds, or None where there is no file or what it holds does not fit.

    Args:
        path: The file.
        fields: The type of each field that the mapping must have; it may have others.

    Raises:
        OSError: The file is there and cannot be read now, so nobody knows what it holds.
    """
    try:
        found = json.loads(twice_if_stale(path.read_bytes))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError, RecursionError):
        return None
    return found if fits(found, fields) else None


def fits(found: Any, fields: Fields) -> bool:
    """Whether a value is a mapping with these fields, each of its type.

    A number is no truth value and below 1e18 in size. A text is printable, so that a terminal never obeys it.
    """
    return isinstance(found, dict) and all(name in found and _is(found[name], kind) for name, kind in fields.items())


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    if isinstance(value, bool) or not isinstance(value, kind):
        return isinstance(value, bool) and kind is bool
    if isinstance(value, int | float):
        return abs(value) < LARGEST
    return value.isprintable() if isinstance(value, str) else True


def shortened(text: str) -> str:
    """A text that quotes a file, which may be of any length, at a length that a person reads."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text):,} characters)"
