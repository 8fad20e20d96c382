"""Table 1's rows *serial* and *SGD*, which exact arithmetic makes equal and the table prints 21% apart.

Three things can set them apart: float32 adds in another order, the workers' own parts of the data make other
batches, and each row is a single run. The yardstick is the mean over the five checkpoints of the logarithm of the
ratio of two rows' accuracies: it does not depend on how many classes or examples there are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from paper_figures.matex_agd import printed
from suite.claims.measured import exact, interval, point
from suite.papers.artifact import Evidence, Quantities


def log_ratio(row: Sequence[float], other: Sequence[float]) -> float:
    """Mean over checkpoints of log(row / other)."""
    return math.fsum(math.log(a / b) for a, b in zip(row, other, strict=True)) / len(row)


def accuracies(evidence: Evidence) -> dict[str, list[list[float]]]:
    """Accuracy at the five checkpoints by arm and seed."""
    table = evidence.run("gap").curve("gap")
    table = table[table["update"] > 0].sort_values(["seed", "update"])
    return {
        str(arm): [part["accuracy"].tolist() for _, part in rows.groupby("seed")]
        for arm, rows in table.groupby("arm")
    }


def seed_pairs(rows: Sequence[Sequence[float]]) -> list[float]:
    """Size of the log ratio of every two runs that differ in nothing but their seed."""
    return [abs(log_ratio(a, b)) for a, b in itertools.combinations(rows, 2)]


def serial_against_synchronous(evidence: Evidence) -> Quantities:
    """The printed gap, and what rounding, partition and seeds make of it on the proxy."""
    from suite.claims.intervals import mean_interval

    table = printed.table1()
    gap = log_ratio(table["sgd"], table["serial"])
    yield "printed-gap", exact(gap, note="mean over five checkpoints of log(SGD / serial)")
    run, seen = evidence.run("gap"), accuracies(evidence)
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
