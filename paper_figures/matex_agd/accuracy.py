"""Accuracies of the rows of Table 1, as their stored runs have them: for the table and for the ends of Fig. 1(b)."""

from __future__ import annotations

from suite.claims.intervals import mean_interval
from suite.claims.measured import Measured, interval, point
from suite.papers.artifact import Evidence

IMAGENET = "matex_agd/imagenet"


def accuracies(evidence: Evidence, row: str) -> list[list[float]]:
    """Top-1 accuracy at every checkpoint, by seed; a run that diverged stays at chance from there on."""
    found = []
    for run in evidence.runs(row):
        table, planned = run.curve("evaluations"), run.spec.settings
        values = [1 - error for error in table["test_error"][1:]]
        chance = 1 / (1000 if run.spec.experiment == IMAGENET else 10)
        missing = planned["updates"] // planned["evaluate"]["every"] - len(values)
        found.append(values + [chance] * missing)
    return found


def trained_on(evidence: Evidence) -> tuple[str, str]:
    """The data set of the rows, and what that makes of their numbers: *measured* on ImageNet, else a *proxy*."""
    run = evidence.runs("serial")[0]
    if run.spec.experiment == IMAGENET:
        return "ImageNet", "measured"
    return run.spec.settings["data"]["name"], "proxy"


def ids(evidence: Evidence, *rows: str) -> tuple[str, ...]:
    """Ids of all runs of the rows."""
    return tuple(run.id for row in rows for run in evidence.runs(row))


def over_seeds(differences: list[list[float]], kind: str, of: tuple[str, ...], note: str) -> Measured:
    """Mean over seeds of each difference with its Student t interval; one seed gives no interval."""
    if len(differences[0]) < 2:
        return point([row[0] for row in differences], kind=kind, runs=of, note=note)
    seen = [mean_interval(row) for row in differences]
    return interval(
        [i.mean for i in seen],
        [i.low for i in seen],
        [i.high for i in seen],
        kind=kind,
        n=len(differences[0]),
        runs=of,
        note=note,
    )
