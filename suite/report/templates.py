"""The report's templates: everything is escaped, and a name that is not given is an error."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.report.numerals import ours, printed, tolerance, values

if TYPE_CHECKING:
    from jinja2 import Environment


CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def without_controls(value: Any) -> Any:
    """A value without the characters that are obeyed rather than shown: a terminal's, and those that turn a text.

    Notes and names of machines come from files that anybody may have written.
    """
    if isinstance(value, str) and CONTROLS.search(value):
        return type(value)(CONTROLS.sub("", value))
    return value


def engine(folder: Path, filters: Mapping[str, Callable[..., Any]]) -> Environment:
    """What renders the templates of a folder, with ``filters`` besides those that all of them use."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=without_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shared = {"ours": ours, "printed": printed, "tolerance": tolerance, "values": values, "sum_of": Counter.total}
    made.filters |= {**shared, **filters}
    return made
