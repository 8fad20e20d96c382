"""Worlds in which claims on predicted times are false, or those that are not reproduced true.

They change what the runs of the two cost models say, row by row, and serve several artifacts.
"""

from __future__ import annotations

from collections.abc import Callable

from paper_figures.rudra.settings import LEARNERS, Configuration
from paper_figures.rudra.simulations import CALIBRATED, CALIBRATED4, TABLE2, TABLE3, TABLE4, ImageNetRow
from suite.papers.artifact import Evidence
from suite.papers.counterfeits import counterfeit, edited, forged, genuine
from suite.papers.printed import printed_value
from suite.runs.store import Run

PREDICTED = [
    f"rudra/{table}/r{at:02d}-training-time"
    for table, rows in (("table2", TABLE2), ("table3", TABLE3))
    for at, row in enumerate(rows, 1)
    if row not in CALIBRATED
]
UNLIKE = "rudra/table2/r21-training-time"  # the row that the model does not predict


def retimed(evidence: Evidence, time: Callable[[dict[Configuration, float], Configuration], float]) -> Evidence:
    """The CIFAR-10 model's seconds as ``time`` makes them of all of them and a row."""

    def edit(run: Run) -> Run:
        rows: list[Configuration] = [(n, mu, learners) for n, mu, learners in run.results["rows"]]
        seconds = dict(zip(rows, run.results["predicted"], strict=True))
        return forged(run, {"predicted": [time(seconds, row) for row in rows]})

    return edited(evidence, edit, "times")


@counterfeit(
    *(claim for claim in PREDICTED if claim != UNLIKE),
    "rudra/table2/one-softsync-fastest",
    "rudra/table2/time-falls-with-lambda",
    "rudra/fig6/time-monotone-in-lambda",
)
def learners_save_nothing(evidence: Evidence) -> Evidence:
    """Whatever their number, learners take together as long as one."""
    return retimed(evidence, lambda seconds, row: seconds[0, row[1], 1])


@counterfeit(
    "rudra/table2/one-softsync-fastest",
    "rudra/table3/one-softsync-lowest-runtime",
    "rudra/fig7b/no-slowdown",
    "rudra/fig8a/hardsync-worst",
    "rudra/fig8b/one-softsync-best",
)
def protocols_alike(evidence: Evidence) -> Evidence:
    """Waiting for all, for some or for none takes the same time."""
    return retimed(evidence, lambda seconds, row: seconds[1, row[1], row[2]] if row[2] > 1 else seconds[row])


@counterfeit("rudra/fig7a/time-jump")
def batches_alike(evidence: Evidence) -> Evidence:
    """Small mini-batches cost neither throughput nor messages."""
    return retimed(evidence, lambda seconds, row: seconds[row[0], 128, row[2]])


@counterfeit("rudra/fig8a/softsyncs-similar")
def each_update_stalls(evidence: Evidence) -> Evidence:
    """An update for every gradient takes a quarter more time at mu = 128, too."""
    return retimed(evidence, lambda seconds, row: (1.25 if row[0] == row[2] > 1 else 1) * seconds[row])


@counterfeit("rudra/table2/time-falls-with-lambda", "rudra/fig6/time-monotone-in-lambda")
def numbers_of_learners_turned_round(evidence: Evidence) -> Evidence:
    """Thirty learners take as long as one, eighteen as two, and so on."""
    other = dict(zip(LEARNERS, reversed(LEARNERS), strict=True))
    return retimed(evidence, lambda seconds, row: seconds[0, row[1], other[row[2]]])


@genuine(UNLIKE)
def eighteen_on_eight_machines(evidence: Evidence) -> Evidence:
    """18 learners crowd their machines as 18 on eight machines would, not on the footnote's four."""

    def edit(run: Run) -> Run:
        crowding = run.results["crowding"]
        less = (1 + crowding * (18 / 8 - 1)) / (1 + crowding * (18 / 4 - 1))
        rows = zip(run.results["rows"], run.results["predicted"], strict=True)
        return forged(run, {"predicted": [less * seconds if row[2] == 18 else seconds for row, seconds in rows]})

    return edited(evidence, edit, "times")


@genuine("rudra/fig8b/hardsync-worst", "rudra/fig8b/time-ratio-at-30")
def hardsync_as_slow_as_printed(evidence: Evidence) -> Evidence:
    """Hardsync loses as much to its slowest learner as the printed time of (0, 4, 30) says."""
    theirs = printed_value("rudra/table3/r04-training-time")

    def time(seconds: dict[Configuration, float], row: Configuration) -> float:
        return seconds[row] * (theirs / seconds[0, 4, 30] if row[0] == 0 and row[2] > 1 else 1)

    return retimed(evidence, time)


def retold(evidence: Evidence, factor: float) -> Evidence:
    """Each row that is left out predicted at ``factor`` times its printed time."""

    def edit(run: Run) -> Run:
        printed = [row[-1] for row in run.spec.settings["calibrate"]]
        return forged(run, {"predicted": [[factor * seconds] for seconds in printed]})

    return edited(evidence, edit, "left out")


@genuine(
    *(f"rudra/table2/r{at:02d}-training-time" for at in (1, 2, 19)),
    *(f"rudra/table3/{row}-time" for row in ("r01-training", "r03-training", "baseline")),
)
def five_rows_tell_the_sixth(evidence: Evidence) -> Evidence:
    return retold(evidence, 1.1)


@counterfeit("rudra/table2/r04-training-time", "rudra/table2/r12-training-time")
def five_rows_tell_nothing(evidence: Evidence) -> Evidence:
    return retold(evidence, 2.0)


def in_minutes(evidence: Evidence, minutes: Callable[[ImageNetRow, float], float]) -> Evidence:
    """The ImageNet model's minutes per epoch as ``minutes`` makes them of a row and its own."""

    def edit(run: Run) -> Run:
        rows = zip(run.results["rows"], run.results["predicted"], strict=True)
        return forged(run, {"predicted": [minutes((a, n, mu, k), old) for (a, n, mu, k), old in rows]})

    return edited(evidence, edit, "times")


@counterfeit(*(f"rudra/table4/{name}" for name in TABLE4 if name not in CALIBRATED4))
def half_the_arithmetic(evidence: Evidence) -> Evidence:
    """The machine computes twice as fast as its calibration says."""
    return in_minutes(evidence, lambda row, old: old / 2)


@counterfeit("rudra/fig9/speed-order")
def systems_alike(evidence: Evidence) -> Evidence:
    """Trees of servers and of learners save nothing, nor does softsync."""
    return in_minutes(evidence, lambda row, old: 300.0)
