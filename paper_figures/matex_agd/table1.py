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
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from paper_figures.matex_agd import settings
from paper_figures.matex_agd.accuracy import (
    accuracies,
    accuracies_by_arm,
    at_checkpoints,
    ids,
    steps,
    trained_on,
)
from suite.claims.estimate import exact, interval, over_seeds, point
from suite.claims.intervals import least, mean_interval
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.papers.published import printed_value
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd
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


def measure_row(row: str) -> Callable[[Evidence], Quantities]:
    """Measures the accuracies of one row, whether or not the others are there."""

    def measure(evidence: Evidence) -> Quantities:
        seen, (what, proxy) = at_checkpoints(evidence, row), trained_on(evidence, row)
        for place, (batch, at) in enumerate(zip(BATCHES, seen, strict=True), start=1):
            yield (
                f"{row}-b{batch}",
                over_seeds([at], ids(evidence, row), f"{what} at checkpoint {place} of 5", proxy=proxy),
            )

    return measure


def measure_tradeoff(evidence: Evidence) -> Quantities:
    """What delay costs early in training, at equal batches."""
    rows = ("agd2", "agd1", "sgd")
    above = [least(steps(evidence, low, high)) for low, high in itertools.pairwise(rows)]
    what, proxy = trained_on(evidence, "sgd")
    note = f"{what}, AGD 1 over AGD 2 and SGD over AGD 1 where they are nearest, of five checkpoints"
    yield "tradeoff", over_seeds(above, ids(evidence, *rows), note, proxy=proxy)


def measure_all_rows(evidence: Evidence) -> Quantities:
    """Order of the rows and rise of each, on the data they were trained on."""
    worst_first = ROWS[::-1]
    of, (what, proxy) = ids(evidence, *ROWS), trained_on(evidence, "serial")
    above = [least(steps(evidence, low, high)) for low, high in itertools.pairwise(worst_first)]
    yield "order", over_seeds(above, of, f"{what}, each row over the next where they are nearest", proxy=proxy)
    seeds = [seed for row in ROWS for seed in accuracies(evidence, row)]
    rises = [b > a for seed in seeds for a, b in itertools.pairwise(seed)]
    yield "rises", point(sum(rises) / len(rises), runs=of, note=what, proxy=proxy)
    gap = steps(evidence, "sgd", "serial")[-1]
    yield "serial-over-sgd", over_seeds([gap], of, f"{what}, last checkpoint; the printed gap is 0.034", proxy=proxy)


def log_ratio(row: Sequence[float], other: Sequence[float]) -> float:
    """Mean over checkpoints of log(row / other)."""
    return math.fsum(math.log(a / b) for a, b in zip(row, other, strict=True)) / len(row)


def seed_pairs(rows: Sequence[Sequence[float]]) -> list[float]:
    """Size of the log ratio of every two runs that differ in nothing but their seed."""
    return [abs(log_ratio(a, b)) for a, b in itertools.combinations(rows, 2)]


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
        point(max(rounding), proxy=True, runs=of, n=len(rounding), note=f"{what}, same batches"),
    )
    parts = mean_interval([log_ratio(a, b) for a, b in zip(seen["partitioned"], seen["serial"], strict=True)])
    note = f"{what}, a part of the data for each of four workers, paired by seed"
    yield "gap-of-partition", over_seeds(parts, of, note, proxy=True)
    pairs = seed_pairs(seen["serial"])
    yield (
        "gap-of-seeds",
        interval(
            sorted(pairs)[len(pairs) // 2],
            min(pairs),
            max(pairs),
            proxy=True,
            n=len(seen["serial"]),
            runs=of,
            note=f"{what}, two serial runs: median and range over pairs of seeds",
        ),
    )
    share = sum(pair >= abs(gap) for pair in pairs) / len(pairs)
    yield "seeds-as-far-apart", point(share, proxy=True, runs=of, n=len(pairs), note="share of those pairs")


def measure_gap_on_the_proxy(evidence: Evidence) -> Quantities:
    """The yardsticks of the gap on the rows of the table's proxy themselves, where it has several seeds."""
    serial, ours = accuracies(evidence, "serial"), accuracies(evidence, "sgd")
    if len(serial) < 2:
        raise Missing(f"one seed of 'serial' at {evidence.profile}")
    what, proxy = trained_on(evidence, "serial")
    gaps = mean_interval([log_ratio(a, b) for a, b in zip(ours, serial, strict=True)])
    note = "mean over five checkpoints of log(SGD / serial), paired by seed"
    yield "proxy-gap", over_seeds([gaps], ids(evidence, "serial", "sgd"), f"{what}, {note}", proxy=proxy)
    pairs = seed_pairs(serial)
    note = f"{what}, largest log ratio of two serial runs"
    yield (
        "proxy-gap-of-seeds",
        point(max(pairs), runs=ids(evidence, "serial"), n=len(serial), note=note, proxy=proxy),
    )


def frame(evidence: Evidence) -> pd.DataFrame:
    """Accuracies printed and ours: source ("printed" or the data set), row, batches, seed, checkpoint, accuracy.

    Rows whose runs are not stored are left out. Raises Missing where none is.
    """
    import pandas as pd

    found = [
        {"source": "printed", "row": row, "batches": batch, "seed": 0, "checkpoint": place, "accuracy": value}
        for row, values in printed_table().items()
        for place, (batch, value) in enumerate(zip(BATCHES, values, strict=True), start=1)
    ]
    lacking = []
    for row in settings.LABELS:
        try:
            what, _ = trained_on(evidence, row)
        except Missing as error:
            lacking.append(str(error))
            continue
        every = evidence.runs(row)[0].spec.settings["evaluate"]["every"]
        found += [
            {
                "source": what,
                "row": row,
                "batches": every * place,
                "seed": seed,
                "checkpoint": place,
                "accuracy": value,
            }
            for seed, values in enumerate(accuracies(evidence, row))
            for place, value in enumerate(values, start=1)
        ]
    if len(lacking) == len(settings.LABELS):
        raise Missing(lacking[0])
    return pd.DataFrame(found).assign(row=lambda table: table["row"].map(settings.LABELS))


def draw(evidence: Evidence, figure: Figure) -> None:
    """Printed accuracies, ours, and the doubt about serial and SGD; on ImageNet ours stand among the printed."""
    table = frame(evidence)
    ours = table[table["source"] != "printed"]
    what, seeds = str(ours["source"].iloc[0]), int(ours["seed"].max()) + 1
    told = f"{what}, {seeds} seed{'s' * (seeds > 1)}"
    if what == "ImageNet":
        left, right = figure.subplots(1, 2)
        draw_rows(left, table[table["source"] == "printed"], printed=True)
        for line in left.lines:
            line.set_label("_printed")
        draw_rows(left, ours, printed=False)
        left.set_title(f"AlexNet, {told}; open: printed")
    else:
        left, middle, right = figure.subplots(1, 3)
        draw_rows(left, table[table["source"] == "printed"], printed=True)
        draw_rows(middle, ours, printed=False)
        left.set_title("as printed: AlexNet, ImageNet")
        middle.set_title(f"stand-in: {told}")
    draw_gap(evidence, right)


def draw_rows(axes: Axes, table: pd.DataFrame, *, printed: bool) -> None:
    """Accuracy over batches by row in the table's order: printed with open markers, ours with every seed."""
    import seaborn as sns

    from suite.report.style import LINES, MARKERS, PALETTE

    names = list(settings.LABELS.values())
    order = [name for name in names if name in set(table["row"])]
    colours = dict(zip(names, PALETTE, strict=False))
    if printed:
        for name in order:
            rows, place = table[table["row"] == name], names.index(name)
            axes.plot(
                rows["batches"], rows["accuracy"], color=colours[name], marker=MARKERS[place], linestyle=LINES[place],
                markerfacecolor="none", linewidth=0.8, label=name,
            )  # fmt: skip
    else:
        looks: dict[str, Any] = {"hue": "row", "hue_order": order, "palette": colours, "style": "row"}
        dashes = [(None, None), (4, 1.5), (4, 1.5, 1, 1.5), (1, 1), (5, 1, 1, 1)]
        sns.lineplot(
            table, x="batches", y="accuracy", **looks, style_order=names, dashes=dashes, markers=list(MARKERS[:5]),
            units="seed", estimator=None, linewidth=1, ax=axes,
        )  # fmt: skip
    axes.set(xlabel="batches", ylabel="top-1 accuracy")
    axes.set_ylim(0, 1.4 * table["accuracy"].max())  # room for the legend
    axes.legend(title="", loc="upper left", ncols=2, columnspacing=1)


def draw_gap(evidence: Evidence, axes: Axes) -> None:
    """What sets synchronous and serial rows apart: log ratio of accuracies at the five checkpoints."""
    import numpy as np
    import pandas as pd
    import seaborn as sns

    from suite.report.style import GRID, INK, PALETTE

    seen = {arm: np.log(rows) for arm, rows in accuracies_by_arm(evidence).items()}
    table = printed_table()
    pairs = [sign * (a - b) for a, b in itertools.combinations(seen["serial"], 2) for sign in (1, -1)]
    curves = {
        "serial, other seed / serial": pairs,
        "own parts of the data / serial": list(seen["partitioned"] - seen["serial"]),
        "same batches / serial": list(seen["split"] - seen["serial"]),
        "printed: SGD / serial": [np.log(table["sgd"]) - np.log(table["serial"])],
    }
    long = pd.DataFrame(
        [
            {"pair": pair, "unit": unit, "checkpoint": place, "log ratio": value}
            for pair, lines in curves.items()
            for unit, line in enumerate(lines)
            for place, value in enumerate(line, start=1)
        ]
    )
    colours = dict(zip(curves, (GRID, PALETTE[2], PALETTE[1], INK), strict=True))
    widths = dict(zip(curves, (0.4, 1.0, 1.8, 1.8), strict=True))
    sns.lineplot(
        long, x="checkpoint", y="log ratio", hue="pair", palette=colours, size="pair", sizes=widths,
        units="unit", estimator=None, linestyle="-", ax=axes,
    )  # fmt: skip
    printed = long[long["pair"] == "printed: SGD / serial"]
    axes.plot(printed["checkpoint"], printed["log ratio"], "o", color=INK, markerfacecolor="none")
    axes.set_title(f"stand-in: digits, {len(seen['serial'])} seeds")
    axes.set(xlabel="checkpoint", ylabel="log ratio of accuracies")
    axes.set_xticks(range(1, settings.CHECKPOINTS + 1))
    axes.set_ylim(bottom=2.2 * axes.get_ylim()[0])  # room for the legend
    axes.legend(title="", loc="lower left")


ARTIFACTS = (
    Artifact(
        "matex_agd/table1",
        "AlexNet accuracy after every 1000 batches on the DGX-1",
        runs,
        (
            measure_arithmetic,
            measure_all_rows,
            measure_tradeoff,
            *map(measure_row, ROWS),
            measure_gap,
            measure_gap_on_the_proxy,
        ),
        draw,
        "Accuracy over batches, printed and on the proxy, for serial, synchronous and delayed training; and how far "
        "rounding, the workers' own parts of the data and another seed set two runs apart, beside the printed gap",
        (10.4, 3.6),
        frame=frame,
    ),
)
