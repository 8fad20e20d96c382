"""Algorithm 2: the conservative subproblem, a bounded number of steps on an undertrained batch.

Each step goes down Eq. 11: it chases the limit and stays near the weights before the batch. It ends when the loss is
no longer above the limit, or after ``stop`` steps, of which the paper says that about five are enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.isgd import plots, readings, settings
from paper_figures.isgd.readings import every_margin, iterations, run_ids
from suite.claims.measured import exact, interval
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    """Small runs watched update by update, and small steps from several undertrained batches."""
    return {**settings.traces(), **settings.endless(), **settings.subproblem()}


def measure_chases(evidence: Evidence) -> Quantities:
    """The runs with ``stop`` at 5: how long, and what must not change."""
    traced = every_margin(evidence)
    late, constants, longest = 0, [0.0, 0.0, 0.0], 0
    ascending = begun = 0
    for run in traced:
        table = run.curve("updates")
        last_limit = table["limit"].to_numpy()
        loss, chasing = table["loss"].to_numpy(), table["chasing"].to_numpy()
        follows = chasing[1:] & chasing[:-1]
        late += int((follows & (loss[:-1] <= last_limit[:-1])).sum())
        ascending += int((chasing & (loss <= last_limit)).sum())
        longest = max(longest, int(iterations(run)["chased"].max()))
        begun += int((chasing[1:] & ~chasing[:-1]).sum())
        moved = table.groupby("iteration")["batch"].agg(lambda batch: batch.max() - batch.min()).max()
        for place, value in enumerate((table["limit_moved"].max(), table["anchor_moved"].max(), moved)):
            constants[place] = max(constants[place], float(value))
    note = f"{begun} accelerations in {len(traced)} runs"
    yield "at-most-stop", exact(longest, runs=run_ids(traced), note=note)
    last = f"{note}; in {ascending} of them the last step was made at a loss already below the limit, away from it"
    yield "early-exit", exact(late, runs=run_ids(traced), note=last)
    yield "constants", exact(constants, runs=run_ids(traced), note=note)


def measure_steps_needed(evidence: Evidence) -> Quantities:
    """Median steps until a loss is no longer above the limit, ``stop`` out of the way; extremes over the seeds."""
    import numpy as np

    traced = evidence.runs("endless")
    medians, every = [], []
    for run in traced:
        rows = iterations(run)
        chased = rows["chased"].to_numpy()
        chased = chased[chased > 0]
        every += list(chased)
        medians.append(float(np.median(chased)))
    above = sum(steps > 5 for steps in every)
    note = (
        f"{len(every)} accelerations, {above} of which needed more than 5 steps, the longest {max(every):g} or more"
    )
    middle = float(np.median(medians))
    ends = interval(
        middle, min(medians), max(medians), kind="measured", n=len(traced), runs=run_ids(traced), note=note
    )
    yield "stop-5", ends


def measure_small_steps(evidence: Evidence) -> Quantities:
    """Small steps lower the objective and stay close."""
    yield from readings.small_steps(evidence)


def draw(evidence: Evidence, figure: Figure) -> None:
    run = evidence.runs("margin 1")[0]
    title = "Algorithm 2 on scikit-learn's digits, limit at one deviation, at most five steps"
    plots.control_chart(run, figure, title)


ARTIFACTS = (
    Artifact(
        "isgd/alg2",
        "Conservative subproblem: bounded number of steps on an undertrained batch",
        runs,
        (measure_chases, measure_steps_needed, measure_small_steps),
        draw,
        alt="Batch losses of a small network with a tight limit; losses above it are followed by one to five steps "
        "that bring the loss of that batch down.",
        size=(7.2, 5.6),
    ),
)
