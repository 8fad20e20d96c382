"""Table 2: error and time of 23 configurations; those of about equal mu lambda have about equal errors.

Errors come from training at full size, times of the paper's machine from the calibrated cost model.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations, pairwise
from statistics import fmean
from typing import TYPE_CHECKING, Any

from paper_figures.rudra import held_out, rows, seeds
from paper_figures.rudra.against_print import draw_diagonal, pairs
from paper_figures.rudra.groups import cifar_times_group, label, left_out_group, training_groups
from paper_figures.rudra.readings import (
    CifarTimes,
    contrast,
    erring_half_more,
    error_steps,
    errors,
    final_error,
    joined,
    left_out,
    runs_of,
)
from paper_figures.rudra.settings import EPOCHS, Configuration
from paper_figures.rudra.simulations import BASELINE, CALIBRATED, TABLE2, cifar_left_out
from suite.claims.measured import Measured, exact, over_seeds
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities, row_by_row
from suite.papers.counterfeits import counterfeit, edited, forged
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    import pandas as pd
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
        if row not in CALIBRATED:
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
    each = enumerate(TABLE2, 1)
    yield from row_by_row((f"r{at:02d}-test-error", partial(final_error, evidence, label(row))) for at, row in each)


def measure_pairs(evidence: Evidence) -> Quantities:
    yield from row_by_row(
        [
            ("staleness-irrelevant", partial(of_staleness, evidence)),
            ("principle", partial(error_steps, evidence, [label((1, 4, 30)), label((1, 32, 30))])),
        ]
    )


def of_staleness(evidence: Evidence) -> Measured:
    """Steps of the error from 1-softsync to 30-softsync with 30 learners, at mu = 4 and 32."""
    return joined([error_steps(evidence, [label((1, mu, 30)), label((30, mu, 30))]) for mu in (4, 32)])


def measure_agreement(evidence: Evidence) -> Quantities:
    """How far our errors lie from the printed ones over all 23 rows, and how closely they follow them."""
    names = [label(row) for row in TABLE2]
    missing = [name for name in names if not whole(evidence, name)]
    if missing:
        raise Missing(f"{len(missing)} of {len(names)} rows have no run of 140 epochs")
    printed = [printed_value(f"rudra/table2/r{at:02d}-test-error") for at in range(1, len(names) + 1)]
    apart, together = seeds.agreement(printed, [fmean(errors(evidence, name)) for name in names])
    ids = [run.id for name in names for run in runs_of(evidence, name)]
    yield "errors-rms", over_seeds(apart, ids, "interval over the 23 rows")
    yield "errors-correlation", over_seeds(together, ids, "interval over the 23 rows")


def whole(evidence: Evidence, group: str) -> bool:
    """Whether a row has a run of the paper's length."""
    try:
        return round(runs_of(evidence, group)[0].results["epoch"]) == EPOCHS
    except Missing:
        return False


def measure_groups(evidence: Evidence) -> Quantities:
    yield from row_by_row(
        [
            ("group-128-range", partial(of_128, evidence)),
            ("error-monotone-in-product", partial(of_groups, evidence)),
        ]
    )


def of_128(evidence: Evidence) -> Measured:
    """Mean errors of the three least stale and the three stalest rows of the group 128."""
    by_n = sorted(TABLE2[at - 1] for at in members(128))
    return joined([contrast(evidence, {label(row): 1 / 3 for row in half}) for half in (by_n[:3], by_n[3:])])


def of_groups(evidence: Evidence) -> Measured:
    """Steps of the mean error from each group to the next."""
    groups = [[label(TABLE2[at - 1]) for at in members(group)] for group in GROUPS]
    steps = []
    for less, more in pairwise(groups):
        weights = {name: -1 / len(less) for name in less} | {name: 1 / len(more) for name in more}
        steps.append(contrast(evidence, weights))
    return joined(steps)


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


def frame(evidence: Evidence) -> pd.DataFrame:
    """The 23 rows, as :func:`rows.cifar_rows` has them."""
    return rows.cifar_rows(evidence, TABLE2)


def draw(evidence: Evidence, figure: Figure) -> None:
    """The rows with lines between the groups; below, our errors over the printed ones where any were trained."""
    from suite.report.style import GRID

    found = pairs(evidence)
    parts: Any = figure.subfigures(2, 1, height_ratios=(9, 4)) if found else (figure,)
    above = parts[0]
    rows.draw_cifar(frame(evidence), above)
    if found:
        draw_diagonal(evidence, found, parts[1].subplots())
    times = above.axes[1]
    for group in GROUPS:
        first = min(members(group)) - 1
        for axes in above.axes if first else []:
            axes.axhline(first - 0.5, color=GRID, linewidth=1)
        place: dict[str, Any] = {"va": "center", "ha": "right", "transform": times.get_yaxis_transform()}
        times.text(0.99, first, rf"$\mu\lambda\approx$ {group}", **place)


@counterfeit("rudra/table2/errors-correlation")
def against_print(evidence: Evidence) -> Evidence:
    """A world in which the larger a printed error, the smaller ours."""
    return edited(
        evidence, lambda run: forged(run, {"test_error": 0.5 - run.results["test_error"]}), *map(label, TABLE2)
    )


counterfeit("rudra/table2/errors-rms", *(f"rudra/table2/r{at:02d}-test-error" for at in range(1, 24)))(
    erring_half_more
)

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
            measure_agreement,
            measure_groups,
            measure_held_out,
            measure_left_out,
        ),
        draw,
        alt="Printed errors and times of 23 configurations, and ours with 95% intervals; crosses are calibrated on. "
        "Below, our errors over the printed ones beside the diagonal.",
        size=(9.0, 9.6),
        frame=frame,
    ),
)
