"""Fabricated frames in which Rudra's claims hold, and others in which they do not."""

from __future__ import annotations

from functools import cache
from typing import Any

from fabricated_frames import frame_of

from paper_figures.rudra import stand_in
from paper_figures.rudra.plans import (
    BASELINE,
    CALIBRATED,
    CALIBRATED4,
    PRINTED,
    TABLE2,
    TABLE4,
    label,
    printed_error,
    printed_seconds,
)
from paper_figures.rudra.settings import BATCHES, LEARNERS, Configuration, grid
from paper_figures.rudra.table2 import ALONG_TREES, STALER
from paper_figures.rudra.table4 import printed_minutes
from suite.papers.artifact import Frame
from suite.papers.catalogue import paper, printed_value

PANELS: dict[str, Any] = {artifact.id: artifact for artifact in paper("rudra").artifacts}
PRODUCTS = [range(1, 7), range(7, 14), range(14, 19), range(19, 24)]  # the paper's groups of Table 2
ROWS = list(dict.fromkeys([BASELINE, *TABLE2, *grid("hardsync"), *grid("1-softsync"), *grid("lambda-softsync")]))


def quantity(name: str) -> Any:
    artifact, _, rest = name.partition("/")
    return PANELS[f"rudra/{artifact}"].quantities[rest]


def error(row: Configuration, holds: bool) -> float:
    """The printed error where there is one; otherwise it rises with mu lambda, and less so under hardsync.

    Where claims do not hold it falls, 1-softsync differs from other protocols and one learner from several.
    """
    n, mu, learners = row
    found = printed_error(row) if row in PRINTED else 17 + 0.0105 * mu * learners - 3 * (n == 0 and learners == 30)
    return found if holds else 70 - found + 6 * (n == 1) + 3 * (learners == 1)


def seconds(row: Configuration, holds: bool) -> float:
    """The printed time where there is one; otherwise learners save time, and waiting for all of them costs some.

    Where claims do not hold more learners take longer; an update for each gradient takes twice as long, but with the
    smallest mini-batches less than half.
    """
    n, mu, learners = row
    modelled = 22_000 * (1 + 4 / mu) / learners**0.9 * (1.2 if n == 0 and learners > 1 else 1.0)
    modelled *= 1.1 if n == learners > 1 and mu == 4 else 1.0
    found = printed_seconds(row) if row in PRINTED else modelled
    each = (2 if mu > 4 else 0.4) if n == learners > 1 else 1
    return found if holds else 4e7 / found * each * (1 if n else 0.9)


def trainings(holds: bool, seeds: int = 3) -> dict[str, list[dict[str, float]]]:
    """Final errors of every configuration, the same for each seed."""
    errors = {label(row): error(row, holds) for row in ROWS}
    high, low = (90.0, 50.0) if holds else (50.0, 90.0)
    errors |= {"without drops": 21.0 if holds else 15.0, "alpha0": high, "alpha0/30": low}
    errors |= {"alpha0 of 4-softsync": high, "alpha0/4": low, ALONG_TREES: error(STALER, True)}
    errors["hardsync at alpha0"] = errors[label((1, 128, 10))] - (0 if holds else 10)
    return {
        group: [{"test_error": found / 100, "epoch": 140.0, "mean_staleness": 1.0}] * seeds
        for group, found in errors.items()
    }


@cache
def halved() -> Frame:
    """Trainings that all end with half the errors: another world in which claims do not hold."""
    runs = {
        group: [{**run, "test_error": run["test_error"] / 2} for run in found]
        for group, found in trainings(True).items()
    }
    return frame_of(runs)


@cache
def world(holds: bool) -> Frame:
    """All groups of CIFAR-10's panels."""
    grid_rows = [(n, mu, k) for k in LEARNERS for n in sorted({0, 1, k}) for mu in BATCHES]
    factor = 1.1 if holds else 2.0
    ratios = [1.4, 1.5, 1.6] if holds else [0.6, 0.7, 0.65]
    chance = [0.9, 0.9, 0.9] if holds else [0.9, 0.8, 0.9]
    groups: dict[str, list[dict[str, Any]]] = {
        **trainings(holds),
        "times": [{"rows": grid_rows, "predicted": [seconds(row, holds) for row in grid_rows]}],
        "left out": [{"rows": list(CALIBRATED), "predicted": [[factor * printed_seconds(r)] for r in CALIBRATED]}],
        "throughput": [{"training_ratios": ratios, "product_ratios": ratios}],
        "30-softsync": [{"above_2n": 0 if holds else 60, "gradients": 60_000}],
        "zero jitter": [{"mean": 1 - (0 if holds else 1) / k} for k in LEARNERS],
        "adv": [{"mean": 1.0 if holds else 2.0}],
        "adv*": [{"mean": 2.0 if holds else 1.0}],
    }
    for run, other in zip(groups["alpha0"], (0, 1, 2), strict=True):
        groups["alpha0"][other] = {**run, "tables": {"evaluations": {"test_error": chance, "epoch": [0, 70, 140]}}}
    return frame_of(groups)


def trained(epochs: list[float], errors: list[float]) -> dict[str, Any]:
    """A run that was tested after so many epochs."""
    return {"test_error": errors[-1], "tables": {"evaluations": {"epoch": epochs, "test_error": errors}}}


@cache
def imagenet(holds: bool) -> Frame:
    """The groups of ImageNet's panels."""
    factor = 1.0 if holds else 2.0
    run: dict[str, Any] = {
        "rows": list(TABLE4.values()),
        "predicted": [factor * printed_minutes(name) for name in TABLE4],
        "incast_seconds": 1.2 if holds else 0.6,
    }
    for name, system in (("rudra-base", "base"), ("rudra-adv", "adv"), ("rudra-adv-star", "adv*")):
        run[f"overlap {system}"] = printed_value(f"rudra/table1/{name}") + (0 if holds else -8)
    first, second, third = (20.0, 50.0, 99.0) if holds else (50.0, 20.0, 15.0)
    shares = {"overlap base": first, "overlap adv": second, "overlap adv*": third}
    stale = {"staleness base": first / 20, "staleness adv": second / 50, "staleness adv*": third / 50}
    systems = [
        {"skipped": ""} | {name: value * (1 + at / 100) for name, value in (shares | stale).items()}
        for at in range(3)
    ]
    left = {"rows": [TABLE4[name] for name in CALIBRATED4], "predicted": [[1.0, 2.0]] * len(CALIBRATED4)}
    groups = {"times": [run], "left out": [left], "adv": [{"mean": 1.0}], "adv*": [{"mean": 2.0}]}
    for at, name in enumerate(stand_in.SYSTEMS):
        ends = [0.80 + 0.02 * (at if holds else -at) + seed / 1000 for seed in range(3)]
        halfway = 0.9 if holds else 0.99 if name == stand_in.SYSTEMS[-1] else 0.5
        groups[name] = [trained([0, 2, 4], [0.99, halfway, end]) for end in ends]
    return frame_of({**groups, "processes": systems, "processes, paper's pace": systems})
