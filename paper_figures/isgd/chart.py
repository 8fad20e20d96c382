"""What stored runs of Algorithms 1 and 2 on a small network say about them, and a picture of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from paper_figures.isgd.experiments import MARGINS
from suite.claims.intervals import paired_difference
from suite.claims.measured import Measured, exact, interval
from suite.papers.artifact import Evidence
from suite.runs.store import Run

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

Quantities = Iterable[tuple[str, Measured]]


def iterations(run: Run) -> pd.DataFrame:
    """One row per iteration of Algorithm 1, with ``chased``, its steps of Algorithm 2."""
    table = run.curve("updates")
    rows = table[~table["chasing"]].copy()
    rows["chased"] = table["chasing"].groupby(table["iteration"]).sum().reindex(rows["iteration"]).to_numpy()
    return rows


def complete(run: Run) -> pd.DataFrame:
    """The iterations whose acceleration, if any, the run's end did not cut short."""
    return iterations(run).iloc[:-1]


def windows(losses: np.ndarray, n: int) -> np.ndarray:
    """Losses [T - n + 1, n] of the last n iterations, for iterations n - 1, n, ..."""
    import numpy as np

    return np.lib.stride_tricks.sliding_window_view(losses, n)


def every_margin(evidence: Evidence) -> list[Run]:
    return [run for margin in MARGINS for run in evidence.runs(f"margin {margin:g}")]


def names(runs: Iterable[Run]) -> list[str]:
    return [run.id for run in runs]


def side_by_side(evidence: Evidence) -> Quantities:
    """ISGD beside SGD: equal for good under an unreached limit, equal for one epoch under a tight one."""
    unreached, tight = evidence.run("unreached limit"), evidence.run("tight limit")
    table = unreached.curve("updates")
    note = f"{len(table)} updates, {int(table['chasing'].sum())} of them accelerations"
    yield "equals-sgd-below-limit", exact(table["difference"].max(), runs=[unreached.id], note=note)
    table = tight.curve("updates")
    early = table[table["iteration"] < tight.results["batches"]]
    note = f"the weights differ by up to {table['difference'].max():.2g} later in the same run"
    yield "first-epoch-equals-sgd", exact(early["difference"].max(), runs=[tight.id], note=note)


def triggers(evidence: Evidence) -> Quantities:
    """When batches are accelerated, against a limit computed afresh from the losses."""
    import numpy as np

    runs = every_margin(evidence)
    early, wrong, total, plain = 0, 0, 0, []
    fewest_slow, most_fast = [], []
    for run in runs:
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
    ids = names(runs)
    note = f"{total} accelerations in {len(runs)} runs"
    yield "no-acceleration-first-epoch", exact(early, runs=ids, note=f"{note}, all later")
    yield "triggers-only-above-limit", exact(wrong, runs=ids, note=note)
    yield "sgd-step-always", exact(min(plain), runs=ids)
    step = float(min(fewest_slow) - max(most_fast))
    note = f"{note}; on fast visits at most {max(most_fast):g} update"
    yield "more-updates-on-slow", exact(step, runs=ids, note=note)


def tightness(evidence: Evidence) -> Quantities:
    """Accelerations per iteration after the first epoch, margin against next tighter margin, paired by seed."""
    shares = []
    for margin in MARGINS:
        runs = evidence.runs(f"margin {margin:g}")
        tables = [(complete(run), run.results["batches"]) for run in runs]
        shares.append([float((rows["chased"] > 0).to_numpy()[n + 1 :].mean()) for rows, n in tables])
    steps = [paired_difference(a, b) for a, b in pairwise(shares)]
    note = "; ".join(f"{m:g} sigma: {sum(s) / len(s):.2%}" for m, s in zip(MARGINS, shares, strict=True))
    yield (
        "tighter-limit-more-triggers",
        interval(
            [s.mean for s in steps],
            [s.low for s in steps],
            [s.high for s in steps],
            kind="measured",
            n=steps[0].n,
            runs=names(every_margin(evidence)),
            note=note,
        ),
    )


def running_mean(evidence: Evidence) -> Quantities:
    """The incremental mean against the arithmetic one, in the first epoch and after it."""
    import numpy as np

    runs = every_margin(evidence)
    warm, slid = 0.0, 0.0
    for run in runs:
        rows, n = iterations(run), run.results["batches"]
        losses, mean = rows["loss"].to_numpy(), rows["mean"].to_numpy()
        warm = max(warm, float(np.abs(mean[:n] - losses[:n].cumsum() / np.arange(1, n + 1)).max()))
        slid = max(slid, float(np.abs(mean[n:] - windows(losses, n).mean(1)[1:]).max()))
    yield "mean-warmup", exact(warm, runs=names(runs))
    yield "mean-sliding", exact(slid, runs=names(runs), note="the queue takes each new loss")


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


def queue_length(evidence: Evidence) -> Quantities:
    run = evidence.runs("margin 3")[0]
    n = run.results["batches"]
    lengths = printed_queue(iterations(run)["loss"], n)
    note = f"as printed; full at iteration {n - 1}, empty from iteration {n + lengths[n:].index(0)} on"
    yield "queue-length", exact(min(lengths[n - 1 :]) / n, runs=[run.id], note=note)


def constant_time(evidence: Evidence) -> Quantities:
    run = evidence.run("operations")
    growth = {name: counts[-1] / counts[0] for name, counts in run.results.items()}
    note = (
        f"{run.results['running'][0]} operations on losses, {run.results['update'][0]} on tensors; "
        f"line 18 as printed: x {growth['printed']:.0f}"
    )
    yield "constant-time-stats", exact((growth["running"], growth["update"]), runs=[run.id], note=note)


def limit_statistics(evidence: Evidence) -> Quantities:
    """The stored limit in terms of the stored losses: how many deviations above the mean, and with which divisor."""
    runs = evidence.runs("margin 3")
    scores, freedom = [], []
    for run in runs:
        rows, n = iterations(run), run.results["batches"]
        window = windows(rows["loss"].to_numpy(), n)[1:]
        above = rows["limit"].to_numpy()[n:] - window.mean(1)
        scores += list(above / window.std(1))
        squares = ((window - window.mean(1, keepdims=True)) ** 2).sum(1)
        freedom += list(n - squares / (above / 3) ** 2)
    ids = names(runs)
    note = f"{len(scores)} limits"
    ends = interval(float(scores[0]), min(scores), max(scores), kind="exact", n=len(scores), runs=ids, note=note)
    yield "three-sigma", ends
    yield "limit-above-mean", ends
    worst = max(freedom, key=abs)
    yield "population-sd", exact(worst, runs=ids, note=f"largest of {len(freedom)}")


def chases(evidence: Evidence) -> Quantities:
    """Algorithm 2 in the runs with ``stop`` at 5: how long, and what must not change."""
    runs = every_margin(evidence)
    late, constants, longest = 0, [0.0, 0.0, 0.0], 0
    ascending = begun = 0
    for run in runs:
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
    ids = names(runs)
    note = f"{begun} accelerations in {len(runs)} runs"
    yield "at-most-stop", exact(longest, runs=ids, note=note)
    last = f"{note}; in {ascending} of them the last step was made at a loss already below the limit, away from it"
    yield "early-exit", exact(late, runs=ids, note=last)
    yield "constants", exact(constants, runs=ids, note=note)


def steps_needed(evidence: Evidence) -> Quantities:
    """Median steps until a loss is no longer above the limit, ``stop`` out of the way; extremes over the seeds."""
    import numpy as np

    runs = evidence.runs("endless")
    medians, every = [], []
    for run in runs:
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
    ends = interval(middle, min(medians), max(medians), kind="measured", n=len(runs), runs=names(runs), note=note)
    yield "stop-5", ends


def small_steps(evidence: Evidence) -> Quantities:
    """Eq. 11 and 12 against automatic differentiation, and five small steps down Eq. 11."""
    run = evidence.run("subproblem")
    results = run.results
    decrease, closer = results["decrease"], results["closer"]
    note = f"{len(closer)} undertrained batches, {len(decrease)} steps"
    for name, values in (("lowers-loss", decrease), ("small-move", closer)):
        middle = sorted(values)[len(values) // 2]
        yield (
            name,
            interval(middle, min(values), max(values), kind="measured", n=len(values), runs=[run.id], note=note),
        )
    yield "zero-at-limit", exact((results["at_solution"], results["elsewhere"]), runs=[run.id])
    yield "matches-autodiff", exact(results["derivative"], runs=[run.id], note=note)


def draw(group: str, title: str) -> Callable[[Evidence, Figure], None]:
    """Losses with mean, limit and the steps of Algorithm 2, over all epochs and over the last two."""

    def fill(evidence: Evidence, figure: Figure) -> None:
        run = evidence.runs(group)[0]
        table, n = run.curve("updates"), run.results["batches"]
        whole, detail = figure.subplots(2, 1)
        _panel(whole, table, n)
        last = table[table["iteration"] >= table["iteration"].max() - 2 * n]
        _panel(detail, last, n)
        whole.set_title(title)
        whole.legend(fontsize="small")
        detail.set_xlabel("update (gradient evaluation)")

    return fill


def _panel(axes: Any, table: pd.DataFrame, n: int) -> None:
    plain, chased = table[~table["chasing"]], table[table["chasing"]]
    for _, rows in plain[plain["iteration"] % n == 0].iterrows():
        axes.axvline(rows["update"], color="0.9", linewidth=0.8, zorder=0)
    axes.plot(plain["update"], plain["loss"], ".", markersize=3, color="C0", label="loss of the batch")
    axes.plot(chased["update"], chased["loss"], "x", markersize=4, color="C3", label="step of Algorithm 2")
    axes.plot(table["update"], table["mean"], color="C1", label="mean of the last epoch")
    axes.plot(table["update"], table["limit"], color="C2", label="limit")
    axes.set_ylabel("loss (nats)")
    axes.set_ylim(bottom=0)
