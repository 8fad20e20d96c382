"""The small experiments' specifications and what is read from them: sizes, noise, learners, the closed loop."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from paper_figures.inverse_law.runs import ROWS, curve_specs
from suite.claims.intervals import Interval, log_interval, mean_interval
from suite.claims.measured import exact, interval, point
from suite.papers.artifact import Evidence, Groups, Quantities
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd

TABLE = tuple(next(row for row in ROWS if row.table == number) for number in range(1, 12))
DIGITS = {
    "data": {"name": "digits", "labels": "digits", "transform": "standardise-global"},
    "model": {"name": "digits_lenet"},
    "descent": {"rule": "torch", "decay": 0.0},
    "rate": 0.05,
    "share": 0.2,
    "sample": None,
}
NETWORKS = RunSpec(
    "inverse_law/networks", {"networks": [{"name": row.model, "classes": row.classes} for row in TABLE]}
)
NOISE = RunSpec(
    "inverse_law/noise",
    {**DIGITS, "batch": 16, "warm": 20, "batches": [1, 4, 16, 64, 256], "draws": 120},
)
LEARNERS = (1, 2, 4)
SPLIT = tuple(
    RunSpec(
        "inverse_law/sweep",
        {
            **DIGITS,
            "batch": 32,
            "workers": learners,
            "precision": "float64",
            "growth": 0.02,
            "every": 1,
            "limit": 400,
            "monitors": {"training": [0.4]},
        },
    )
    for learners in LEARNERS
)
LOOP = RunSpec(
    "inverse_law/loop",
    {
        "batches": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
        "converge": [2, 16, 256],
        "seeds": [0, 1, 2],
        "rate": 0.05,
        "threshold": 0.3,
        "hidden": 512,
        "share": 0.2,
        "growth": 0.01,
        "limit": 2_000,
        "rounds": 4,
        "repeats": 3,
    },
)
WORDS = RunSpec("inverse_law/words", {"corpus": "number_phrases", "words": [100, 200, 400, 800, 1600, 3200, 6400]})
ATTENTION = RunSpec("inverse_law/attention", {"vocabulary": 40, "longest": 12, "sentences": 32, "steps": 6})


def network_runs(profile: str) -> Groups:
    return {"networks": (NETWORKS,)}


def measure_networks(evidence: Evidence) -> Quantities:
    """Parameters and weight layers of the networks as built."""
    run = evidence.run("networks")
    for number in range(1, len(TABLE) + 1):
        yield f"r{number:02}-parameters", exact(run.results[f"parameters_{number}"], runs=[run.id])
        yield f"r{number:02}-layers", exact(run.results[f"layers_{number}"], runs=[run.id])


def measure_settings(evidence: Evidence) -> Quantities:
    """What the runs of the ``paper`` profile are specified with."""
    for number in range(1, len(TABLE) + 1):
        rows = [row for row in ROWS if row.table == number]
        specs = [spec for row in rows for spec in curve_specs(row, "paper")]
        rates = sorted({s.settings["rate"] for s in specs if s.settings["descent"]["rule"] == "torch"})
        batches = {s.settings["batch"] for s in specs}
        yield f"r{number:02}-learning-rate", exact(rates)
        yield f"r{number:02}-batch-range", exact([min(batches), max(batches)])
    mnist, cifar10, cifar100 = (
        [s for row in ROWS if row.data == data for s in curve_specs(row, "paper")]
        for data in ("mnist", "cifar10", "cifar100")
    )
    yield "runs-averaged-mnist", exact(len({s.seed for s in mnist}))
    yield "cv-fraction", exact(100 * mnist[0].settings["share"])
    yield "record-interval", exact([group[0].settings["every"] for group in (mnist, cifar10, cifar100)])


def noise_runs(profile: str) -> Groups:
    return {"noise": (NOISE,), "learners": SPLIT}


def noise_slope(table: pd.DataFrame) -> Interval:
    """Log-log slope of gradient variance over batch size with its 95% interval from the fit."""
    import numpy as np
    from scipy import stats

    fit = stats.linregress(np.log(table["batch"]), np.log(table["variance"]))
    half = float(stats.t.ppf(0.975, len(table) - 2) * fit.stderr)
    return Interval(float(fit.slope), float(fit.slope) - half, float(fit.slope) + half, len(table))


def measure_noise(evidence: Evidence) -> Quantities:
    run = evidence.run("noise")
    slope = noise_slope(run.curve("variance"))
    yield "variance", interval(slope.mean, slope.low, slope.high, kind="measured", n=slope.n, runs=[run.id])


def measure_learners(evidence: Evidence) -> Quantities:
    """Largest difference in updates when one batch is split over P learners (float64, same batches)."""
    runs = evidence.runs("learners")
    counts = [run.results["crossed_training"][0] for run in runs]
    if min(counts) < 1:
        raise ValueError(f"the split runs were censored: {counts} updates")
    yield (
        "hardware-independent",
        exact(max(counts) - min(counts), runs=[run.id for run in runs], note=f"{counts[0]} updates each"),
    )


def loop_runs(profile: str) -> Groups:
    return {"loop": (LOOP,)}


def measure_constancy(evidence: Evidence) -> Quantities:
    """Seconds per update in the last fifth of a training over those in its first fifth."""
    run = evidence.run("loop")
    runs = run.curve("runs")
    runs = runs[runs["updates"] >= 50]  # a fifth of fewer is too short to time
    ratios = [median(part["late"] / part["early"]) for _, part in runs.groupby(["batch", "seed"])]
    found = log_interval(ratios)
    yield "few-updates", interval(found.mean, found.low, found.high, kind="measured", n=found.n, runs=[run.id])


def measure_product(evidence: Evidence) -> Quantities:
    """Mean seconds to converge over (mean updates x mean seconds per update), minus one, worst batch size."""
    run = evidence.run("loop")
    errors = []
    for _, group in run.curve("runs").groupby("batch"):
        product = group["updates"].mean() * (group["seconds"] / group["updates"]).mean()
        errors.append(group["seconds"].mean() / product - 1)
    worst = max(errors, key=abs)
    yield "product", point(worst, kind="measured", n=len(errors), runs=[run.id])


def measure_knee(evidence: Evidence) -> Quantities:
    """Log-log slopes of seconds per update at the two ends of the batch sizes timed, round by round."""
    run = evidence.run("loop")
    table = run.curve("timings")
    wide = table.pivot_table(index=["repeat", "round"], columns="batch", values="seconds")
    sizes = [int(b) for b in wide.columns]
    for name, low, high in (("flat-below", sizes[0], sizes[2]), ("linear-above", sizes[-3], sizes[-1])):
        slopes = [math.log(b / a) / math.log(high / low) for a, b in zip(wide[low], wide[high], strict=True)]
        found = mean_interval(slopes)
        yield name, interval(found.mean, found.low, found.high, kind="measured", n=found.n, runs=[run.id])


def measure_accuracy(evidence: Evidence) -> Quantities:
    """Predicted over measured mean seconds to converge, at batch sizes between those the law was fitted to."""
    from paper_figures.inverse_law.seconds import mean_seconds

    run = evidence.run("loop")
    measured = mean_seconds(run.curve("runs"))
    fitted = LOOP.settings["converge"]
    held_out = [b for b in measured if min(fitted) < b < max(fitted) and b not in fitted]
    predicted = dict(zip(*(run.curve("batches")[c] for c in ("batch", "predicted_seconds")), strict=True))
    found = log_interval([predicted[b] / measured[b] for b in held_out])
    yield "accurate", interval(found.mean, found.low, found.high, kind="measured", n=found.n, runs=[run.id])


def measure_choice(evidence: Evidence) -> Quantities:
    """The batch size that trained fastest over the fitted knee, and the regret of the method's choice.

    Times within a tenth of the best cannot be told from it here; of those batch sizes the one nearest the knee
    counts.
    """
    from paper_figures.inverse_law.seconds import mean_seconds

    run = evidence.run("loop")
    measured = mean_seconds(run.curve("runs"))
    best = min(measured.values())
    knee = run.results["closed_form"]
    ties = [batch for batch, seconds in measured.items() if seconds <= 1.1 * best]
    nearest = min(ties, key=lambda batch: abs(math.log(batch / knee)))
    seeds = len(LOOP.settings["seeds"])
    yield "measured", point(nearest / knee, kind="measured", n=seeds, runs=[run.id])
    regret = measured[run.results["chosen"]] / best
    yield "regret", point(regret, kind="measured", n=seeds, runs=[run.id], note="time at the choice over the best")
