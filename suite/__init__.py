"""The harness: trains the papers' models by the papers' algorithms, stores runs, judges claims, draws figures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from suite.lazy import pd

__version__ = "0.2.0"
DISTRIBUTION = "sgd-scaling-suite"  # tells this package from others of its name


def results(
    selector: str | Iterable[str] | None = None, *, store: str | Path | None = None, profile: str | None = None
) -> pd.DataFrame:
    """Stored runs as one tidy table; all about it stands at :func:`suite.own.results.results`."""
    from suite.own.results import results

    return results(selector, store=store, profile=profile)
