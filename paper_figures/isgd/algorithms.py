"""Algorithms 1 and 2: a small network watched update by update.

Algorithm 1: every batch gets its SGD step; its loss enters a queue of one epoch, whose mean and standard deviation
give a control limit (section 3.1); from the second epoch on, a batch whose loss exceeds the limit is handed to
Algorithm 2. Each of its steps goes down Eq. 11: it chases the limit and stays near the weights before the batch. It
ends when the loss is no longer above the limit, or after ``stop`` steps, of which the paper says that about five are
enough.
"""

from __future__ import annotations

from functools import partial

from paper_figures.isgd import settings
from paper_figures.isgd.pairs import settings_of
from suite.claims.intervals import Interval
from suite.papers.figure import Artifact, Axes, Figure, Frame, Missing, np, pd
from suite.report.style import GRID

ALG1 = Artifact(
    "isgd/alg1",
    "ISGD outer loop: SGD step, loss queue, control limit, conditional acceleration",
    lambda profile: {"margin 3": settings.traces()["margin 3"]},
    alt="Batch losses of a small network over eight epochs with their running mean and the limit above it; the few "
    "losses above the limit are followed by steps of Algorithm 2.",
    size=(7.2, 5.6),
)
ALG2 = Artifact(
    "isgd/alg2",
    "Conservative subproblem: bounded number of steps on an undertrained batch",
    lambda profile: {**settings.traces(), **settings.endless(profile)},
    alt="Batch losses of a small network with a tight limit; losses above it are followed by one to five steps that "
    "bring the loss of that batch down.",
    size=(7.2, 5.6),
)


def hard_chases(frame: Frame, group: str) -> list[list[tuple[int, float]]]:
    """By run, the least and most steps of each acceleration whose loss was above the limit when Algorithm 2 began.

    The others were over before: the SGD step of Algorithm 1 had brought them below the limit. One that ``stop`` or
    the end of the run cut off might have needed any number of steps more.
    """
    table = frame.table("updates", group)
    found: dict[str, list[tuple[int, float]]] = {run: [] for run in frame[group]["run"]}
    for (run, _), rows in table[table["chasing"]].groupby(["run", "iteration"]):
        if (above := rows["loss"] > rows["limit"].iloc[0]).iloc[0]:
            found[run].append((len(rows), np.inf if above.iloc[-1] else len(rows)))
    return list(found.values())


def steps_needed(group: str, frame: Frame) -> Interval:
    """Median of the least steps until a loss is no longer above the limit; extremes over seeds, of least and most.

    Raises Missing where no acceleration was left to Algorithm 2.
    """
    medians = [np.median(steps, 0) for steps in hard_chases(frame, group) if steps]
    if not medians:
        raise Missing("lacks an acceleration that the SGD step had not ended")
    least, most = np.transpose(medians)  # [seeds] each
    return Interval(float(np.median(least)), float(min(least)), float(max(most)), len(medians), None)


def told(group: str, frame: Frame) -> str:
    chosen, every = settings_of(frame, group), [steps for run in hard_chases(frame, group) for steps in run]
    return (
        f"zeta = {chosen['algorithm']['zeta'] / chosen['rate']:g} rates: {len(every)} accelerations that the SGD "
        f"step had not ended, {sum(least > 5 for least, _ in every)} of which needed more than 5 steps and "
        f"{sum(most > least for least, most in every)} were cut off, the longest after {max(every)[0]}"
    )


for quantity, group in (("stop-5", "endless"), ("steps-at-thirty-rates", "endless, thirty rates")):
    ALG2.quantity(quantity, [group], note=partial(told, group))(partial(steps_needed, group))


def draw(group: str, title: str, frame: Frame, figure: Figure) -> None:
    """Losses with mean, limit and the steps of Algorithm 2, over all epochs and over the last two."""
    run = frame.needed([group]).runs_of(group)[0]
    table, n = run.curve("updates"), run.results["batches"]
    whole, detail = figure.subplots(2, 1)
    _chart(whole, table, n)
    _chart(detail, table[table["iteration"] >= table["iteration"].max() - 2 * n], n)
    whole.set_title(title)
    whole.legend(fontsize="small")
    detail.set_xlabel("update (gradient evaluation); dotted: an epoch begins")


def _chart(axes: Axes, table: pd.DataFrame, n: int) -> None:
    plain, chased = table[~table["chasing"]], table[table["chasing"]]
    for _, rows in plain[plain["iteration"] % n == 0].iterrows():
        axes.axvline(rows["update"], color=GRID, linewidth=0.5, linestyle=":", zorder=0)
    axes.plot(plain["update"], plain["loss"], ".", markersize=3, color="C0", label="loss of the batch")
    axes.plot(chased["update"], chased["loss"], "x", markersize=4, color="C3", label="step of Algorithm 2")
    axes.plot(table["update"], table["mean"], color="C1", label="mean of the last epoch")
    axes.plot(table["update"], table["limit"], color="C2", label="limit")
    axes.set_ylabel("loss (nats)")
    axes.set_ylim(bottom=0)
    axes.grid(visible=False, axis="x")  # what stands upright is the start of an epoch


ALG1.drawing(partial(draw, "margin 3", "Algorithm 1 on embedded digits, limit three standard deviations above"))
ALG2.drawing(
    partial(draw, "margin 1", "Algorithm 2 on embedded digits, limit one standard deviation above, at most 5 steps")
)
