"""Which revision made stored runs, and on which days they began, in words."""

from __future__ import annotations

from collections.abc import Sequence

from suite.runs.store import Run

SHORT = 12  # letters of a revision that are shown


def revision_of(run: Run) -> str:
    """The revision that a run names, and whether the tree was changed; empty where it names none."""
    environment = run.environment
    revision = str(environment.get("revision", ""))[:SHORT]
    return f"{revision}, changed" if revision and environment.get("dirty") else revision


def origin(runs: Sequence[Run]) -> str:
    """By which revision these runs, all of one, were made, and when they began, as far as that was recorded."""
    days = sorted({day for run in runs if (day := day_of(run))})
    began = f"begun {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else "made before starts were recorded"
    revision = revision_of(runs[0])
    return f"by revision {revision}, {began}" if revision else f"code revision not recorded: {began}"


def day_of(run: Run) -> str:
    """The day on which a run began, as YYYY-MM-DD; empty where that was not recorded."""
    return str(run.environment.get("started", ""))[:10]
