"""Algorithm 1: the outer loop of ISGD.

Every batch gets its SGD step; its loss enters a queue of one epoch, whose mean and standard deviation give a control
limit (section 3.1); from the second epoch on, a batch whose loss exceeds the limit is handed to Algorithm 2. What the
paper says of the loop is checked at every update of stored runs on a small network, against plain SGD beside it, and
on several workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from paper_figures.isgd import plots, readings, settings
from paper_figures.isgd.readings import every_margin, iterations, run_ids, windows
from paper_figures.isgd.settings import MARGINS, SMALL
from suite.claims.estimate import exact, over_seeds
from suite.claims.intervals import paired_difference
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.counterfeits import as_if, counterfeit, edited, exchanged, forged
from suite.runs.store import Run
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def beside_sgd() -> Groups:
    """ISGD and SGD side by side: under a limit that no loss reaches, and under one that many exceed."""
    common = {**SMALL, "updates": 200}
    unreached, tight = (settings.isgd(SMALL["rate"], margin=margin) for margin in (1e6, 1.0))
    return {
        "unreached limit": (RunSpec("isgd/beside-sgd", {**common, "algorithm": unreached}),),
        "tight limit": (RunSpec("isgd/beside-sgd", {**common, "algorithm": tight}),),
    }


def runs(profile: str) -> Groups:
    """Small runs watched update by update, and the operations of an update."""
    return {
        **settings.traces(),
        **beside_sgd(),
        **settings.parallel(),
        "operations": (RunSpec("isgd/operations", {"batches": [10, 10_000]}),),
    }


def complete(run: Run) -> pd.DataFrame:
    """The iterations whose acceleration, if any, the run's end did not cut short."""
    return iterations(run).iloc[:-1]


def measure_side_by_side(evidence: Evidence) -> Quantities:
    """ISGD beside SGD: equal for good under an unreached limit, equal for one epoch under a tight one."""
    unreached, tight = evidence.run("unreached limit"), evidence.run("tight limit")
    table = unreached.curve("updates")
    note = f"{len(table)} updates, {int(table['chasing'].sum())} of them accelerations"
    yield "equals-sgd-below-limit", exact(table["difference"].max(), runs=[unreached.id], note=note)
    table = tight.curve("updates")
    early = table[table["iteration"] < tight.results["batches"]]
    note = f"the weights differ by up to {table['difference'].max():.2g} later in the same run"
    yield "first-epoch-equals-sgd", exact(early["difference"].max(), runs=[tight.id], note=note)


@counterfeit("isgd/alg1/equals-sgd-below-limit")
def limit_reached(evidence: Evidence) -> Evidence:
    """The limit that no loss reaches did what the tight one did."""
    return as_if(evidence, "unreached limit", "tight limit")


@counterfeit("isgd/alg1/first-epoch-equals-sgd")
def apart_in_the_first_epoch(evidence: Evidence) -> Evidence:
    """The weights part, as they do later, in the third iteration."""

    def earlier(run: Run) -> Run:
        table = run.curve("updates")
        parted = table.loc[table["difference"] > 0, "iteration"].min()
        return forged(run, updates=table.assign(iteration=table["iteration"] - parted + 3))

    return edited(evidence, earlier, "tight limit")


def measure_triggers(evidence: Evidence) -> Quantities:
    """When batches are accelerated, against a limit computed afresh from the losses."""
    import numpy as np

    traced = every_margin(evidence)
    early, wrong, total, plain = 0, 0, 0, []
    fewest_slow, most_fast = [], []
    for run in traced:
        rows, n = complete(run), run.results["batches"]
        losses, chased = rows["loss"].to_numpy(), rows["chased"].to_numpy()
        window = windows(losses, n)
        limit = np.full(len(losses), np.inf)
        margin = run.spec.settings["algorithm"]["margin"]
        limit[n + 1 :] = (window.mean(1) + margin * window.std(1))[2:]  # none is tested up to iteration n
        slow = losses > limit
        early += int((chased[: n + 1] > 0).sum())
        wrong += int(((chased > 0) != slow).sum())
        total += int((chased > 0).sum())
        plain.append(float(rows["sgd_step"].mean()))
        if slow.any():
            fewest_slow.append(1 + chased[slow].min())
        most_fast.append(1 + chased[~slow].max())
    note = f"{total} accelerations in {len(traced)} runs"
    yield "no-acceleration-first-epoch", exact(early, runs=run_ids(traced), note=f"{note}, all later")
    yield "triggers-only-above-limit", exact(wrong, runs=run_ids(traced), note=note)
    yield "sgd-step-always", exact(min(plain), runs=run_ids(traced))
    step = float(min(fewest_slow) - max(most_fast))
    note = f"{note}; on fast visits at most {max(most_fast):g} update"
    yield "more-updates-on-slow", exact(step, runs=run_ids(traced), note=note)


def edited_traces(evidence: Evidence, edit: Callable[[pd.DataFrame, int], pd.DataFrame]) -> Evidence:
    """The watched runs with their table of updates, and the batches of an epoch, put through ``edit``."""
    names = [f"margin {margin:g}" for margin in MARGINS]
    return edited(
        evidence, lambda run: forged(run, updates=edit(run.curve("updates"), run.results["batches"])), *names
    )


@counterfeit("isgd/alg1/no-acceleration-first-epoch", "isgd/alg1/triggers-only-above-limit")
def accelerated_in_the_first_epoch(evidence: Evidence) -> Evidence:
    """Each acceleration was made at the same batch's visit in the first epoch."""

    def first(table: pd.DataFrame, n: int) -> pd.DataFrame:
        return table.assign(iteration=table["iteration"].where(~table["chasing"], table["iteration"] % n))

    return edited_traces(evidence, first)


@counterfeit("isgd/alg1/sgd-step-always")
def slow_batches_without_sgd(evidence: Evidence) -> Evidence:
    """The solver's step is left out wherever a batch is about to be accelerated."""
    return edited_traces(
        evidence, lambda table, _: table.assign(sgd_step=~table["chasing"].shift(-1, fill_value=False))
    )


def measure_tightness(evidence: Evidence) -> Quantities:
    """Accelerations per iteration after the first epoch, margin against next tighter margin, paired by seed."""
    shares = []
    for margin in MARGINS:
        traced = evidence.runs(f"margin {margin:g}")
        tables = [(complete(run), run.results["batches"]) for run in traced]
        shares.append([float((rows["chased"] > 0).to_numpy()[n + 1 :].mean()) for rows, n in tables])
    steps = [paired_difference(a, b) for a, b in pairwise(shares)]
    note = "; ".join(f"{m:g} sigma: {sum(s) / len(s):.2%}" for m, s in zip(MARGINS, shares, strict=True))
    yield "tighter-limit-more-triggers", over_seeds(steps, run_ids(every_margin(evidence)), note)


@counterfeit("isgd/alg1/tighter-limit-more-triggers")
def margins_exchanged(evidence: Evidence) -> Evidence:
    return exchanged(evidence, "margin 3", "margin 1")


def measure_running_mean(evidence: Evidence) -> Quantities:
    """The incremental mean against the arithmetic one, in the first epoch and after it."""
    import numpy as np

    traced = every_margin(evidence)
    warm, slid = 0.0, 0.0
    for run in traced:
        rows, n = iterations(run), run.results["batches"]
        losses, mean = rows["loss"].to_numpy(), rows["mean"].to_numpy()
        warm = max(warm, float(np.abs(mean[:n] - losses[:n].cumsum() / np.arange(1, n + 1)).max()))
        slid = max(slid, float(np.abs(mean[n:] - windows(losses, n).mean(1)[1:]).max()))
    yield "mean-warmup", exact(warm, runs=run_ids(traced))
    yield "mean-sliding", exact(slid, runs=run_ids(traced), note="the queue takes each new loss")


def printed_queue(losses: Iterable[float], n: int) -> list[int]:
    """Lengths of the queue after each iteration, lines 13-20 of Algorithm 1 as printed."""
    from collections import deque

    queue: deque[float] = deque()
    lengths = []
    for iteration, loss in enumerate(losses):
        if iteration < n:
            queue.append(loss)
        elif queue:
            queue.popleft()
        lengths.append(len(queue))
    return lengths


def measure_queue_length(evidence: Evidence) -> Quantities:
    run = evidence.runs("margin 3")[0]
    n = run.results["batches"]
    lengths = printed_queue(iterations(run)["loss"], n)
    note = f"as printed; full at iteration {n - 1}, empty from iteration {n + lengths[n:].index(0)} on"
    yield "queue-length", exact(min(lengths[n - 1 :]) / n, runs=[run.id], note=note)


def measure_constant_time(evidence: Evidence) -> Quantities:
    run = evidence.run("operations")
    growth = {name: counts[-1] / counts[0] for name, counts in run.results.items()}
    note = (
        f"{run.results['running'][0]} operations on losses, {run.results['update'][0]} on tensors; "
        f"line 18 as printed: x {growth['printed']:.0f}"
    )
    yield "constant-time-stats", exact((growth["running"], growth["update"]), runs=[run.id], note=note)


def measure_parallel(evidence: Evidence) -> Quantities:
    """Section 4: the same iterates on several workers."""
    yield from readings.data_parallelism(evidence)


def measure_normal_tail(_: Evidence) -> Quantities:
    """Control charts on normal losses: chance of a false alarm, and margins that alarm neither never nor often."""
    from scipy import stats

    yield "normal-false-alarm", exact(float(stats.norm.sf(3)))
    usual = [margin for margin in range(1, 7) if 0.001 <= stats.norm.sf(margin) <= 0.05]
    note = "whole margins whose false-alarm rate lies between 0.1% and 5%"
    yield "margin-range", exact([float(margin) for margin in usual], note=note)


def measure_smallest_epoch(_: Evidence) -> Quantities:
    """Batches per epoch from which a loss can exceed mean + 3 sigma of a window that contains it.

    One loss apart from n - 1 equal ones has the largest possible score in its window (Samuelson's inequality).
    """
    import numpy as np

    def largest_score(n: int) -> float:
        window = np.zeros(n)
        window[-1] = 1.0
        return float((window[-1] - window.mean()) / window.std())

    yield "needs-eleven-if-self-included", exact(next(n for n in range(2, 100) if largest_score(n) > 3))


def draw(evidence: Evidence, figure: Figure) -> None:
    run = evidence.runs("margin 3")[0]
    plots.control_chart(run, figure, "Algorithm 1 on scikit-learn's digits, limit at three deviations")


ARTIFACTS = (
    Artifact(
        "isgd/alg1",
        "ISGD outer loop: SGD step, loss queue, control limit, conditional acceleration",
        runs,
        (
            measure_side_by_side,
            measure_triggers,
            measure_tightness,
            measure_running_mean,
            measure_queue_length,
            measure_constant_time,
            measure_parallel,
            measure_normal_tail,
            measure_smallest_epoch,
        ),
        draw,
        alt="Batch losses of a small network over eight epochs with their running mean and the limit above it; the "
        "few losses above the limit are followed by steps of Algorithm 2.",
        size=(7.2, 5.6),
    ),
)
