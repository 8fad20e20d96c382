"""Times of the paper's machine as the two cost models predict them."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import geometric_mean
from typing import Any

from paper_figures.rudra.plans import (
    CALIBRATED,
    TABLE2,
    TABLE3,
    cifar_left_out,
    cifar_times,
    imagenet_times,
    printed_seconds,
    training_groups,
)
from paper_figures.rudra.settings import Configuration
from suite.claims.intervals import Interval, over_ends
from suite.lazy import np
from suite.papers.artifact import Frame, Groups, Quantity

HELD_OUT, FITTED, LEFT_OUT = "predicted", "calibration row", "calibration row, left out"
TIMES = ("times",)  # the group of either model's run


def cifar() -> Groups:
    return {"times": (cifar_times(),)}


def cifar_table(profile: str, rows: Iterable[Configuration]) -> Groups:
    """Times and trainings of rows of a table, and the calibration rows left out one by one."""
    return {**cifar(), **training_groups(profile, rows), **cifar_left_out(profile)}


def imagenet() -> Groups:
    return {"times": (imagenet_times(),)}


def predicted(frame: Frame) -> dict[Any, float]:
    """Seconds of 140 epochs of CIFAR-10, or minutes per epoch of ImageNet, by row."""
    run = frame.one("times")
    return {tuple(row): float(time) for row, time in zip(run["rows"], run["predicted"], strict=True)}


def time_of(row: Configuration) -> Quantity:
    """The time of a row that the model was not calibrated on."""
    return Quantity(lambda frame: predicted(frame)[row], TIMES, note="held out")


def left_out(frame: Frame) -> dict[tuple[Any, ...], Interval]:
    """Each row of a calibration as the others predict it; the interval spans the starts of the fits.

    Empty where that was not computed.
    """
    return {
        tuple(row): over_ends(times[0], times)
        for run in frame.results("left out")
        for row, times in zip(run["rows"], run["predicted"], strict=True)
    }


def source_of(calibrated: bool) -> str:
    """What a predicted time is called: a row that the model was calibrated on is no test of it."""
    return FITTED if calibrated else HELD_OUT


def told(frame: Frame, row: tuple[Any, ...], printed: float, calibrated: bool) -> list[dict[str, Any]]:
    """A row's time for a table: as printed, as predicted, and of a calibration row as the others predict it."""
    found = [{"source": "printed", "value": printed}]
    found.append({"source": source_of(calibrated), "value": predicted(frame)[row]})
    if other := left_out(frame).get(row):
        found.append({"source": LEFT_OUT, "value": other.mean, "low": other.low, "high": other.high})
    return found


def left_out_of(row: tuple[Any, ...]) -> Quantity:
    """The time of a calibration row, by a model calibrated on the others."""

    def note(frame: Frame) -> str:
        starts = len(frame.one("left out")["predicted"][0])
        return "calibrated on the other rows" + (f"; ends over {starts} starts of the fit" if starts > 1 else "")

    return Quantity(lambda frame: left_out(frame)[row], ("left out",), note=note)


def held_out(frame: Frame) -> list[float]:
    """Held-out times of Tables 2 and 3 within a fifth of print: by the model, by learners alone, and of how many.

    By learners alone a time lies between those of the calibration rows, on logarithms of both.
    """
    known: dict[int, list[float]] = {}
    for row in sorted(CALIBRATED, key=lambda row: row[2]):
        known.setdefault(row[2], []).append(printed_seconds(row))
    by_learners = np.log(list(known)), np.log([geometric_mean(times) for times in known.values()])
    by_model = predicted(frame)
    rows = [row for row in dict.fromkeys((*TABLE2, *TABLE3)) if row not in CALIBRATED]
    printed = np.array([printed_seconds(row) for row in rows])
    learners = np.array([row[2] for row in rows])
    ways = np.array([by_model[row] for row in rows]), np.exp(np.interp(np.log(learners), *by_learners))
    return [*(float((abs(times / printed - 1) <= 0.2).sum()) for times in ways), len(rows)]
