"""Table 3: the five best configurations, beside one learner's error and time; section 4.2's set-up of CIFAR-10."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from paper_figures.rudra import rows
from paper_figures.rudra.groups import cifar_times_group, label, left_out_group, training_groups
from paper_figures.rudra.readings import CifarTimes, erring_half_more, error_steps, final_error, left_out
from paper_figures.rudra.settings import CIFAR_BYTES, EPOCHS, TRAINING_IMAGES, at_profile, in_epochs, training
from paper_figures.rudra.simulations import BASELINE, CALIBRATED, TABLE2, TABLE3, cifar_left_out
from suite.claims.measured import exact
from suite.data.catalogue import DATASETS
from suite.models.table import counts
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities, row_by_row
from suite.papers.counterfeits import counterfeit, edited, forged
from suite.papers.printed import printed, printed_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    groups = {
        **cifar_times_group(),
        **training_groups(profile, [*TABLE3, BASELINE]),
        **left_out_group(profile, cifar_left_out()),
    }
    if profile == "paper":
        groups["without drops"] = at_profile(BASELINE, profile, drops=False)
    return groups


def measure_arithmetic(evidence: Evidence) -> Quantities:
    seconds = [printed_value(f"rudra/table3/r{at:02d}-training-time") for at in range(1, 6)]
    baseline = printed_value("rudra/table3/baseline-time")
    yield "sorted-by-time", exact([b - a for a, b in pairwise(seconds)])
    repeated = [
        _same(f"rudra/table3/r{at:02d}", f"rudra/table2/r{TABLE2.index(row) + 1:02d}")
        for at, row in enumerate(TABLE3, 1)
        if row in TABLE2
    ]
    yield "consistent-with-table2", exact(sum(repeated))
    yield "speedups", exact([baseline / s for s in seconds])
    parameters = counts("caffe_cifar_full").parameters
    yield "cifar10-model-parameters", exact(parameters)
    assert 4 * parameters == CIFAR_BYTES
    yield "cifar10-model-size", exact(CIFAR_BYTES / 1024)
    yield "cifar10-model-lr-schedule", exact(in_epochs(training(BASELINE, EPOCHS, 0).settings, TRAINING_IMAGES))
    data = DATASETS["cifar10"]
    train, test = data.sizes["train"], data.sizes["test"]
    yield "cifar10-model-split", exact([train + test, train, test, (train + test) / data.classes])


def _same(a: str, b: str) -> bool:
    return all(printed(f"{a}-{what}") == printed(f"{b}-{what}") for what in ("test-error", "training-time"))


def measure_times(evidence: Evidence) -> Quantities:
    times = CifarTimes(evidence)
    for at, row in enumerate(TABLE3, 1):
        if row not in CALIBRATED:
            yield f"r{at:02d}-training-time", times.predicted(row)
    one = times[1, 8, 30]
    yield "one-softsync-lowest-runtime", times.simulated([times[30, 8, 30] - one, times[0, 8, 30] - one])


def measure_errors(evidence: Evidence) -> Quantities:
    each = [(f"r{at:02d}-test-error", row) for at, row in enumerate(TABLE3, 1)] + [("baseline-error", BASELINE)]
    yield from row_by_row((name, partial(final_error, evidence, label(row))) for name, row in each)


def measure_schedule(evidence: Evidence) -> Quantities:
    yield "cifar10-model-schedule-essential", error_steps(evidence, [label(BASELINE), "without drops"])


def measure_left_out(evidence: Evidence) -> Quantities:
    """The calibration rows, each predicted from the others; two of them repeat rows of Table 2."""
    found = left_out(evidence)
    for at, row in enumerate(TABLE3, 1):
        if row in CALIBRATED:
            yield f"r{at:02d}-left-out", found[row]
    yield "baseline-left-out", found[BASELINE]


def frame(evidence: Evidence) -> pd.DataFrame:
    """The five rows and the baseline, as :func:`rows.cifar_rows` has them."""
    return rows.cifar_rows(evidence, [*TABLE3, BASELINE])


def draw(evidence: Evidence, figure: Figure) -> None:
    rows.draw_cifar(frame(evidence), figure)


@counterfeit("rudra/table3/cifar10-model-schedule-essential")
def better_without_drops(evidence: Evidence) -> Evidence:
    """At one rate a run ends with a third fewer errors."""
    return edited(
        evidence, lambda run: forged(run, {"test_error": 2 / 3 * run.results["test_error"]}), "without drops"
    )


counterfeit(*(f"rudra/table3/r{at:02d}-test-error" for at in range(1, 6)), "rudra/table3/baseline-error")(
    erring_half_more
)

ARTIFACTS = (
    Artifact(
        "rudra/table3",
        "The five best configurations",
        runs,
        (measure_arithmetic, measure_times, measure_errors, measure_schedule, measure_left_out),
        draw,
        alt="Printed test errors and times of five configurations and the baseline beside ours with 95% intervals.",
        size=(9.0, 3.2),
        frame=frame,
    ),
)
