"""Eq. 21: after T updates at batch size nb the loss is at most 1/sqrt(nb T) + 1/T, all constants dropped.

The paper takes the bound from the literature on mini-batch SGD and reads it as an equality in Eq. 22.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suite.claims.estimate import point
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged
from suite.runs.store import Run
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

BOUND = RunSpec("isgd/bound", {"d": 20, "examples": 512, "batches": (1, 4, 16, 64), "updates": 2048, "runs": 128})


def runs(profile: str) -> Groups:
    """Averaged SGD on a noisy quadratic at four batch sizes."""
    return {"bound": (BOUND,)}


def relative(run: Run) -> pd.DataFrame:
    """Excess loss over 1/sqrt(b T) + 1/T: a row per number of updates T, a column per batch size b."""
    table = run.curve("bound")
    shape = 1 / (table["batch"] * table["updates"]) ** 0.5 + 1 / table["updates"]
    return table.assign(relative=table["excess"] / shape).pivot(index="updates", columns="batch", values="relative")


def measure(evidence: Evidence) -> Quantities:
    """One constant for all batch sizes: does the excess loss outgrow it with the updates, or with the batch size?"""
    run = evidence.run("bound")
    found = relative(run)
    earlier, later = found.iloc[: len(found) // 2], found.iloc[len(found) // 2 :]
    over_updates = later.max().max() / earlier.max().max()
    over_batches = found.iloc[:, 1:].max().max() / found.iloc[:, 0].max()
    note = f"rate 1/sqrt(T) averaged SGD on a noisy quadratic, batches {', '.join(map(str, found.columns))}"
    values = float(over_updates), float(over_batches)
    yield "bound", point(values, n=run.spec.settings["runs"], runs=[run.id], note=note)


@counterfeit("isgd/eq21/bound")
def batch_without_effect(evidence: Evidence) -> Evidence:
    """A larger batch ends no lower than a batch of one."""

    def alike(run: Run) -> Run:
        table = run.curve("bound")
        alone = table[table["batch"] == table["batch"].min()].set_index("updates")["excess"]
        return forged(run, bound=table.assign(excess=table["updates"].map(alone)))

    return edited(evidence, alike, "bound")


@counterfeit("isgd/eq21/bound")
def slower_than_the_root(evidence: Evidence) -> Evidence:
    """The excess falls with the fourth root of the updates less than it does."""

    def slower(run: Run) -> Run:
        table = run.curve("bound")
        return forged(run, bound=table.assign(excess=table["excess"] * table["updates"] ** 0.25))

    return edited(evidence, slower, "bound")


def draw(evidence: Evidence, figure: Figure) -> None:
    table = evidence.run("bound").curve("bound")
    axes = figure.subplots()
    for position, (batch, rows) in enumerate(table.groupby("batch")):
        axes.plot(rows["updates"], rows["excess"], "o-", markersize=3, color=f"C{position}", label=f"batch {batch}")
        shape = 1 / (batch * rows["updates"]) ** 0.5 + 1 / rows["updates"]
        scale = (rows["excess"] / shape).max()
        axes.plot(rows["updates"], scale * shape, "--", linewidth=0.8, color=f"C{position}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("updates T")
    axes.set_ylabel("excess loss (dashed: bound of Eq. 21, scaled)")
    axes.legend(fontsize="small")


ARTIFACTS = (
    Artifact(
        "isgd/eq21",
        "Loss bound after T updates at batch size nb",
        runs,
        (measure,),
        draw,
        "Excess loss against updates for four batch sizes, below the scaled bound.",
    ),
)
