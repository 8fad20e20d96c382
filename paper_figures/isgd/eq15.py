"""Eq. 15: the expected change of the squared distance to the optimum in one step, and what the batch size does to it.

A step descends by the gradient and is thrown back by the square of its mean and by its variance, which the paper
says is inversely proportional to the batch size; so, counted in iterations, a larger batch converges faster.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from paper_figures.isgd.readings import embedded
from paper_figures.isgd.settings import DIGITS, MNIST, train
from suite.claims.estimate import exact, interval, over_seeds, point
from suite.claims.intervals import mean_interval
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.counterfeits import counterfeit, exchanged
from suite.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VARIANCE = RunSpec("isgd/variance", {**DIGITS, "batches": (4, 8, 16, 32, 64, 128), "draws": 300, "warm": 60})


def runs(profile: str) -> Groups:
    """The variance at several batch sizes, and the iterations of SGD until 4% test error (12% on digits) at three."""
    base, seeds, below, limit, every = {
        "smoke": (DIGITS, 3, 0.12, 600, 5),
        "reduced": (MNIST, 10, 0.04, 3000, 20),
        "paper": (MNIST, 10, 0.04, 3000, 5),
    }[profile]
    stop = {"metric": "test_error", "below": below}
    groups: dict[str, tuple[RunSpec, ...]] = {"variance": (VARIANCE,)}
    for size in (16, 64, 256):
        groups[f"b{size}"] = tuple(
            train({**base, "batch": size}, s, algorithm={"name": "sgd"}, updates=limit, every=every, stop=stop)
            for s in range(seeds)
        )
    return groups


def measure_identity(_: Evidence) -> Quantities:
    """The equation on a quadratic whose n batches are equally likely: both sides by enumeration."""
    import numpy as np

    draw = np.random.default_rng(15)
    worst = 0.0
    for rate in (0.01, 0.5, 3.0):
        curvature = draw.uniform(0.2, 1.5, 6)
        targets = draw.normal(size=(12, 6))
        w, best = draw.normal(size=6), targets.mean(0)
        gradients = curvature * (w - targets)
        after = ((w - rate * gradients - best) ** 2).sum(1) - ((w - best) ** 2).sum()
        mean, variance = gradients.mean(0), gradients.var(0).sum()
        terms = -2 * rate * (w - best) @ mean + rate**2 * (mean @ mean + variance)
        worst = max(worst, abs(after.mean() - terms))
    yield "identity", exact(worst, note="largest gap over three learning rates in float64")


def measure_variance(evidence: Evidence) -> Quantities:
    """Log-log slope of the variance of the batch gradient over the batch size, standard error from the fit."""
    import numpy as np
    from scipy import stats

    run = evidence.run("variance")
    table = run.curve("variance")
    fit = stats.linregress(np.log(table["batch"]), np.log(table["variance"]))
    half = float(stats.t.ppf(0.975, len(table) - 2) * fit.stderr)
    yield (
        "variance-inverse-batch",
        interval(fit.slope, fit.slope - half, fit.slope + half, n=len(table), runs=[run.id]),
    )


def measure_iterations(evidence: Evidence) -> Quantities:
    """Iterations to one test error at one rate, large batches against small ones."""
    groups = [evidence.runs(name) for name in ("b256", "b64", "b16")]
    ids = [run.id for group in groups for run in group]
    names = ("256", "64", "16")
    if any(run.status != "finished" for group in groups for run in group):
        note = "a run never reached the target (censored)"
        yield "fewer-iterations-large-batch", point((math.nan, math.nan), runs=ids, note=note)
        return
    steps = [
        mean_interval([math.log(b.results["updates"] / a.results["updates"]) for a, b in zip(*pair, strict=True)])
        for pair in pairwise(groups)
    ]
    means = [sum(run.results["updates"] for run in group) / len(group) for group in groups]
    note = "mean iterations: " + ", ".join(f"batch {n} {m:.0f}" for n, m in zip(names, means, strict=True))
    proxy = embedded(groups[0][0].spec.settings["data"]["name"])
    yield "fewer-iterations-large-batch", over_seeds(steps, ids, note, proxy=proxy)


@counterfeit("isgd/eq15/fewer-iterations-large-batch")
def sizes_exchanged(evidence: Evidence) -> Evidence:
    return exchanged(evidence, "b16", "b256")


def draw(evidence: Evidence, figure: Figure) -> None:
    table = evidence.run("variance").curve("variance")
    axes = figure.subplots()
    axes.plot(table["batch"], table["variance"], "o", label="measured")
    first = table.iloc[0]
    axes.plot(table["batch"], first["variance"] * first["batch"] / table["batch"], "--", label="slope -1")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("batch size (images)")
    axes.set_ylabel("variance of the batch gradient")
    axes.legend()


ARTIFACTS = (
    Artifact(
        "isgd/eq15",
        "Expected one-step change of squared distance to the optimum",
        runs,
        (measure_variance, measure_iterations, measure_identity),
        draw,
        "Variance of the batch gradient against batch size on log axes, on a line of slope -1.",
    ),
)
