"""What stored runs say to several artifacts: updates by batch size, fitted laws, seconds of the closed loop."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import TYPE_CHECKING

from paper_figures.inverse_law.exponents import (
    ALTERNATIVES,
    LEAST_POINTS,
    joint_exponent,
    power,
    predicted_smallest,
)
from paper_figures.inverse_law.settings import ROWS, Row
from suite.batch_size.law import FitError, InverseLawFit, Updates, fit_inverse_law
from suite.claims.estimate import Estimate, over_seeds
from suite.claims.intervals import Interval
from suite.papers.artifact import Evidence, Missing
from suite.runs.store import Run

if TYPE_CHECKING:
    import pandas as pd

TOLERANCE = 0.15  # of the exponent, as published


def size_of(run: Run) -> int:
    """The batch size of a search: examples, or words in translation."""
    settings = run.spec.settings
    return settings["batch"] if "batch" in settings else settings["words"]


def crossings(runs: Iterable[Run], threshold: float, monitor: str = "training") -> list[Updates]:
    """Updates to one threshold by batch size, seeds in ascending order, from stored searches."""
    table: dict[int, dict[int, float | None]] = {}
    limits: dict[int, float] = {}
    for run in runs:
        thresholds = run.results.get(f"thresholds_{monitor}", [])
        if threshold not in thresholds:
            raise Missing(f"threshold {threshold} of the {monitor} loss in run {run.id}")
        found = run.results[f"crossed_{monitor}"][thresholds.index(threshold)]
        batch = size_of(run)
        table.setdefault(batch, {})[run.spec.seed] = None if found < 0 else float(found)
        limits[batch] = float(run.spec.settings["limit"])
    return [
        Updates(batch, tuple(seen for _, seen in sorted(seeds.items())), limits[batch])
        for batch, seeds in sorted(table.items())
    ]


def curve(evidence: Evidence, row: Row, *, lower: bool = False) -> tuple[Run, ...]:
    """The runs of a curve, or those for its lower thresholds, at every batch size whose seeds are all stored.

    Where a point was tested after every update, as in the paper, these runs count and those on a grid do not.
    A curve may be judged while some of its batch sizes are still to run: the intervals say what that leaves
    open, and the quantities name the batch sizes they come from. Raises Missing for fewer than four.
    """
    names = [f"{row.name}/{batch}{'/lower' if lower else ''}" for batch in row.powers]
    points = [name for name in names if name in evidence.groups]
    if not points:
        raise Missing(f"no runs of {row.name} at {evidence.profile}")
    found: list[tuple[Run, ...]] = []
    for name in points:
        with contextlib.suppress(Missing):
            found.append(_tested_most_often(evidence, name))
    if len(found) < LEAST_POINTS:
        raise Missing(f"{len(found)} of {len(points)} batch sizes of {row.name} at {evidence.profile}")
    return tuple(run for runs in found for run in runs)


def _tested_most_often(evidence: Evidence, name: str) -> tuple[Run, ...]:
    if f"{name}/every" in evidence.groups:
        with contextlib.suppress(Missing):
            return evidence.runs(f"{name}/every")
    return evidence.runs(name)


def families(evidence: Evidence, row: Row) -> tuple[dict[float, list[Updates]], tuple[Run, ...]]:
    """Updates to every threshold of a curve that has runs, the lower ones too, and these runs.

    A threshold is left out that no run of the larger half of the batch sizes reached. Raises Missing without any.
    """
    found: dict[float, list[Updates]] = {}
    behind: list[Run] = []
    for lower in (False, True):
        try:
            runs = curve(evidence, row, lower=lower)
        except Missing:
            if not lower:
                raise
            continue
        counted = {t: crossings(runs, t) for t in row.thresholds(evidence.profile, lower=lower)}
        behind += runs
        found |= {t: c for t, c in counted.items() if not any(u.censored for u in c[len(c) // 2 :])}
    if not found:
        raise Missing(f"a threshold of {row.name} that the larger batch sizes reached")
    return found, tuple(behind)


def stored_rows(evidence: Evidence, rows: Iterable[Row] = ROWS) -> list[Row]:
    """The curves that have enough stored runs at the profile."""
    found = []
    for row in rows:
        with contextlib.suppress(Missing):
            curve(evidence, row)
            found.append(row)
    return found


def repeated_rows(evidence: Evidence) -> list[Row]:
    """Those of several seeds, whose scatter says how far a fitted exponent can be trusted."""
    return [row for row in stored_rows(evidence) if len({run.spec.seed for run in curve(evidence, row)}) > 1]


def reached(evidence: Evidence, row: Row, monitor: str = "training") -> list[Updates]:
    """Updates to the lowest threshold that at least two batch sizes reached."""
    runs = curve(evidence, row)
    for threshold in reversed(row.thresholds(evidence.profile)):
        try:
            found = crossings(runs, threshold, monitor)
        except Missing:
            continue
        if sum(u.censored < len(u.seen) for u in found) >= 2:
            return found
    raise Missing(f"two batch sizes of {row.name} that reached a threshold of the {monitor} loss")


def law_fit(counted: Sequence[Updates]) -> InverseLawFit:
    """The fit with seeds as blocks where every batch size has the same ones."""
    return fit_inverse_law(counted, blocks=_paired(counted))


def _paired(counted: Sequence[Updates]) -> bool:
    usable = [u for u in counted if u.censored < len(u.seen)]
    return len(usable[0].seen) > 1 and len({len(u.seen) for u in usable}) == 1


def exponent(*curves: Iterable[Sequence[Updates]]) -> Interval:
    """Exponent of M in N - N_inf, one for all thresholds of all curves: minus the fitted one.

    Raises Missing where it has none.
    """
    try:
        free = joint_exponent([list(thresholds) for thresholds in curves])
    except FitError as error:
        raise Missing(str(error)) from error
    return Interval(-free.mean, -free.high, -free.low, free.n)


def above(found: Mapping[float, Sequence[Updates]], row: Row) -> list[list[Updates]]:
    """The part of a curve from which on the law is to hold: above the batch size at which the bound diverges."""
    kept = []
    for threshold, counted in found.items():
        with contextlib.suppress(FitError):
            least = predicted_smallest(counted, math.log(row.guess), threshold)
            kept.append([u for u in counted if u.batch > least])
    return [family for family in kept if len(family) >= LEAST_POINTS]


def told_apart(found: Interval) -> str:
    """The power of the rule on exponents against those it must tell from -1."""
    return power_told(power(found, TOLERANCE))


def power_told(share: float) -> str:
    """The probability of telling the law from ``ALTERNATIVES``, in words."""
    return f"power against {' and '.join(f'-{p:g}' for p in ALTERNATIVES)}: {share:.0%}"


def as_measured(found: Sequence[Interval], runs: Sequence[Run], note: str = "") -> Estimate:
    """Intervals as evidence, with the batch sizes and seeds of the runs behind them; only seeds repeat."""
    batches = sorted({run.spec.settings["batch"] for run in runs})
    seeds = len({run.spec.seed for run in runs})
    where = f"M = {', '.join(map(str, batches))}; {seeds} seeds"
    repeated = [replace(i, n=min(i.n, seeds)) for i in found]
    return over_seeds(repeated, [run.id for run in runs], f"{note}; {where}" if note else where)


def mean_seconds(runs: pd.DataFrame) -> dict[int, float]:
    """Mean over seeds of the median over repeats of the seconds to converge, by batch size."""
    return {
        int(batch): fmean(median(part["seconds"]) for _, part in group.groupby("seed"))
        for batch, group in runs.groupby("batch")
    }


def seed_seconds(runs: pd.DataFrame) -> list[tuple[int, float]]:
    """Median over repeats of the seconds to converge of every batch size and seed."""
    return [(int(batch), median(part["seconds"])) for (batch, _), part in runs.groupby(["batch", "seed"])]
