"""Times of the paper's machine as the two cost models predict them, beside what lambda alone predicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from paper_figures.rudra.plans import CALIBRATED, TABLE2, TABLE3, cifar_times, imagenet_times, printed_seconds
from paper_figures.rudra.settings import Configuration
from suite.claims.intervals import Interval, over_ends
from suite.lazy import np
from suite.papers.artifact import Frame, Groups, Quantity

HELD_OUT, FITTED, LEFT_OUT = "predicted", "calibration row", "calibration row, left out"
TIMES = ("times",)  # the group of either model's run
NEAR = 0.2  # relative error that counts as predicted, as the claims have it
DRAWS = 2_000
OTHERS = [row for row in dict.fromkeys([*TABLE3, *TABLE2]) if row not in CALIBRATED]  # rows held out


def cifar() -> Groups:
    return {"times": (cifar_times(),)}


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


def left_out_of(row: tuple[Any, ...]) -> Quantity:
    """The time of a calibration row, by a model calibrated on the others."""

    def note(frame: Frame) -> str:
        starts = len(frame.one("left out")["predicted"][0])
        return "calibrated on the other rows" + (f"; ends over {starts} starts of the fit" if starts > 1 else "")

    return Quantity(lambda frame: left_out(frame)[row], ("left out",), note=note)


def lambda_only(learners: int) -> float:
    """Seconds of 140 epochs from the number of learners alone.

    The logarithm of time is interpolated in that of lambda between the rows that the cost model is calibrated on,
    where rows of one lambda count as their geometric mean.
    """
    logs: dict[int, list[float]] = {}
    for row in sorted(CALIBRATED, key=lambda row: row[2]):
        logs.setdefault(row[2], []).append(math.log(printed_seconds(row)))
    means = [math.fsum(values) / len(values) for values in logs.values()]
    return math.exp(np.interp(math.log(learners), [math.log(k) for k in logs], means))


def _error(ratios: Any) -> Any:
    return np.median(np.abs(np.log(ratios)), axis=-1)


def _near(ratios: Any) -> Any:
    return np.mean(np.abs(ratios - 1) <= NEAR, axis=-1)


STATISTICS: dict[str, Callable[[Any, Any], Any]] = {
    "held-out-error": lambda ours, theirs: _error(ours),
    "held-out-error-lambda-only": lambda ours, theirs: _error(theirs),
    "held-out-error-gain": lambda ours, theirs: _error(theirs) - _error(ours),
    "held-out-near": lambda ours, theirs: _near(ours),
    "held-out-near-lambda-only": lambda ours, theirs: _near(theirs),
    "held-out-near-gain": lambda ours, theirs: _near(ours) - _near(theirs),
}
"""Median absolute log error and share of held-out rows within NEAR, of ratios of predicted to printed times: the cost
model's, those of lambda alone, and the model's gain."""


def over_rows(statistic: Callable[[Any, Any], Any]) -> Quantity:
    """A statistic over the held-out rows, with 95% percentiles of a bootstrap over them.

    The same rows are drawn for both predictors. Rows of one table are not independent, so intervals are rather too
    narrow.
    """

    def value(frame: Frame) -> Interval:
        seconds, printed = predicted(frame), np.array([printed_seconds(row) for row in OTHERS])
        model = np.array([seconds[row] for row in OTHERS]) / printed
        alone = np.array([lambda_only(row[2]) for row in OTHERS]) / printed
        drawn = np.random.default_rng(0).integers(len(OTHERS), size=(DRAWS, len(OTHERS)))
        low, high = np.quantile(statistic(model[drawn], alone[drawn]), (0.025, 0.975))
        return Interval(float(statistic(model, alone)), float(low), float(high), len(OTHERS))

    return Quantity(value, TIMES)
