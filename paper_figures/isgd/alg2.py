"""Algorithm 2: the conservative subproblem, a bounded number of steps on an undertrained batch.

Each step goes down Eq. 11: it chases the limit and stays near the weights before the batch. It ends when the loss is
no longer above the limit, or after ``stop`` steps, of which the paper says that about five are enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.isgd import alg1, plots, readings, settings
from paper_figures.isgd.readings import every_margin, iterations, run_ids
from suite.claims.estimate import Estimate, exact, interval
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities
from suite.papers.counterfeits import as_if, counterfeit, edited, forged, genuine, rerun
from suite.runs.store import Run

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


def hard_chases(run: Run) -> list[float]:
    """Steps of each acceleration whose loss was still above the limit when Algorithm 2 first computed it.

    The others were over before they began: the SGD step of Algorithm 1 had brought them below the limit.
    """
    table = run.curve("updates")
    chases = table[table["chasing"]].groupby("iteration")
    return [float(len(rows)) for _, rows in chases if rows["loss"].iloc[0] > rows["limit"].iloc[0]]


def steps_needed(evidence: Evidence, group: str) -> Estimate:
    """Median steps until a loss is no longer above the limit, ``stop`` out of the way; extremes over the seeds.

    Raises Missing where no acceleration was left to Algorithm 2.
    """
    import numpy as np

    traced = evidence.runs(group)
    found = [chases for run in traced if (chases := hard_chases(run))]
    if not found:
        raise Missing("an acceleration that the SGD step had not ended")
    medians = [float(np.median(chases)) for chases in found]
    every = [steps for chases in found for steps in chases]
    zeta = traced[0].spec.settings["algorithm"]["zeta"] / traced[0].spec.settings["rate"]
    note = (
        f"zeta = {zeta:g} rates: {len(every)} accelerations that the SGD step had not ended, "
        f"{sum(steps > 5 for steps in every)} of which needed more than 5 steps, the longest {max(every):g} or more"
    )
    ends = min(medians), max(medians)
    ids = run_ids(traced)
    return interval(float(np.median(medians)), *ends, n=len(found), runs=ids, note=note)


def measure_steps_needed(evidence: Evidence) -> Quantities:
    """With zeta equal to the learning rate."""
    yield "stop-5", steps_needed(evidence, "endless")


def measure_steps_at_larger_zeta(evidence: Evidence) -> Quantities:
    """With zeta thirty times the learning rate."""
    yield "steps-at-thirty-rates", steps_needed(evidence, "endless, thirty rates")


@genuine("isgd/alg2/stop-5")
def thirty_rates(evidence: Evidence) -> Evidence:
    """Zeta was thirty times as large."""
    return rerun(
        evidence, lambda s: {**s, "algorithm": {**s["algorithm"], "zeta": 30 * s["algorithm"]["zeta"]}}, "endless"
    )


@counterfeit("isgd/alg2/stop-5")
def zeta_zero(evidence: Evidence) -> Evidence:
    """Algorithm 2 stands still."""
    return rerun(evidence, lambda s: {**s, "algorithm": {**s["algorithm"], "zeta": 0.0}}, "endless")


@counterfeit("isgd/alg2/at-most-stop")
def no_stop(evidence: Evidence) -> Evidence:
    return as_if(evidence, "margin 2", "endless")


@counterfeit("isgd/alg2/early-exit")
def chasing_below_the_limit(evidence: Evidence) -> Evidence:
    """Every step of Algorithm 2 was made at a loss of nothing."""
    return alg1.edited_traces(evidence, lambda table, _: table.assign(loss=table["loss"].where(~table["chasing"], 0)))


@counterfeit("isgd/alg2/constants")
def anchor_moves(evidence: Evidence) -> Evidence:
    return alg1.edited_traces(evidence, lambda table, _: table.assign(anchor_moved=1e-12 * table["chasing"]))


@counterfeit("isgd/alg2/lowers-loss", "isgd/alg2/small-move")
def steps_uphill(evidence: Evidence) -> Evidence:
    """Steps go up Eq. 11, and away from the weights before the batch."""
    names = ("decrease", "closer")
    return edited(
        evidence, lambda run: forged(run, {n: [-value for value in run.results[n]] for n in names}), "subproblem"
    )


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
        (measure_chases, measure_steps_needed, measure_steps_at_larger_zeta, measure_small_steps),
        draw,
        alt="Batch losses of a small network with a tight limit; losses above it are followed by one to five steps "
        "that bring the loss of that batch down.",
        size=(7.2, 5.6),
    ),
)
