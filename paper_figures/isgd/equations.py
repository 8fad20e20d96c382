"""The equations of sections 2 and 3: batch gradients, the loss, the control limit and the subproblem.

Those of the analysis, section 3.4, have files of their own.
"""

from __future__ import annotations

import math

from paper_figures.isgd import readings, settings
from paper_figures.isgd.settings import ALEXNET, CIFAR, MNIST, SMALL
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.spec import RunSpec

USUAL_DECAY = 1e-4  # section 2.2, "normally around"
# Weight decay of the experiments is not printed; Caffe's solver files for the three networks hold these.
CAFFE_DECAY: dict[str, float] = {
    name: base["descent"]["decay"] for name, base in (("MNIST", MNIST), ("CIFAR-10", CIFAR), ("ImageNet", ALEXNET))
}


def partition_runs(profile: str) -> Groups:
    """Batch gradients over partitions of 1,400 digits, in float64."""
    data = {**SMALL["data"], "subset": 1400}
    common = {**SMALL, "data": data, "precision": "float64", "algorithm": {"name": "sgd"}}
    return {"partition": (RunSpec("isgd/partition", {**common, "batches": [35, 100, 700]}),)}


def limit_runs(profile: str) -> Groups:
    return settings.paper_margin()


def subproblem_runs(profile: str) -> Groups:
    return settings.subproblem()


def measure_unbiased(evidence: Evidence) -> Quantities:
    """Eq. 4: the mean of the batch gradients over a partition against the full gradient."""
    run = evidence.run("partition")
    note = f"one batch's gradient differs from the full one by up to {run.results['spread']:.2g}"
    yield "unbiased", exact(max(run.results["difference"]), runs=[run.id], note=note)


def measure_loss_floor(_: Evidence) -> Quantities:
    """The smallest value of Eq. 7 for one image of ten classes whose logits differ by a single weight m.

    log(1 + 9 exp(-m)) + (lambda/2) m^2: the first term vanishes only for infinite m, the second only for m = 0.
    """
    from scipy.optimize import minimize_scalar

    def loss(m: float) -> float:
        return math.log1p(9 * math.exp(-m)) + USUAL_DECAY / 2 * m * m

    found = minimize_scalar(loss, bounds=(0.0, 100.0), method="bounded")
    yield "positive-floor", exact(found.fun, note=f"at m = {found.x:.3g}, lambda = {USUAL_DECAY:g}")


def measure_decay(_: Evidence) -> Quantities:
    """Eq. 7: the constant of the weight decay in Caffe's solvers."""
    values = sorted(CAFFE_DECAY.values())
    note = "median of " + ", ".join(f"{name} {value:g}" for name, value in CAFFE_DECAY.items())
    yield "lambda", exact(values[len(values) // 2], note=note)


def measure_limit(evidence: Evidence) -> Quantities:
    """Eq. 8 to 10: the limit against the losses that it follows from."""
    yield from readings.limit_statistics(evidence)


def measure_subproblem(evidence: Evidence) -> Quantities:
    """Eq. 11 and its gradient, Eq. 12, at undertrained batches."""
    yield from readings.small_steps(evidence)


ARTIFACTS = (
    Artifact("isgd/eq4", "SGD update on a sampled batch", partition_runs, (measure_unbiased,)),
    Artifact("isgd/eq7", "Cross-entropy batch loss with weight decay", measures=(measure_loss_floor, measure_decay)),
    Artifact(
        "isgd/eq10",
        "Mean, standard deviation and upper control limit of the losses of the last epoch",
        limit_runs,
        (measure_limit,),
    ),
    Artifact(
        "isgd/eq11",
        "Objective of the subproblem: chase the limit, stay near the old weights",
        subproblem_runs,
        (measure_subproblem,),
    ),
    Artifact("isgd/eq12", "Gradient of the subproblem objective", subproblem_runs, (measure_subproblem,)),
)
