"""Fig. 6: under hardsync more learners save time and cost accuracy, and smaller mini-batches win it back."""

from __future__ import annotations

import itertools
from functools import partial
from math import log
from typing import TYPE_CHECKING

from paper_figures.rudra import tradeoff
from paper_figures.rudra.groups import cifar_times_group, label, training_groups
from paper_figures.rudra.readings import CifarTimes, erring_half_more, error_steps, final_error
from paper_figures.rudra.settings import LEARNERS, grid
from paper_figures.rudra.simulations import BASELINE, throughput
from suite.claims.intervals import log_interval, mean_interval
from suite.claims.measured import exact, over_seeds
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities, row_by_row
from suite.papers.counterfeits import counterfeit, edited, forged
from suite.runs.store import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    return {
        **cifar_times_group(),
        **training_groups(profile, grid("hardsync")),
        "throughput": (throughput(),),
    }


def measure_grid(evidence: Evidence) -> Quantities:
    planned = training_groups("paper", grid("hardsync"))
    yield "grid", exact(len({spec.id for specs in planned.values() for spec in specs if spec.seed == 0}))


def measure_times(evidence: Evidence) -> Quantities:
    times = CifarTimes(evidence)
    seconds = [times[0, 128, k] for k in reversed(LEARNERS)]
    yield "time-monotone-in-lambda", times.simulated([b - a for a, b in itertools.pairwise(seconds)])


def measure_throughput(evidence: Evidence) -> Quantities:
    run = evidence.run("throughput")
    longer = log_interval(run.results["training_ratios"])
    yield (
        "small-mu-longer",
        over_seeds(longer, [run.id]),
    )
    gain = mean_interval([log(ratio) for ratio in run.results["product_ratios"]])
    yield "gemm-throughput", over_seeds(gain, [run.id])


def measure_errors(evidence: Evidence) -> Quantities:
    rising = [label((0, 128, k)) for k in LEARNERS]
    yield from row_by_row(
        [
            ("restore-by-small-mu", partial(error_steps, evidence, [label((0, 4, 30)), label((0, 128, 30))])),
            ("baseline-line", partial(final_error, evidence, label(BASELINE))),
            ("small-mu-lower-error", partial(final_error, evidence, label((0, 4, 1)))),
            ("error-rises-with-lambda", partial(error_steps, evidence, rising)),
        ]
    )


@counterfeit("rudra/fig6/small-mu-longer", "rudra/fig6/gemm-throughput")
def batches_exchanged(evidence: Evidence) -> Evidence:
    """The small mini-batch is the faster one by as much as it is the slower one."""

    def edit(run: Run) -> Run:
        names = ("training_ratios", "product_ratios")
        return forged(run, {name: [1 / ratio for ratio in run.results[name]] for name in names})

    return edited(evidence, edit, "throughput")


def draw(evidence: Evidence, figure: Figure) -> None:
    tradeoff.draw("hardsync", evidence, figure)


counterfeit("rudra/fig6/baseline-line")(erring_half_more)

ARTIFACTS = (
    Artifact(
        "rudra/fig6",
        "Error against time under hardsync",
        runs,
        (measure_grid, measure_times, measure_throughput, measure_errors),
        draw,
        alt="Left: test error against training time, printed and ours; right: predicted time against learners.",
        size=(9.5, 5.0),
        frame=partial(tradeoff.frame, "hardsync"),
    ),
)
