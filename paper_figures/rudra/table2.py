"""Table 2: error and time of 23 configurations; those of about equal mu lambda have about equal errors.

Errors come from training at full size, times of the paper's machine from the calibrated cost model. Below the table
stands every error that was trained in full, those of Table 3 too, against the one that is printed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from statistics import correlation, fmean
from typing import Any

from paper_figures.rudra import errors, plans, times
from paper_figures.rudra.drawing import cifar_rows, draw_cifar
from paper_figures.rudra.errors import OWN, finals, is_whole, own_seeds
from paper_figures.rudra.settings import EPOCHS, Configuration, at_profile
from suite.claims.estimate import Estimate
from suite.claims.intervals import LEVEL, Interval, mean_interval, pooled, quantile
from suite.papers.figure import FIRST, Artifact, Axes, Figure, Frame, Groups, Missing
from suite.report.style import GRID, PALETTE

GROUPS = (128, 256, 512, 1024)  # about mu lambda
STALER = (1, 4, 30)  # trained along Rudra-adv*, too
ALONG_TREES = f"{plans.label(STALER)} in Rudra-adv*"


def runs(profile: str) -> Groups:
    trees = {ALONG_TREES: at_profile(STALER, "paper", system="adv*")} if profile == "paper" else {}
    return {**times.cifar_table(profile, plans.TABLE2), **trees}


def beside(profile: str) -> Groups:
    """Trainings of Table 3, and the seeds that give the spread."""
    return {**plans.training_groups(profile, [plans.BASELINE, *plans.TABLE3]), **own_seeds(profile)}


PANEL = Artifact(
    "rudra/table2", "Error and time of configurations of about equal mu lambda", runs, size=(9.0, 9.6), beside=beside
)


NEAREST = {row: min(GROUPS, key=lambda g: abs(g - row[1] * row[2]) / g) for row in plans.TABLE2}


def members(group: int) -> list[Configuration]:
    """Rows of one of the paper's groups: those to whose mu lambda it is the nearest power of two."""
    return [row for row in plans.TABLE2 if NEAREST[row] == group]


for at, row in enumerate(plans.TABLE2, 1):
    PANEL.quantities[f"r{at:02d}-test-error"] = errors.mean(row)
    if row in plans.CALIBRATED:
        PANEL.quantities[f"r{at:02d}-left-out"] = times.left_out_of(row)
    else:
        PANEL.quantities[f"r{at:02d}-training-time"] = times.time_of(row)
PANEL.quantity("times-held-out", times.TIMES, note="by the cost model, by learners alone, rows")(times.held_out)
PANEL.quantities["staleness-irrelevant"] = errors.differences(*(((1, mu, 30), (30, mu, 30)) for mu in (4, 32)))
PANEL.quantities["error-monotone-in-product"] = errors.steps(*map(members, GROUPS))


def about_trees(frame: Frame) -> str:
    groups = map(frame.results, (plans.label(STALER), ALONG_TREES))
    base, trees = [fmean([run["mean_staleness"] for run in runs]) for runs in groups]
    return f"mean staleness of {base:.2f} and {trees:.2f} updates"


PANEL.quantities["adv-star-keeps-error"] = replace(errors.differences((STALER, ALONG_TREES)), note=about_trees)


@PANEL.quantity("one-softsync-fastest", times.TIMES)
def fastest(frame: Frame) -> float:
    """Share of groups of which 1-softsync has the shortest predicted time."""
    seconds = times.predicted(frame)
    by_one = [min(members(group), key=lambda row: seconds[row])[0] == 1 for group in GROUPS]
    return sum(by_one) / len(by_one)


@PANEL.quantity("time-falls-with-lambda", times.TIMES)
def falls(frame: Frame) -> float:
    """Share of pairs of a group with different numbers of learners of which the larger number takes less time."""
    seconds = times.predicted(frame)
    pairs = [(more, less) for group in GROUPS for more, less in permutations(members(group), 2) if more[2] > less[2]]
    return sum(seconds[more] < seconds[less] for more, less in pairs) / len(pairs)


def agreement(printed: Sequence[float], ours: Sequence[float]) -> tuple[Interval, Interval]:
    """Root mean square of ours minus printed, and their correlation, over rows, with 95% intervals.

    The first is Student's t on the squared differences, its lower end no less than 0; the second is Fisher's z, or 0
    where ours do not differ.
    """
    squares = mean_interval([(a - b) ** 2 for a, b in zip(ours, printed, strict=True)])
    mean, low, high = (math.sqrt(max(0.0, end)) for end in (squares.mean, squares.low, squares.high))
    apart = Interval(mean, low, high, 1, squares.freedom)
    if len(set(ours)) == 1:
        return apart, Interval(0.0, 0.0, 0.0, 1)
    found = correlation(printed, ours)
    z = math.atanh(math.copysign(min(abs(found), math.nextafter(1, 0)), found))
    half = quantile(0, LEVEL) / math.sqrt(len(ours) - 3) if len(ours) > 3 else math.inf
    return apart, Interval(found, math.tanh(z - half), math.tanh(z + half), 1)


def over_table(which: int, frame: Frame) -> Interval:
    """A measure of ``agreement`` over the whole table. Raises Missing where a row has no whole run."""
    if short := len(plans.TABLE2) - len(set(plans.TABLE2).intersection(trained_in_full(frame))):
        raise Missing(f"{short} of {len(plans.TABLE2)} rows have no run of {EPOCHS} epochs")
    ours = [fmean(finals(frame, plans.label(row))) for row in plans.TABLE2]
    return agreement([plans.printed_error(row) for row in plans.TABLE2], ours)[which]


for name, which in (("errors-rms", 0), ("errors-correlation", 1)):
    note = f"interval over the {len(plans.TABLE2)} rows"
    PANEL.quantity(name, map(plans.label, plans.TABLE2), seeds=FIRST, note=note)(partial(over_table, which))


# ---------------------------------------------------------------- what was trained in full, against print


def trained_in_full(frame: Frame) -> list[Configuration]:
    """The rows of Tables 2 and 3 that are stored and were trained for all epochs, or diverged."""
    rows = dict.fromkeys([plans.BASELINE, *plans.TABLE3, *plans.TABLE2])
    stored = {row: frame.results(plans.label(row)) for row in rows}
    return [row for row, runs in stored.items() if runs and all(map(is_whole, runs))]


def against_print(frame: Frame) -> list[tuple[Configuration, float, Estimate]]:
    """Configuration, printed error and ours with its interval (%), of each row trained for all epochs."""
    return [(row, plans.printed_error(row), errors.mean(row).of(frame)) for row in trained_in_full(frame)]


def distance(found: list[tuple[Configuration, float, Estimate]]) -> tuple[float, float]:
    """Root mean square of ours minus printed in points, and their correlation."""
    apart, alike = agreement([error for _, error, _ in found], [measured.values[0] for _, _, measured in found])
    return apart.mean, alike.mean


def in_full(frame: Frame) -> list[str]:
    """The groups of those rows. Raises Missing for fewer than three."""
    groups = [plans.label(row) for row in trained_in_full(frame)]
    if len(groups) < 3:
        raise Missing(f"has only {len(groups)} rows trained for {EPOCHS} epochs at {frame.profile}")
    return groups


@PANEL.quantity("against-print", in_full, seeds=FIRST, beside=OWN, note="rms in points, correlation, rows")
def whole_distance(frame: Frame) -> list[float]:
    """The distance from print over all rows trained in full, and how many they are."""
    found = against_print(frame)
    return [*distance(found), len(found)]


@PANEL.quantity("seeds-a-row", in_full, seeds=FIRST, beside=OWN)
def most_seeds(frame: Frame) -> float:
    return max(measured.n for _, _, measured in against_print(frame))


def seeds_spread(frame: Frame) -> tuple[float, str]:
    """The spread between seeds that the intervals rest on, in points, and whose it is."""
    own = errors.own(frame.needed((), beside=tuple(errors.OWN)))
    return pooled(own.values() or errors.printed_pairs())[0], "our seeds" if own else "rows in print"


PANEL.quantity("spread", beside=OWN)(lambda frame: seeds_spread(frame)[0])
PANEL.quantity("spread-is-borrowed", beside=OWN)(lambda frame: float(seeds_spread(frame)[1] == "rows in print"))
PANEL.quantities["stalest-against-hardsync"] = errors.steps((0, 4, 30), (30, 4, 30))


# ---------------------------------------------------------------- drawing


table = PANEL.table(partial(cifar_rows, plans.TABLE2))


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Printed errors and times of 23 configurations, and ours with 95% intervals; the cost model is fitted to
    crosses. Below, our errors over the printed ones beside the diagonal.
    """
    found = against_print(frame)
    parts: Any = figure.subfigures(2, 1, height_ratios=(9, 4)) if found else (figure,)
    above = parts[0]
    draw_cifar(table(frame), above)
    if found:
        draw_diagonal(frame, found, parts[1].subplots())
    for group in GROUPS:
        name_group(group, *above.axes)
        for axes in above.axes if group > GROUPS[0] else ():
            axes.axhline(plans.TABLE2.index(members(group)[0]) - 0.5, color=GRID, linewidth=1)


def name_group(group: int, left: Axes, right: Axes) -> None:
    """The range of printed errors within a group, beside its last row, and of products, beside its first."""
    rows = members(group)
    products, printed = [mu * k for _, mu, k in rows], [plans.printed_error(row) for row in rows]
    side = "left" if 2 * printed[-1] > sum(left.get_xlim()) else "right"  # where there are no marks
    look: dict[str, Any] = {"va": "center", "size": 8}
    for axes, row, ha, text in (
        (left, rows[-1], side, f"printed errors span {max(printed) - min(printed):.2f} points"),
        (right, rows[0], "right", rf"$\mu\lambda\approx$ {group}: {min(products)} to {max(products)}"),
    ):
        at = 0.99 if ha == "right" else 0.01
        axes.text(at, plans.TABLE2.index(row), text, ha=ha, transform=axes.get_yaxis_transform(), **look)


def draw_diagonal(frame: Frame, found: list[tuple[Configuration, float, Estimate]], axes: Axes) -> None:
    """Ours over printed, with the diagonal that they would lie on."""
    axes.set(xlabel="printed test error (%)", ylabel="our test error (%)")
    axes.axline((18, 18), slope=1, color=GRID, linewidth=1, linestyle="--")
    for _, printed, measured in found:
        ((value, low, high),) = measured.spans
        length = [[value - low], [high - value]]
        axes.errorbar(printed, value, yerr=length, fmt="o", color=PALETTE[0], elinewidth=1, capsize=2)
    axes.set_aspect("equal", anchor="W")
    axes.set_xlim(axes.get_ylim())
    axes.set_xticks([tick for tick in axes.get_yticks() if tick % 4 == 2])
    axes.set_yticks(axes.get_xticks())
    if len(found) > 2:
        (rms, alike), (deviation, whose) = distance(found), seeds_spread(frame)
        seeds = {measured.n for _, _, measured in found}
        each = "one seed" if seeds == {1} else f"{min(seeds)} to {max(seeds)} seeds"
        text = (
            f"{len(found)} rows, those of Table 3 too, trained for {EPOCHS} epochs\n"
            f"ours minus printed: {rms:.2f} points (root mean square)\n"
            f"correlation: {alike:.3f}\n"
            f"{each} a row; intervals (95%) rest on the spread\n"
            f"of {deviation:.2f} points between {whose}"
        )
        axes.text(1.08, 0.5, text, va="center", transform=axes.transAxes)
