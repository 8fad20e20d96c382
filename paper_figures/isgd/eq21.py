"""Eq. 21: after T updates at batch size nb the loss is at most 1/sqrt(nb T) + 1/T, all constants dropped.

The paper takes the bound from the literature on mini-batch SGD and reads it as an equality in Eq. 22.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from suite.claims.measured import point
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUND = RunSpec("isgd/bound", {"d": 20, "examples": 512, "batches": (1, 4, 16, 64), "updates": 2048, "runs": 128})


def runs(profile: str) -> Groups:
    """Averaged SGD on a noisy quadratic at four batch sizes."""
    return {"bound": (BOUND,)}


def measure(evidence: Evidence) -> Quantities:
    """Excess loss over 1/sqrt(b T) + 1/T: largest ratio over the later half against the earlier half."""
    run = evidence.run("bound")
    table = run.curve("bound")
    ratios = []
    for batch, rows in table.groupby("batch"):
        shape = 1 / (batch * rows["updates"]) ** 0.5 + 1 / rows["updates"]
        relative = (rows["excess"] / shape).to_numpy()
        half = len(relative) // 2
        ratios.append(float(relative[half:].max() / relative[:half].max()))
    note = "rate 1/sqrt(T) averaged SGD on a noisy quadratic; " + ", ".join(f"{r:.2f}" for r in ratios)
    yield "bound", point(max(ratios), kind="measured", n=run.spec.settings["runs"], runs=[run.id], note=note)


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
