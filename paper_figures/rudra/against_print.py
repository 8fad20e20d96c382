"""Every error on CIFAR-10 that was trained in full, against the one that is printed: how far off, and how alike."""

from __future__ import annotations

import math
from statistics import correlation, fmean
from typing import TYPE_CHECKING

from paper_figures.rudra import seeds
from paper_figures.rudra.groups import label, training_groups
from paper_figures.rudra.readings import error_steps, final_error, own_seeds, runs_of
from paper_figures.rudra.rows import printed_error
from paper_figures.rudra.settings import EPOCHS, Configuration
from paper_figures.rudra.simulations import BASELINE, TABLE2, TABLE3
from suite.claims.measured import Measured, exact
from suite.papers.artifact import Evidence, Missing, Quantities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Pair = tuple[Configuration, float, Measured]


def trained(evidence: Evidence) -> Evidence:
    """The trainings of every printed row, those of Table 3 too."""
    return evidence.restricted(training_groups(evidence.profile, list(dict.fromkeys([BASELINE, *TABLE3, *TABLE2]))))


def pairs(evidence: Evidence) -> list[Pair]:
    """Configuration, printed error and ours with its interval (%), of each row trained for all epochs."""
    within, found = trained(evidence), list[Pair]()
    for row in dict.fromkeys([BASELINE, *TABLE3, *TABLE2]):
        try:
            whole = all(round(run.results["epoch"]) == EPOCHS for run in runs_of(within, label(row)))
        except Missing:
            continue
        if whole:
            found.append((row, printed_error(row), final_error(within, label(row))))
    return found


def distance(found: list[Pair]) -> tuple[float, float]:
    """Root mean square of ours minus printed in points, and their correlation."""
    printed, ours = [error for _, error, _ in found], [measured.values[0] for _, _, measured in found]
    return math.sqrt(fmean((a - b) ** 2 for a, b in zip(ours, printed, strict=True))), correlation(ours, printed)


def measure_against_print(evidence: Evidence) -> Quantities:
    """Over all rows trained in full; the spread that is borrowed from print; what 30-softsync costs over hardsync."""
    found = pairs(evidence)
    if len(found) < 3:
        raise Missing(f"{len(found)} rows trained for {EPOCHS} epochs at {evidence.profile}")
    runs = [run for _, _, measured in found for run in measured.runs]
    yield "against-print", exact((*distance(found), len(found)), runs=runs, note="rms in points, correlation, rows")
    yield "seeds-a-row", exact(max(measured.n for _, _, measured in found), runs=runs)
    yield "spread", exact(spread(evidence))
    yield "spread-is-borrowed", exact(float(not own_seeds(evidence)))
    yield "stalest-against-hardsync", error_steps(trained(evidence), [label((0, 4, 30)), label((30, 4, 30))])


def spread(evidence: Evidence) -> float:
    """The spread between seeds that the intervals rest on, in points: our own seeds', or that of rows in print."""
    return seeds.spread([], list(own_seeds(evidence).values()))[0]


def draw_diagonal(evidence: Evidence, found: list[Pair], axes: Axes) -> None:
    """Ours over printed, with the diagonal that they would lie on."""
    from suite.report.style import GRID, PALETTE

    axes.set(xlabel="printed test error (%)", ylabel="our test error (%)")
    axes.axline((18, 18), slope=1, color=GRID, linewidth=1, linestyle="--")
    for _, printed, measured in found:
        ((value, low, high),) = measured.spans
        length = [[value - low], [high - value]]
        axes.errorbar(printed, value, yerr=length, fmt="o", color=PALETTE[0], elinewidth=1, capsize=2)
    axes.set_aspect("equal", anchor="W")
    axes.set_xlim(axes.get_ylim())
    if len(found) > 2:
        rms, alike = distance(found)
        several = max(measured.n for _, _, measured in found) > 1
        whose = "our seeds" if own_seeds(evidence) else "rows in print"
        text = (
            f"{len(found)} rows, those of Table 3 too, trained for {EPOCHS} epochs\n"
            f"ours minus printed: {rms:.2f} points (root mean square)\n"
            f"correlation: {alike:.2f}\n"
            f"{'seeds' if several else 'one seed'} a row; intervals (95%) rest on the spread\n"
            f"of {spread(evidence):.2f} points between {whose}"
        )
        axes.text(1.08, 0.5, text, va="center", transform=axes.transAxes)
