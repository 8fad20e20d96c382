"""Fig. 8: speed-up against learners at (a) mu = 128 and (b) mu = 4, predicted by the calibrated cost model."""

from __future__ import annotations

from functools import partial
from typing import Any

from paper_figures.rudra import times
from paper_figures.rudra.drawing import logarithmic
from paper_figures.rudra.plans import BASELINE, CALIBRATED, PRINTED, printed_seconds, training_groups
from paper_figures.rudra.settings import LEARNERS, MANY, PROTOCOLS, splitting
from suite.papers.figure import Artifact, Figure, Frame, Groups, pd
from suite.report.style import GRID, INK, LINES, MARKERS, PALETTE, named_ticks


def runs(profile: str) -> Groups:
    return {**times.cifar(), **training_groups(profile, [(0, 128, 30), (30, 128, 30)])}


def panel(letter: str, mu: int, shown: str) -> Artifact:
    alt = f"Predicted speed-ups of three protocols at mu = {mu}; {shown}."
    return Artifact(f"rudra/fig8{letter}", f"Speed-up against learners at mu = {mu}", runs, alt=alt)


FIG8A, FIG8B = panel("a", 128, "hardsync is lowest"), panel("b", 4, "1-softsync is highest")


def speedups(frame: Frame, mu: int) -> dict[str, list[float]]:
    """Predicted speed-up over one learner with the same mu, by protocol, for LEARNERS."""
    seconds = times.predicted(frame)
    return {p: [seconds[0, mu, 1] / seconds[splitting(p, k), mu, k] for k in LEARNERS] for p in PROTOCOLS}


@FIG8A.quantity("softsyncs-similar", times.TIMES)
def similar(frame: Frame) -> list[float]:
    """Time of lambda-softsync over that of 1-softsync at mu = 128, for each number of learners."""
    seconds = times.predicted(frame)
    return [seconds[k, 128, k] / seconds[1, 128, k] for k in MANY]


@FIG8A.quantity("hardsync-worst", times.TIMES)
def behind(frame: Frame) -> float:
    """The smaller step, at 18 and 30 learners, from hardsync's speed-up to the slower softsync's."""
    hard, *soft = speedups(frame, 128).values()
    return min(min(gains[at] for gains in soft) - hard[at] for at in (-2, -1))


@FIG8B.quantity("one-softsync-best", times.TIMES)
def best(frame: Frame) -> float:
    """By how much 1-softsync gains more than lambda-softsync with 18 learners."""
    gains, at = speedups(frame, 4), LEARNERS.index(18)
    return gains["1-softsync"][at] - gains["lambda-softsync"][at]


@FIG8B.quantity("hardsync-worst", times.TIMES)
def order(frame: Frame) -> list[float]:
    """Steps of the speed-up with 30 learners from hardsync to lambda-softsync, and on to 1-softsync."""
    hard, stalest, one = (gains[-1] for gains in speedups(frame, 4).values())
    return [stalest - hard, one - stalest]


def table(mu: int, frame: Frame) -> pd.DataFrame:
    """Speed-ups over (0, mu, 1): predicted ones of all protocols, and those of printed times where both are printed.

    Columns: protocol, learners, source ("printed", "predicted" or "calibration row"), speedup.
    """
    found = []
    for protocol, values in speedups(frame, mu).items():
        for learners, speedup in zip(LEARNERS, values, strict=True):
            row = (splitting(protocol, learners) if learners > 1 else 0, mu, learners)
            about = {"protocol": protocol, "learners": learners}
            found.append(about | {"source": times.source_of(row in CALIBRATED), "speedup": speedup})
            if BASELINE[1] == mu and row in PRINTED and row != BASELINE:
                printed = printed_seconds(BASELINE) / printed_seconds(row)
                found.append(about | {"source": "printed", "speedup": printed})
    return pd.DataFrame(found)


def draw(mu: int, frame: Frame, figure: Figure) -> None:
    """Speed-ups over learners, both logarithmic, so that a tenth is as wide at two learners as at thirty."""
    rows = table(mu, frame)
    axes = figure.subplots()
    axes.plot(LEARNERS, LEARNERS, color=GRID, linewidth=0.8, linestyle="--", label="linear")
    for protocol, colour, line, marker in zip(PROTOCOLS, PALETTE, LINES, MARKERS, strict=False):
        part = rows[rows["protocol"] == protocol]
        ours, printed = part[part["source"] != "printed"], part[part["source"] == "printed"]
        axes.plot(ours["learners"], ours["speedup"], color=colour, linestyle=line, marker=marker, label=protocol)
        hollow: dict[str, Any] = {"s": 90, "marker": marker, "facecolors": "none", "edgecolors": colour, "zorder": 3}
        if len(printed):
            axes.scatter(printed["learners"], printed["speedup"], label=f"{protocol}, printed times", **hollow)
    fitted = rows[rows["source"] == times.FITTED]
    axes.scatter(fitted["learners"], fitted["speedup"], marker="x", color=INK, zorder=4, label=times.FITTED)
    axes.set(xlabel="learners", ylabel=f"speed-up over (0, {mu}, 1)", title="times predicted by the cost model")
    logarithmic(axes, "y")
    named_ticks(axes, LEARNERS)
    axes.legend()


for figure, mu in ((FIG8A, 128), (FIG8B, 4)):
    figure.table(partial(table, mu))
    figure.drawing(partial(draw, mu))
