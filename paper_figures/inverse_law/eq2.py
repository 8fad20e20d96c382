"""Equation 2, the inverse law: N(M) = N_inf + alpha / M updates to converge at batch size M.

Even exact gradients need N_inf updates; the variance of the gradient falls as 1/M, so the rest grows about linearly
with it. Updates depend on M, not on the learners that share it; and earlier bounds, inverted, give other laws.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paper_figures.inverse_law.readings import as_measured, exponent, families, law_fit, reached, told_apart
from paper_figures.inverse_law.settings import BATCHES, BY_NAME, law_runs
from paper_figures.inverse_law.worlds import following
from suite.batch_size.law import Updates, fit_inverse_law
from suite.claims.estimate import exact, over_seeds
from suite.claims.intervals import Interval
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged, genuine
from suite.runs.store import Run

if TYPE_CHECKING:
    import pandas as pd

MNIST = ("mnist_small-lr0p01", "mnist_medium-lr0p01", "mnist_medium-lr0p05", "mnist_evenodd-lr0p05")


def measure_law(evidence: Evidence) -> Quantities:
    """Over the MNIST curves: one exponent, and the floors."""
    rows = [BY_NAME[name] for name in MNIST]
    found = [families(evidence, row) for row in rows]
    runs = [run for _, behind in found for run in behind]
    shared = exponent(*(thresholds.values() for thresholds, _ in found))
    yield "law", as_measured([shared], runs, f"the four MNIST curves; {told_apart(shared)}")
    floors = [law_fit(reached(evidence, row)).floor_interval() for row in rows]
    yield "floor", as_measured(floors, runs)


def measure_noise(evidence: Evidence) -> Quantities:
    """Exponent of the batch size in the variance of the gradient, -1 by the central limit theorem."""
    run = evidence.run("noise")
    slope = noise_slope(run.curve("variance"))
    yield "variance", over_seeds(slope, [run.id])


def noise_slope(table: pd.DataFrame) -> Interval:
    """Log-log slope of gradient variance over batch size with its 95% interval from the fit."""
    import numpy as np
    from scipy import stats

    fit = stats.linregress(np.log(table["batch"]), np.log(table["variance"]))
    half = float(stats.t.ppf(0.975, len(table) - 2) * fit.stderr)
    return Interval(float(fit.slope), float(fit.slope) - half, float(fit.slope) + half, len(table))


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


def measure_earlier_bound(evidence: Evidence) -> Quantities:
    """How far the best inverse law stays from the earlier bound over M = 1 .. 1024: worst relative deviation."""
    misfits = []
    for noise, rate in ((10.0, 50.0), (30.0, 100.0), (100.0, 100.0)):
        counts = {batch: dekel_updates(batch, noise, rate) for batch in BATCHES}
        law = fit_inverse_law([Updates(batch, (n,)) for batch, n in counts.items()])
        misfits.append(max(abs(law.predict(batch) / n - 1) for batch, n in counts.items()))
    yield "differs-from-dekel", exact(min(misfits), note="least, over three pairs of constants, of the worst misfit")


def dekel_updates(batch: float, noise: float, rate: float) -> float:
    """N of the earlier bound eps <= c1 / sqrt(N M) + c2 / N solved for N: noise = c1 / eps, rate = c2 / eps."""
    root = noise / math.sqrt(batch)
    return ((root + math.sqrt(root**2 + 4 * rate)) / 2) ** 2


@counterfeit("inverse_law/eq2/law")
def root_law(evidence: Evidence) -> Evidence:
    """Updates fall as the square root of the batch size."""
    return following(evidence, lambda batch: 200 * (1 + 4 / math.sqrt(batch)))


@genuine("inverse_law/eq2/law")
def inverse_law(evidence: Evidence) -> Evidence:
    """Updates follow the law to the scatter of the seeds."""
    return following(evidence, lambda batch: 200 * (1 + 4 / batch))


@counterfeit("inverse_law/eq2/floor")
def no_floor(evidence: Evidence) -> Evidence:
    """Updates fall faster than 1/M, so that their extrapolation lies below zero."""
    return following(evidence, lambda batch: 20_000 / batch - 15)


@counterfeit("inverse_law/eq2/hardware-independent")
def learners_count(evidence: Evidence) -> Evidence:
    """More learners need more updates for the same batch."""

    def later(run: Run) -> Run:
        workers = run.spec.settings["workers"]
        return forged(run, {"crossed_training": [n + workers for n in run.results["crossed_training"]]})

    return edited(evidence, later, "learners")


ARTIFACTS = (
    Artifact(
        "inverse_law/eq2",
        "The inverse law between updates and batch size",
        law_runs,
        (measure_law, measure_noise, measure_learners, measure_earlier_bound),
    ),
)
