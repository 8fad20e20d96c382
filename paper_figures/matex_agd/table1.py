"""Table 1 and the sentences on accuracy: AlexNet on ImageNet at ``paper``, smaller data as a proxy elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from paper_figures.matex_agd import doubts, printed, settings
from suite.claims.measured import Measured, interval, point
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.spec import RunSpec

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IMAGENET = "matex_agd/imagenet"
BEST_LAST = ("agd2", "agd1", "sgd", "serial")  # rows of Table 1, worst first


def runs(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    return {**settings.table1(profile), "gap": (settings.GAP,)}


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


def trained_on(evidence: Evidence) -> tuple[str, str]:
    """The data set of the rows, and what that makes of their numbers: *measured* on ImageNet, else a *proxy*."""
    run = evidence.runs("serial")[0]
    if run.spec.experiment == IMAGENET:
        return "ImageNet", "measured"
    return run.spec.settings["data"]["name"], "proxy"


def ids(evidence: Evidence, *rows: str) -> tuple[str, ...]:
    return tuple(run.id for row in rows for run in evidence.runs(row))


def over_seeds(differences: list[list[float]], kind: str, of: tuple[str, ...], note: str) -> Measured:
    """Mean over seeds of each difference with its Student t interval; one seed gives no interval."""
    from suite.claims.intervals import mean_interval

    if len(differences[0]) < 2:
        return point([row[0] for row in differences], kind=kind, runs=of, note=note)
    seen = [mean_interval(row) for row in differences]
    return interval(
        [i.mean for i in seen],
        [i.low for i in seen],
        [i.high for i in seen],
        kind=kind,
        n=len(differences[0]),
        runs=of,
        note=note,
    )


def early_training(evidence: Evidence) -> Quantities:
    """Order of the rows and rise of each, on the data they were trained on."""
    seen = {row: accuracies(evidence, row) for row in BEST_LAST}
    of, (what, kind) = ids(evidence, *BEST_LAST), trained_on(evidence)
    steps = [
        [
            [b - a for a, b in zip(worse, better, strict=True)]
            for worse, better in zip(seen[low], seen[high], strict=True)
        ]
        for low, high in itertools.pairwise(BEST_LAST)
    ]
    least = [[min(values) for values in seeds] for seeds in steps]
    yield "order", over_seeds(least, kind, of, f"{what}, smallest step over five checkpoints, paired by seed")
    rises = [b - a for rows in seen.values() for row in rows for a, b in itertools.pairwise(row)]
    yield "rises", point(sum(step > 0 for step in rises) / len(rises), kind=kind, runs=of, note=what)
    mean = [[sum(values) / len(values) for values in seeds] for seeds in steps[:2]]
    note = f"{what}, mean over five checkpoints, paired by seed: AGD 1 over AGD 2, SGD over AGD 1"
    yield "tradeoff", over_seeds(mean, kind, of, note)
    gap = [[b[-1] - a[-1] for a, b in zip(seen["sgd"], seen["serial"], strict=True)]]
    yield "serial-over-sgd", over_seeds(gap, kind, of, f"{what}, last checkpoint; the printed gap is 0.034")
    for row in printed.ROWS:
        for place, batch in enumerate(printed.BATCHES):
            values = [[values[place] for values in seen[row]]]
            yield (
                f"{row}-b{batch}",
                over_seeds(values, kind, ids(evidence, row), f"{what} at checkpoint {place + 1} of 5"),
            )


def gap_on_the_proxy(evidence: Evidence) -> Quantities:
    """The yardsticks of :mod:`doubts` on the rows of the table's proxy themselves, where it has several seeds."""
    serial, ours = accuracies(evidence, "serial"), accuracies(evidence, "sgd")
    if len(serial) < 2:
        raise Missing(f"one seed of 'serial' at {evidence.profile}")
    what, kind = trained_on(evidence)
    gaps = [[doubts.log_ratio(a, b) for a, b in zip(ours, serial, strict=True)]]
    note = "mean over five checkpoints of log(SGD / serial), paired by seed"
    yield "proxy-gap", over_seeds(gaps, kind, ids(evidence, "serial", "sgd"), f"{what}, {note}")
    pairs = doubts.seed_pairs(serial)
    note = f"{what}, largest log ratio of two serial runs"
    yield (
        "proxy-gap-of-seeds",
        point(max(pairs), kind=kind, runs=ids(evidence, "serial"), n=len(serial), note=note),
    )


ENOUGH = {"ImageNet": 0.53, "mnist": 0.97}  # accuracy that counts as converged: "about 54%", less a point; LeNet's


def whole_training(evidence: Evidence) -> Quantities:
    """Accuracy at the end of a full training, and whether each approach reaches what its network should."""
    rows = ("serial", "agd1", "agd2", "agd3")
    seen = {row: accuracies(evidence, row) for row in rows}
    of, (what, kind) = ids(evidence, *rows), trained_on(evidence)
    last = [[b[-1] - a[-1] for a, b in zip(seen["serial"], seen[row], strict=True)] for row in rows[1:]]
    points = [[100 * value for value in row] for row in last]
    worst = min(points, key=sum)
    note = f"{what}, worst of AGD 1-3 less serial at the end, points"
    yield "final-accuracy-kept", over_seeds([worst], kind, of, note)
    reached = [max(values) >= ENOUGH[what] for row in rows[1:] for values in seen[row]]
    share, updates = sum(reached) / len(reached), evidence.runs("serial")[0].spec.settings["updates"]
    note = f"share of AGD runs at {100 * ENOUGH[what]:g}% on {what} within {updates} updates"
    yield "same-iterations", point(share, kind=kind, runs=of, note=note)
    yield "no-warm-start", point(share, kind=kind, runs=of, note="the same runs, at the full rate from the start")
    ends = [[100 * values[-1] for values in seen["agd2"]]]
    yield "alexnet-54", over_seeds(ends, kind, of, f"{what}, AGD 2 comm at the end, %")


def draw(evidence: Evidence, figure: Figure) -> None:
    """Printed accuracies, ours on the proxy, and the doubt about serial and SGD."""
    left, middle, right = figure.subplots(1, 3)
    table = printed.table1()
    for row, values in table.items():
        left.plot(printed.BATCHES, values, marker="o", markersize=3, label=settings.LABELS[row])
    left.set_title("printed: AlexNet, ImageNet", fontsize=9)
    left.legend(fontsize=6)
    for row, label in settings.LABELS.items():
        try:
            found = evidence.runs(row)
        except Missing:
            continue
        for place, run in enumerate(found):
            curve = run.curve("evaluations")
            colour = f"C{list(settings.LABELS).index(row)}"
            middle.plot(
                curve["update"],
                1 - curve["test_error"],
                color=colour,
                linewidth=1,
                label=label if not place else None,
            )
        what, kind = trained_on(evidence)
        middle.set_title(f"{kind}: {what}, {len(found)} seed{'s' * (len(found) > 1)}", fontsize=9)
    if middle.get_legend_handles_labels()[0]:
        middle.legend(fontsize=6)
    draw_gap(evidence, right)
    for axes in (left, middle):
        axes.set_ylabel("top-1 accuracy", fontsize=7)
        axes.set_xlabel("batches", fontsize=7)
    for axes in (left, middle, right):
        axes.tick_params(labelsize=6)


def draw_gap(evidence: Evidence, axes: Axes) -> None:
    """What sets synchronous and serial rows apart: log ratio of accuracies at the five checkpoints."""
    import numpy as np

    seen = {arm: np.log(rows) for arm, rows in doubts.accuracies(evidence).items()}
    checkpoints = range(1, settings.CHECKPOINTS + 1)

    def lines(rows: Iterable[np.ndarray], label: str, **style: Any) -> None:
        for place, row in enumerate(rows):
            axes.plot(checkpoints, row, linestyle="-", label=None if place else label, **style)

    pairs = [sign * (a - b) for a, b in itertools.combinations(seen["serial"], 2) for sign in (1, -1)]
    lines(pairs, "serial, other seed / serial", color="0.8", linewidth=0.7)
    lines(seen["partitioned"] - seen["serial"], "own parts of the data / serial", color="C2", linewidth=1)
    lines(seen["split"] - seen["serial"], "same batches / serial", color="C1", linewidth=1.6)
    table = printed.table1()
    gap = np.log(table["sgd"]) - np.log(table["serial"])
    lines([gap], "printed: SGD / serial", color="black", marker="o", markersize=3)
    axes.set_title(f"log ratio of accuracies, {len(seen['serial'])} seeds, digits", fontsize=9)
    axes.set_xlabel("checkpoint", fontsize=7)
    axes.set_xticks(checkpoints)
    axes.set_ylim(bottom=1.8 * axes.get_ylim()[0])  # room for the legend
    axes.legend(fontsize=6, loc="lower right")


TABLE1 = Artifact(
    "matex_agd/table1",
    "AlexNet accuracy after every 1000 batches on the DGX-1",
    runs,
    (printed.arithmetic_of_table1, early_training, doubts.serial_against_synchronous, gap_on_the_proxy),
    draw,
    "Accuracy over batches, printed and on the proxy, for serial, synchronous and delayed training; and how far "
    "rounding, the workers' own parts of the data and another seed set two runs apart, beside the printed gap",
    (9.6, 3.2),
)
