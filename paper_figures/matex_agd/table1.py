"""Table 1: AlexNet's top-1 accuracy on ImageNet after every 1000 batches, serial, synchronous and delayed.

The rows are trained on ImageNet at ``paper`` and on smaller data, as a proxy, elsewhere. Its rows *serial* and
*SGD*, which exact arithmetic makes equal, are printed 21% apart. Three things can set them apart: float32 adds in
another order, the workers' own parts of the data make other batches, and each row is a single run. The yardstick
for that is the mean over the five checkpoints of the logarithm of the ratio of two rows' accuracies: it does not
depend on how many classes or examples there are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paper_figures.matex_agd import settings
from paper_figures.matex_agd.accuracy import accuracies, ids, over_seeds, trained_on
from suite.claims.intervals import mean_interval
from suite.claims.measured import exact, interval, point
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.papers.printed import printed_value
from suite.spec import RunSpec

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS = ("serial", "sgd", "agd1", "agd2")  # best first
BATCHES = (1000, 2000, 3000, 4000, 5000)


def runs(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    return {**settings.table1(profile), "gap": (settings.GAP,)}


def printed_table() -> dict[str, list[float]]:
    """Table 1 as printed: accuracy by row, at the five checkpoints."""
    return {row: [printed_value(f"matex_agd/table1/{row}-b{batch}") for batch in BATCHES] for row in ROWS}


def measure_arithmetic(evidence: Evidence) -> Quantities:
    """What follows from the twenty printed numbers alone."""
    table = printed_table()
    values = [value for row in table.values() for value in row]
    yield (
        "grid",
        exact(float(smallest_set(values)), note="smallest number of images of which all 20 are whole counts"),
    )
    chance = 1 / 1000
    deviation = (chance * (1 - chance) / 50_000) ** 0.5
    note = f"1/classes; one standard deviation over 50,000 images is {deviation:.5f}"
    yield "agd2-chance", exact(chance, note=note)
    last = [table[row][-1] / table["serial"][-1] for row in ("agd1", "agd2")]
    yield "agd1-over-serial-5000", exact(last)


def smallest_set(shares: list[float], limit: int = 200_000) -> int:
    """The smallest N for which every share times N is whole, to the five digits printed."""
    scaled = [round(share * 10**5) for share in shares]
    return next(n for n in range(1, limit) if all(value * n % 10**5 == 0 for value in scaled))


def measure_early_training(evidence: Evidence) -> Quantities:
    """Order of the rows and rise of each, on the data they were trained on."""
    worst_first = ROWS[::-1]
    seen = {row: accuracies(evidence, row) for row in worst_first}
    of, (what, kind) = ids(evidence, *worst_first), trained_on(evidence)
    steps = [
        [
            [b - a for a, b in zip(worse, better, strict=True)]
            for worse, better in zip(seen[low], seen[high], strict=True)
        ]
        for low, high in itertools.pairwise(worst_first)
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
    for row in ROWS:
        for place, batch in enumerate(BATCHES):
            values = [[values[place] for values in seen[row]]]
            yield (
                f"{row}-b{batch}",
                over_seeds(values, kind, ids(evidence, row), f"{what} at checkpoint {place + 1} of 5"),
            )


def log_ratio(row: Sequence[float], other: Sequence[float]) -> float:
    """Mean over checkpoints of log(row / other)."""
    return math.fsum(math.log(a / b) for a, b in zip(row, other, strict=True)) / len(row)


def seed_pairs(rows: Sequence[Sequence[float]]) -> list[float]:
    """Size of the log ratio of every two runs that differ in nothing but their seed."""
    return [abs(log_ratio(a, b)) for a, b in itertools.combinations(rows, 2)]


def accuracies_by_arm(evidence: Evidence) -> dict[str, list[list[float]]]:
    """Accuracy at the five checkpoints by arm of ``matex_agd/serial_gap`` and by seed."""
    table = evidence.run("gap").curve("gap")
    table = table[table["update"] > 0].sort_values(["seed", "update"])
    return {
        str(arm): [part["accuracy"].tolist() for _, part in rows.groupby("seed")]
        for arm, rows in table.groupby("arm")
    }


def measure_gap(evidence: Evidence) -> Quantities:
    """The printed gap, and what rounding, partition and seeds make of it on the proxy."""
    table = printed_table()
    gap = log_ratio(table["sgd"], table["serial"])
    yield "printed-gap", exact(gap, note="mean over five checkpoints of log(SGD / serial)")
    run, seen = evidence.run("gap"), accuracies_by_arm(evidence)
    what, of = run.spec.settings["problem"]["data"]["name"], (run.id,)
    rounding = [abs(log_ratio(a, b)) for a, b in zip(seen["split"], seen["serial"], strict=True)]
    yield (
        "gap-of-rounding",
        point(max(rounding), kind="proxy", runs=of, n=len(rounding), note=f"{what}, same batches"),
    )
    parts = mean_interval([log_ratio(a, b) for a, b in zip(seen["partitioned"], seen["serial"], strict=True)])
    note = f"{what}, a part of the data for each of four workers, paired by seed"
    yield "gap-of-partition", interval(parts.mean, parts.low, parts.high, kind="proxy", n=parts.n, runs=of, note=note)
    pairs = seed_pairs(seen["serial"])
    yield (
        "gap-of-seeds",
        interval(
            sorted(pairs)[len(pairs) // 2],
            min(pairs),
            max(pairs),
            kind="proxy",
            n=len(seen["serial"]),
            runs=of,
            note=f"{what}, two serial runs: median and range over pairs of seeds",
        ),
    )
    share = sum(pair >= abs(gap) for pair in pairs) / len(pairs)
    yield "seeds-as-far-apart", point(share, kind="proxy", runs=of, n=len(pairs), note="share of those pairs")


def measure_gap_on_the_proxy(evidence: Evidence) -> Quantities:
    """The yardsticks of the gap on the rows of the table's proxy themselves, where it has several seeds."""
    serial, ours = accuracies(evidence, "serial"), accuracies(evidence, "sgd")
    if len(serial) < 2:
        raise Missing(f"one seed of 'serial' at {evidence.profile}")
    what, kind = trained_on(evidence)
    gaps = [[log_ratio(a, b) for a, b in zip(ours, serial, strict=True)]]
    note = "mean over five checkpoints of log(SGD / serial), paired by seed"
    yield "proxy-gap", over_seeds(gaps, kind, ids(evidence, "serial", "sgd"), f"{what}, {note}")
    pairs = seed_pairs(serial)
    note = f"{what}, largest log ratio of two serial runs"
    yield (
        "proxy-gap-of-seeds",
        point(max(pairs), kind=kind, runs=ids(evidence, "serial"), n=len(serial), note=note),
    )


def draw(evidence: Evidence, figure: Figure) -> None:
    """Printed accuracies, ours on the proxy, and the doubt about serial and SGD."""
    left, middle, right = figure.subplots(1, 3)
    table = printed_table()
    for row, values in table.items():
        left.plot(BATCHES, values, marker="o", markersize=3, label=settings.LABELS[row])
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

    seen = {arm: np.log(rows) for arm, rows in accuracies_by_arm(evidence).items()}
    checkpoints = range(1, settings.CHECKPOINTS + 1)

    def lines(rows: Iterable[np.ndarray], label: str, **style: Any) -> None:
        for place, row in enumerate(rows):
            axes.plot(checkpoints, row, linestyle="-", label=None if place else label, **style)

    pairs = [sign * (a - b) for a, b in itertools.combinations(seen["serial"], 2) for sign in (1, -1)]
    lines(pairs, "serial, other seed / serial", color="0.8", linewidth=0.7)
    lines(seen["partitioned"] - seen["serial"], "own parts of the data / serial", color="C2", linewidth=1)
    lines(seen["split"] - seen["serial"], "same batches / serial", color="C1", linewidth=1.6)
    table = printed_table()
    gap = np.log(table["sgd"]) - np.log(table["serial"])
    lines([gap], "printed: SGD / serial", color="black", marker="o", markersize=3)
    axes.set_title(f"log ratio of accuracies, {len(seen['serial'])} seeds, digits", fontsize=9)
    axes.set_xlabel("checkpoint", fontsize=7)
    axes.set_xticks(checkpoints)
    axes.set_ylim(bottom=1.8 * axes.get_ylim()[0])  # room for the legend
    axes.legend(fontsize=6, loc="lower right")


ARTIFACTS = (
    Artifact(
        "matex_agd/table1",
        "AlexNet accuracy after every 1000 batches on the DGX-1",
        runs,
        (measure_arithmetic, measure_early_training, measure_gap, measure_gap_on_the_proxy),
        draw,
        "Accuracy over batches, printed and on the proxy, for serial, synchronous and delayed training; and how far "
        "rounding, the workers' own parts of the data and another seed set two runs apart, beside the printed gap",
        (9.6, 3.2),
    ),
)
