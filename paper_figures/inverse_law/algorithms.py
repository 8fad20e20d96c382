"""The method of choosing a batch size, whose premise is timed; and strong, weak and optimal scaling.

Strong scaling keeps the number of updates and stops helping where a learner's share reaches the knee; weak scaling
needs ever fewer updates but never fewer than N_inf; optimal scaling takes the best batch for each number of learners.
"""

from __future__ import annotations

from statistics import median

from paper_figures.inverse_law.drawing import logarithmic
from paper_figures.inverse_law.settings import loop_runs
from reference_impls import inverse_law_model as forms
from suite.claims.intervals import Interval, log_interval
from suite.papers.figure import Artifact, Figure, Frame

ALG1 = Artifact("inverse_law/alg1", "The four-step choice of the batch size", loop_runs)
SCALING = Artifact("inverse_law/alg-scaling", "Strong, weak and optimal scaling", size=(8.0, 4.0))


@ALG1.quantity("few-updates", ["loop"])
def constancy(frame: Frame) -> Interval:
    """Seconds per update in the last fifth of a training over those in its first fifth."""
    runs = frame.run("loop").curve("runs")
    runs = runs[runs["updates"] >= 50]  # a fifth of fewer is too short to time
    return log_interval([median(part["late"] / part["early"]) for _, part in runs.groupby(["batch", "seed"])])


@SCALING.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Time to converge and batch size against learners under strong, weak and optimal scaling."""
    law, system, strong, knee = forms.Law(500, 50_000), forms.System(1e-3, 8, 5e-2), 256, 8
    learners = [2**k for k in range(1, 13)]
    lines = (
        (f"strong, M = {strong}", "-", [strong] * len(learners)),
        (f"weak, M = {knee} P", "--", [knee * p for p in learners]),
    )
    left, right = figure.subplots(1, 2)
    for label, style, batches in lines:
        seconds = [forms.convergence_seconds(law, system, m, p) for m, p in zip(batches, learners, strict=True)]
        left.plot(learners, seconds, style, label=label)
        right.plot(learners, batches, style)
    best = [forms.minimal_seconds(law, system, p) for p in learners]
    left.plot(learners, best, linestyle=":", linewidth=2.2, label="optimal")
    right.plot(learners, [forms.optimal_batch(law, system, p) for p in learners], linestyle=":", linewidth=2.2)
    weak = forms.weak_scaling_is_optimal_from(law, system)
    for at, label in ((strong / knee, "strong scaling ends"), (weak, "weak is optimal")):
        for axes in (left, right):
            axes.axvline(at, linewidth=0.8, linestyle="--", color="0.5")
        left.annotate(
            label, (at, 0.97), xycoords=("data", "axes fraction"), xytext=(2, 0), textcoords="offset points",
            rotation=90, verticalalignment="top", fontsize="x-small",
        )  # fmt: skip
    for axes in (left, right):
        logarithmic(axes, learners)
        axes.set_xlabel("learners P")
    left.set_ylabel("seconds to converge (model)")
    right.set_ylabel("mini-batch size M (examples)")
    left.legend(fontsize="small")
