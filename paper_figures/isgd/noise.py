"""Batch size and gradient noise (section 3.4): variance of the batch gradient, iterations, the bound of Eq. 21."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from paper_figures.isgd import settings
from suite.claims.intervals import mean_interval
from suite.claims.measured import interval, point
from suite.experiment import Body, Experiment
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VARIANCE = RunSpec(
    "isgd/variance",
    {**settings.DIGITS, "batches": (4, 8, 16, 32, 64, 128), "draws": 300, "warm": 60},
)
BOUND = RunSpec("isgd/bound", {"d": 20, "examples": 512, "batches": (1, 4, 16, 64), "updates": 2048, "runs": 128})


def _load_variance() -> Body:
    from paper_figures.isgd.noise_experiments import variance

    return variance


def _load_bound() -> Body:
    from paper_figures.isgd.noise_experiments import bound

    return bound


EXPERIMENTS = {
    "isgd/variance": Experiment(_load_variance, lambda spec: 6.0),
    "isgd/bound": Experiment(_load_bound, lambda spec: 4.0),
}


def eq15_runs(profile: str) -> Groups:
    return {"variance": (VARIANCE,), **settings.iterations_to_target(profile)}


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
        interval(fit.slope, fit.slope - half, fit.slope + half, kind="measured", n=len(table), runs=[run.id]),
    )


def measure_iterations(evidence: Evidence) -> Quantities:
    """Section 3.4.1: iterations to one test error at one rate, large batches against small ones."""
    import math

    groups = [evidence.runs(name) for name in ("b256", "b64", "b16")]
    ids = [run.id for runs in groups for run in runs]
    names = ("256", "64", "16")
    if any(run.status != "finished" for runs in groups for run in runs):
        note = "a run never reached the target (censored)"
        yield "fewer-iterations-large-batch", point((math.nan, math.nan), kind="measured", runs=ids, note=note)
        return
    steps = [
        mean_interval([math.log(b.results["updates"] / a.results["updates"]) for a, b in zip(*pair, strict=True)])
        for pair in pairwise(groups)
    ]
    means = [sum(run.results["updates"] for run in runs) / len(runs) for runs in groups]
    note = "mean iterations: " + ", ".join(f"batch {n} {m:.0f}" for n, m in zip(names, means, strict=True))
    kind = "proxy" if groups[0][0].spec.settings["data"]["name"] == "digits" else "measured"
    yield (
        "fewer-iterations-large-batch",
        interval(
            [s.mean for s in steps],
            [s.low for s in steps],
            [s.high for s in steps],
            kind=kind,
            n=len(groups[0]),
            runs=ids,
            note=note,
        ),
    )


def measure_bound(evidence: Evidence) -> Quantities:
    """Excess loss over 1/sqrt(b T) + 1/T: largest ratio over the later half against the earlier half."""
    run = evidence.run("bound")
    table = run.curve("bound")
    ratios = []
    for batch, rows in table.groupby("batch"):
        shape = 1 / (batch * rows["updates"]) ** 0.5 + 1 / rows["updates"]
        relative = (rows["excess"] / shape).to_numpy()
        half = len(relative) // 2
        ratios.append(float(relative[half:].max() / relative[:half].max()))
    note = "rate 1/sqrt(T) averaged SGD on a noisy quadratic; " + ", ".join(f"{r:.2f}" for r in ratios)
    yield "bound", point(max(ratios), kind="measured", n=run.spec.settings["runs"], runs=[run.id], note=note)


def draw_variance(evidence: Evidence, figure: Figure) -> None:
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


def draw_bound(evidence: Evidence, figure: Figure) -> None:
    table = evidence.run("bound").curve("bound")
    axes = figure.subplots()
    for position, (batch, rows) in enumerate(table.groupby("batch")):
        axes.plot(rows["updates"], rows["excess"], "o-", markersize=3, color=f"C{position}", label=f"batch {batch}")
        shape = 1 / (batch * rows["updates"]) ** 0.5 + 1 / rows["updates"]
        scale = (rows["excess"] / shape).max()
        axes.plot(rows["updates"], scale * shape, "--", linewidth=0.8, color=f"C{position}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("updates T")
    axes.set_ylabel("excess loss (dashed: bound of Eq. 21, scaled)")
    axes.legend(fontsize="small")


EQ15 = Artifact(
    "isgd/eq15",
    "Expected one-step change of squared distance to the optimum",
    eq15_runs,
    (measure_variance, measure_iterations),
    draw_variance,
    "Variance of the batch gradient against batch size on log axes, on a line of slope -1.",
)
EQ21 = Artifact(
    "isgd/eq21",
    "Loss bound after T updates at batch size nb",
    lambda profile: {"bound": (BOUND,)},
    (measure_bound,),
    draw_bound,
    "Excess loss against updates for four batch sizes, below the scaled bound.",
)
ARTIFACTS = (EQ15, EQ21)
