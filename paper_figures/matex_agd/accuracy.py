"""Accuracies of the rows of Table 1, as their stored runs have them: for the table and for the ends of Fig. 1(b)."""

from __future__ import annotations

import math
import statistics

from suite.claims.intervals import Interval, mean_interval
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


def trained_on(evidence: Evidence, row: str) -> tuple[str, bool]:
    """The data set of a row, and whether that makes its numbers a proxy: all but ImageNet do."""
    run = evidence.runs(row)[0]
    if run.spec.experiment == IMAGENET:
        return "ImageNet", False
    return run.spec.settings["data"]["name"], True


def ids(evidence: Evidence, *rows: str) -> tuple[str, ...]:
    """Ids of all runs of the rows."""
    return tuple(run.id for row in rows for run in evidence.runs(row))


def accuracies_by_arm(evidence: Evidence) -> dict[str, list[list[float]]]:
    """Accuracy at the five checkpoints by arm of ``matex_agd/serial_gap`` and by seed."""
    table = evidence.run("gap").curve("gap")
    table = table[table["update"] > 0].sort_values(["seed", "update"])
    return {
        str(arm): [part["accuracy"].tolist() for _, part in rows.groupby("seed")]
        for arm, rows in table.groupby("arm")
    }


def spread_of_one_seed(evidence: Evidence) -> list[float]:
    """Half the width, at each checkpoint, of what one seed says of the mean: as a share of its accuracy.

    Table 1 prints one run a row, and the paper does not say how far seeds lie apart. The spread is that of the
    serial arm of ``matex_agd/serial_gap`` early in training: Student t times the deviation of log accuracy.
    """
    from scipy.special import stdtrit

    logs = [[math.log(value) for value in seed] for seed in accuracies_by_arm(evidence)["serial"]]
    factor = float(stdtrit(len(logs) - 1, 0.975))
    return [factor * statistics.stdev(column) for column in zip(*logs, strict=True)]


def at_checkpoints(evidence: Evidence, row: str) -> list[Interval]:
    """Accuracy of a row at each checkpoint, over its seeds."""
    seeds = accuracies(evidence, row)
    if len(seeds) > 1:
        return [mean_interval(column) for column in zip(*seeds, strict=True)]
    spread = spread_of_one_seed(evidence)
    return [Interval(v, v * (1 - h), v * (1 + h), 1) for v, h in zip(*seeds, spread, strict=True)]


def steps(evidence: Evidence, worse: str, better: str) -> list[Interval]:
    """By how much one row lies above another at each checkpoint, paired by seed."""
    low, high = accuracies(evidence, worse), accuracies(evidence, better)
    if len(low) > 1:
        paired = [[b - a for a, b in zip(*rows, strict=True)] for rows in zip(low, high, strict=True)]
        return [mean_interval(column) for column in zip(*paired, strict=True)]
    halves = spread_of_one_seed(evidence)
    found = []
    for a, b, half in zip(low[0], high[0], halves, strict=True):
        width = half * math.hypot(a, b)
        found.append(Interval(b - a, b - a - width, b - a + width, 1))
    return found
