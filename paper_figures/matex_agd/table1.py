"""Table 1 and the sentences on accuracy: printed for AlexNet on ImageNet, trained here on smaller data."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from paper_figures.artifact import Artifact, Evidence, Missing, Quantities
from paper_figures.matex_agd import doubts, printed, settings
from suite.measured import Measured, interval, point
from suite.spec import RunSpec

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEST_LAST = ("agd2", "agd1", "sgd", "serial")  # rows of Table 1, worst first


def runs(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    return {**settings.table1(profile), "gap": (settings.GAP,)}


def accuracies(evidence: Evidence, row: str) -> list[list[float]]:
    """Top-1 accuracy at the five checkpoints, by seed; a run that diverged stays at chance from there on."""
    found = []
    for run in evidence.runs(row):
        table = run.curve("evaluations")
        values = [1 - error for error in table["test_error"][1:]]
        found.append(values + [0.1] * (settings.CHECKPOINTS - len(values)))
    return found


def ids(evidence: Evidence, *rows: str) -> tuple[str, ...]:
    return tuple(run.id for row in rows for run in evidence.runs(row))


def proxy(differences: list[list[float]], of: tuple[str, ...], note: str) -> Measured:
    """Mean over seeds of each difference with its Student t interval; one seed gives no interval."""
    from suite.statistics import mean_interval

    if len(differences[0]) < 2:
        return point([row[0] for row in differences], kind="proxy", runs=of, note=note)
    seen = [mean_interval(row) for row in differences]
    return interval(
        [i.mean for i in seen],
        [i.low for i in seen],
        [i.high for i in seen],
        kind="proxy",
        n=len(differences[0]),
        runs=of,
        note=note,
    )


def early_training(evidence: Evidence) -> Quantities:
    """Order of the rows and rise of each, on the proxy's data."""
    seen = {row: accuracies(evidence, row) for row in BEST_LAST}
    of = ids(evidence, *BEST_LAST)
    what = evidence.runs("serial")[0].spec.settings["data"]["name"]
    steps = [
        [sum(b) / len(b) - sum(a) / len(a) for a, b in zip(seen[lower], seen[upper], strict=True)]
        for lower, upper in itertools.pairwise(BEST_LAST)
    ]
    note = f"{what}, mean over five checkpoints, paired by seed"
    yield "order", proxy(steps, of, note)
    rises = [b - a for rows in seen.values() for row in rows for a, b in itertools.pairwise(row)]
    yield "rises", point(sum(step > 0 for step in rises) / len(rises), kind="proxy", runs=of, note=what)
    yield "tradeoff", proxy(steps[:2], of, f"{note}: AGD 1 over AGD 2, SGD over AGD 1")
    gap = [[b[-1] - a[-1] for a, b in zip(seen["sgd"], seen["serial"], strict=True)]]
    yield "serial-over-sgd", proxy(gap, of, f"{what}, last checkpoint; the printed gap is 0.034")
    for row in printed.ROWS:
        for place, batch in enumerate(printed.BATCHES):
            values = [[values[place] for values in seen[row]]]
            yield f"{row}-b{batch}", proxy(values, ids(evidence, row), f"{what} at checkpoint {place + 1} of 5")


def gap_on_the_proxy(evidence: Evidence) -> Quantities:
    """The yardsticks of :mod:`doubts` on the rows of the table's proxy themselves, where it has several seeds."""
    serial, ours = accuracies(evidence, "serial"), accuracies(evidence, "sgd")
    if len(serial) < 2:
        raise Missing(f"one seed of 'serial' at {evidence.profile}")
    what = evidence.runs("serial")[0].spec.settings["data"]["name"]
    gaps = [[doubts.log_ratio(a, b) for a, b in zip(ours, serial, strict=True)]]
    note = "mean over five checkpoints of log(SGD / serial), paired by seed"
    yield "proxy-gap", proxy(gaps, ids(evidence, "serial", "sgd"), f"{what}, {note}")
    pairs = doubts.seed_pairs(serial)
    note = f"{what}, largest log ratio of two serial runs"
    yield (
        "proxy-gap-of-seeds",
        point(max(pairs), kind="proxy", runs=ids(evidence, "serial"), n=len(serial), note=note),
    )


def whole_training(evidence: Evidence) -> Quantities:
    """Accuracy at the end of a full training on MNIST, and whether each approach reaches 97%."""
    rows = ("serial", "agd1", "agd2", "agd3")
    seen = {row: accuracies(evidence, row) for row in rows}
    of = ids(evidence, *rows)
    last = [[b[-1] - a[-1] for a, b in zip(seen["serial"], seen[row], strict=True)] for row in rows[1:]]
    points = [[100 * value for value in row] for row in last]
    worst = min(points, key=sum)
    yield "final-accuracy-kept", proxy([worst], of, "MNIST, worst of AGD 1-3 less serial at the end, points")
    reached = [max(values) >= 0.97 for row in rows[1:] for values in seen[row]]
    share = sum(reached) / len(reached)
    yield (
        "same-iterations",
        point(share, kind="proxy", runs=of, note="share of AGD runs at 97% on MNIST within 600 updates"),
    )
    yield "no-warm-start", point(share, kind="proxy", runs=of, note="the same runs, at the full rate from the start")
    yield "alexnet-54", proxy([[100 * v[-1] for v in seen["agd2"]]], of, "MNIST, AGD 2 comm at the end, %")


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
        name = found[0].spec.settings["data"]["name"]
        middle.set_title(f"proxy: {name}, {len(found)} seed{'s' * (len(found) > 1)}", fontsize=9)
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
