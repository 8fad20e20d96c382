"""The report's templates: everything is escaped, and a name that is not given is an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.report.numerals import ours, printed, tolerance, values

if TYPE_CHECKING:
    from jinja2 import Environment


def engine(folder: Path, filters: Mapping[str, Callable[..., Any]]) -> Environment:
    """What renders the templates of a folder, with ``filters`` besides those that all of them use."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shared = {"ours": ours, "printed": printed, "tolerance": tolerance, "values": values, "sum_of": Counter.total}
    made.filters |= {**shared, **filters}
    return made
