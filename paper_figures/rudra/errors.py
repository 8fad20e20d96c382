"""Final errors of trainings on CIFAR-10: means, steps, and how far few seeds can be trusted.

The spread between seeds is measured on our own: three seeds of each of three named configurations, the baseline, one
of many small batches and the one with the largest printed error, pooled with whatever else has more than one seed.
Until all nine runs are stored the paper's own Table 2 stands in: six pairs of its rows have mu and lambda in common
and differ only in n, on which by section 5.3 the error hardly depends. The spread within these pairs is 0.35 points;
what staleness does to an error only widens it. The test set is the paper's own, all of it, so no error of sampling it
is added. A run that diverged errs as one who guesses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from statistics import fmean
from typing import Any

from paper_figures.rudra.plans import BASELINE, TABLE2, label, printed_error
from paper_figures.rudra.settings import EPOCHS, Configuration, at_profile
from suite.claims import intervals
from suite.claims.intervals import Interval, most
from suite.data.catalogue import DATASETS
from suite.papers.artifact import FIRST, Frame, Groups, Missing, Quantity

NAMED: tuple[Configuration, ...] = (BASELINE, (30, 4, 30), (10, 128, 10))
"""The configurations whose own seeds give the spread, named before their second seeds were run."""

WHOLE, SHORT = "ours", "ours, shortened"  # sources of errors in tables and drawings
LEARNED = 1.0  # points below CHANCE: who guesses 10,000 images is further off once in a thousand times


def chance(data: str) -> float:
    """Errors in % of one who guesses."""
    return 100 * (1 - 1 / DATASETS[data].classes)


CHANCE = chance("cifar10")
OWN = {f"seeds of {label(row)}": row for row in NAMED}


def own_seeds(profile: str) -> Groups:
    """All seeds of the NAMED configurations, which every interval reads once they are stored."""
    return {group: at_profile(row, "paper") for group, row in OWN.items()}


def finals(frame: Frame, group: str, chance: float = CHANCE) -> list[float]:
    """Final errors in % of a group's runs, one per seed; of one that diverged that of ``chance``."""
    runs = frame.results(group)
    return [chance if run["status"] == "diverged" else 100 * float(run["test_error"]) for run in runs]


def own(frame: Frame) -> dict[str, list[float]]:
    """Final errors of the NAMED configurations, where the part of a frame holds their seeds."""
    return {label(row): finals(frame, group) for group, row in OWN.items() if group in frame.groups}


@cache
def printed_pairs() -> tuple[tuple[float, ...], ...]:
    """Printed errors in % of rows of Table 2 that differ in n alone."""
    found: dict[tuple[int, int], tuple[float, ...]] = {}
    for row in TABLE2:
        found[row[1:]] = (*found.get(row[1:], ()), printed_error(row))
    return tuple(pair for pair in found.values() if len(pair) == 2)


def contrast(
    weights: Mapping[str, float], samples: Mapping[str, Sequence[float]], own: Mapping[str, Sequence[float]]
) -> Interval:
    """Weighted sum of mean errors with its 95% interval.

    Args:
        weights: as :func:`suite.claims.intervals.contrast` has them.
        samples: final errors in % of each configuration, one per seed, at least one.
        own: the same of the NAMED configurations, once all of their seeds are stored; each counts once. Empty, the
            printed pairs stand in.
    """
    others = [samples[name] for name in weights if name not in own]
    return intervals.contrast(weights, samples, intervals.pooled([*(own.values() or printed_pairs()), *others]))


Which = str | Configuration
"""A group of runs by its name, or a configuration, whose label it is; ``label`` leaves a name as it is."""


def contrasts(*several: Mapping[str, float]) -> Quantity:
    """A value for each weighted sum of groups' final errors, in points, over the first seeds that are stored."""
    groups = tuple(dict.fromkeys(group for weights in several for group in weights))

    def value(frame: Frame) -> list[Interval]:
        samples, seeds = {group: finals(frame, group) for group in groups}, own(frame)
        return [contrast(weights, samples, seeds) for weights in several]

    def note(frame: Frame) -> str:
        seeds = min(len(frame.groups[group]) for group in groups)
        ours = not OWN.keys().isdisjoint(frame.groups)
        whose = "our own seeds of three configurations" if ours else "the paper's Table 2, by its pairs of rows"
        return f"{seeds} seed{'s' * (seeds > 1)}; spread between seeds from {whose}"

    return Quantity(value, groups, FIRST, tuple(OWN), note)


def mean(which: Which) -> Quantity:
    """The final error in %, the mean over its seeds."""
    return contrasts({label(which): 1.0})


def steps(*which: Which | list[Configuration]) -> Quantity:
    """Steps of the final error in points from each configuration, or mean over several, to the next."""
    parts = [[label(row) for row in each] if isinstance(each, list) else [label(each)] for each in which]
    return contrasts(*(_step(less, more) for less, more in pairwise(parts)))


def differences(*pairs: tuple[Which, Which]) -> Quantity:
    """The step of the final error within each pair, without bounds where neither has learned anything."""
    each = contrasts(*(_step([label(a)], [label(b)]) for a, b in pairs))

    def value(frame: Frame) -> list[Interval]:
        learned = [min(fmean(finals(frame, label(one))) for one in pair) < CHANCE - LEARNED for pair in pairs]
        return [
            step if at else replace(step, low=-math.inf, high=math.inf)
            for step, at in zip(each.value(frame), learned, strict=True)
        ]

    return replace(each, value=value)


def _step(less: Sequence[str], more: Sequence[str]) -> dict[str, float]:
    return {**dict.fromkeys(less, -1 / len(less)), **dict.fromkeys(more, 1 / len(more))}


def worst(*rows: Configuration) -> Quantity:
    """The highest of several final errors."""
    each = contrasts(*({label(row): 1.0} for row in rows))
    return replace(each, value=lambda frame: most(each.value(frame)))


def is_whole(run: Mapping[str, Any]) -> bool:
    """Whether the run of a row has the paper's length, or diverged before."""
    return run["status"] == "diverged" or round(run["epoch"]) == EPOCHS


def trained(frame: Frame, row: Configuration) -> list[dict[str, Any]]:
    """Source, seed, epochs and final error in % of a row's stored runs, whole ones with an interval."""
    quantity = mean(row)
    try:
        part = quantity.needs(frame)
    except Missing:
        return []
    ((_, low, high),) = quantity.measured(part).spans
    found = []
    for run, error in zip(part.results(label(row)), finals(part, label(row)), strict=True):
        about: dict[str, Any] = {"source": SHORT}
        if is_whole(run):
            about = {"source": WHOLE, "low": low, "high": high}
        found.append(about | {"seed": run["seed"], "epochs": run["epoch"], "value": error})
    return found
