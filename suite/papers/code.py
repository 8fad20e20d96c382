"""Which code made the stored runs: the present one, other code, or code that nobody can point at any more.

A run records the fingerprint of what computed it. For committed runs from before they did, ``code.json`` beside the
evidence holds it, computed from the commit that they name. ``same_numbers.json`` names pairs of fingerprints of an
experiment that are known to give the same bits: ``python -m ci.same_numbers`` adds one when the canaries of that
experiment passed to the bit under both.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from suite.papers.evidence import folders
from suite.papers.registry import experiment
from suite.runs.fingerprint import UNKNOWN
from suite.runs.store import Run

PRESENT, OTHER, NOBODYS = "the present code", "other code", "unknown code"
SHORT = 12  # letters of a fingerprint that are shown
TABLE, SAME = "code.json", "same_numbers.json"


@cache
def table() -> dict[str, dict[str, str]]:
    """Fingerprint and revision by run id, of committed runs that do not record a fingerprint."""
    known: dict[str, dict[str, str]] = {}
    for folder in folders():
        path = folder / TABLE
        known |= json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return known


@cache
def same_numbers() -> frozenset[tuple[str, str, str]]:
    """(experiment, fingerprint, fingerprint) known to compute the same bits."""
    rows: list[dict[str, str]] = []
    for folder in folders():
        path = folder / SAME
        rows += json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return frozenset((row["experiment"], row["old"], row["new"]) for row in rows)


def code_of(run: Run) -> str:
    """The fingerprint of the code that computed a run, or UNKNOWN."""
    return run.environment.get("code") or table().get(run.id, {}).get("code", UNKNOWN)


@cache
def _present(name: str) -> str:
    try:
        return experiment(name).code
    except KeyError:
        return UNKNOWN


def made_by(run: Run) -> str:
    """PRESENT, OTHER or NOBODYS: whether the code behind a run is that of this process.

    Other code counts as the present one where a chain of ``same_numbers`` leads from one to the other.
    """
    code, present = code_of(run), _present(run.spec.experiment)
    if UNKNOWN in (code, present):
        return NOBODYS
    reached, pairs = {code}, [pair[1:] for pair in same_numbers() if pair[0] == run.spec.experiment]
    while grown := {new for old, new in pairs if old in reached and new not in reached}:
        reached |= grown
    return PRESENT if present in reached else OTHER


def origin(runs: Sequence[Run]) -> str:
    """Which code made these runs, all of one code, and on which days they began, as far as that was recorded."""
    who = made_by(runs[0])
    days = sorted({day for run in runs if (day := day_of(run))})
    began = f"begun {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else "made before starts were recorded"
    if who == NOBODYS:
        return f"code revision not recorded: {began}"
    return f"by {who} ({code_of(runs[0])[:SHORT]}), {began}"


def day_of(run: Run) -> str:
    """The day on which a run began, as YYYY-MM-DD; empty where that was not recorded."""
    return str(run.environment.get("started", ""))[:10]


def count(runs: Iterable[Run]) -> Counter[str]:
    """How many runs the present code made, how many other code, how many unknown code."""
    return Counter(made_by(run) for run in runs)
