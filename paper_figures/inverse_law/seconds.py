"""What the stored timings of the closed loop say."""

from __future__ import annotations

from statistics import fmean, median
from typing import Any


def mean_seconds(runs: Any) -> dict[int, float]:
    """Mean over seeds of the median over repeats of the seconds to converge, by batch size."""
    return {
        int(batch): fmean(median(part["seconds"]) for _, part in group.groupby("seed"))
        for batch, group in runs.groupby("batch")
    }


def seed_seconds(runs: Any) -> list[tuple[int, float]]:
    """Median over repeats of the seconds to converge of every batch size and seed."""
    return [(int(batch), median(part["seconds"])) for (batch, _), part in runs.groupby(["batch", "seed"])]
