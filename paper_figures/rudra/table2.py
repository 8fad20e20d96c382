"""Table 2: error and time of 23 configurations; those of about equal mu lambda have about equal errors.

Errors come from training at full size, times of the paper's machine from the calibrated cost model.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from paper_figures.rudra import held_out
from paper_figures.rudra.groups import cifar_times_group, label, left_out_group, training_groups
from paper_figures.rudra.plots import draw_times
from paper_figures.rudra.readings import CifarTimes, error_steps, final_error, joined, left_out
from paper_figures.rudra.settings import Configuration
from paper_figures.rudra.simulations import BASELINE, CALIBRATED, TABLE2, cifar_left_out
from suite.claims.measured import exact, point
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROUPS = (128, 256, 512, 1024)  # about mu lambda


def runs(profile: str) -> Groups:
    return {
        **cifar_times_group(),
        **training_groups(profile, TABLE2),
        **left_out_group(profile, cifar_left_out()),
    }


def group_of(configuration: Configuration) -> int:
    """The paper's group: the power of two nearest to mu lambda."""
    _, batch, learners = configuration
    return min(GROUPS, key=lambda g: abs(g - batch * learners) / g)


def members(group: int) -> list[int]:
    """Row numbers, from 1, of a group of Table 2."""
    return [at for at, row in enumerate(TABLE2, 1) if group_of(row) == group]


def measure_arithmetic(evidence: Evidence) -> Quantities:
    spread, products = [], []
    for group in GROUPS:
        errors = [printed_value(f"rudra/table2/r{at:02d}-test-error") for at in members(group)]
        spread.append(max(errors) - min(errors))
        sizes = [TABLE2[at - 1][1] * TABLE2[at - 1][2] for at in members(group)]
        products += [min(sizes), max(sizes)]
    yield "group-ranges", exact(spread)
    yield "products", exact(products)
    smallest_batch = 1
    yield "learner-limit", exact(BASELINE[1] * BASELINE[2] // smallest_batch)


def measure_times(evidence: Evidence) -> Quantities:
    times = CifarTimes(evidence)
    for at, row in enumerate(TABLE2, 1):
        yield f"r{at:02d}-training-time", times.predicted(row)
    fastest, falls = [], []
    for group in GROUPS:
        rows = [TABLE2[at - 1] for at in members(group)]
        ours = [times[row] for row in rows if row[0] == 1]
        fastest.append(min(ours) < min(times[row] for row in rows if row[0] != 1))
        for a, b in combinations(rows, 2):
            if a[2] != b[2]:
                falls.append((times[a] - times[b]) * (a[2] - b[2]) < 0)
    yield "one-softsync-fastest", times.simulated(sum(fastest) / len(fastest))
    yield "time-falls-with-lambda", times.simulated(sum(falls) / len(falls))


def measure_errors(evidence: Evidence) -> Quantities:
    for at, row in enumerate(TABLE2, 1):
        if label(row) in evidence.groups and evidence.profile == "paper":
            yield f"r{at:02d}-test-error", final_error(evidence, label(row))


def measure_pairs(evidence: Evidence) -> Quantities:
    found = [error_steps(evidence, [label((1, mu, 30)), label((30, mu, 30))]) for mu in (4, 32)]
    yield "staleness-irrelevant", joined(found)
    yield "principle", error_steps(evidence, [label((1, 4, 30)), label((1, 32, 30))])


def measure_groups(evidence: Evidence) -> Quantities:
    found = {row: final_error(evidence, label(row)) for row in TABLE2}
    means = {g: [found[TABLE2[at - 1]].values[0] for at in members(g)] for g in GROUPS}
    ids = [run_id for value in found.values() for run_id in value.runs]
    ends = [end for g in GROUPS for end in (min(means[g]), max(means[g]))][1:-1]
    yield "error-monotone-in-product", point([b - a for a, b in pairwise(ends)], kind="measured", n=3, runs=ids)
    yield "group-128-range", point(means[128], kind="measured", n=3, runs=ids)


def measure_held_out(evidence: Evidence) -> Quantities:
    """How far the cost model is off on the rows it was not calibrated on, beside lambda alone."""
    times = CifarTimes(evidence)
    yield from held_out.quantities(times.seconds, times.ids)


def measure_left_out(evidence: Evidence) -> Quantities:
    """The calibration rows, each predicted from the others."""
    found = left_out(evidence)
    for at, row in enumerate(TABLE2, 1):
        if row in CALIBRATED:
            yield f"r{at:02d}-left-out", found[row]


def draw(evidence: Evidence, figure: Figure) -> None:
    draw_times(evidence, figure)


ARTIFACTS = (
    Artifact(
        "rudra/table2",
        "Error and time of configurations of about equal mu lambda",
        runs,
        (
            measure_arithmetic,
            measure_times,
            measure_errors,
            measure_pairs,
            measure_groups,
            measure_held_out,
            measure_left_out,
        ),
        draw,
        alt="Error of the predicted time of every row of Tables 2 and 3, calibration rows in grey.",
        size=(7.0, 6.5),
    ),
)
