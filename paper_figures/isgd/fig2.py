"""Fig. 2: the control chart of ISGD over a training of AlexNet.

Batch losses scatter about their running mean; the limit lies three standard deviations above it, and exactly the
losses above the limit mark the batches that are accelerated. Mean and limit fall as training goes on. Here the runs
of Fig. 5b stand in for AlexNet, at the smoke profile those of the embedded digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.isgd import readings, settings
from suite.claims.measured import point
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    """The stand-in, and small runs watched update by update for the limit itself."""
    pairs = settings.cifar_pairs(profile) or settings.mnist_pairs(profile)
    return {"isgd": pairs["isgd"], **settings.paper_margin()}


def measure_chart(evidence: Evidence) -> Quantities:
    """Chases start exactly above the limit; mean and limit fall."""
    import numpy as np

    stored = evidence.runs("isgd")
    agreed, falls, chases = [], [], 0
    for run in stored:
        table = run.curve("updates").sort_values("update")
        n = -(-DATASETS[run.spec.settings["data"]["name"]].sizes["train"] // run.spec.settings["batch"])
        chasing, loss, limit = (table[name].to_numpy() for name in ("chasing", "loss", "limit"))
        tested = (chasing[:-1] == 0) & (table["iteration"].to_numpy()[:-1] > n)
        started = chasing[1:] == 1
        agreed.append(float((started == (loss[:-1] > limit[:-1]))[tested].mean()) if tested.any() else 1.0)
        chases += int((started & tested).sum())
        mean = table["mean"].to_numpy()[np.isfinite(limit)]
        falls.append((mean[len(mean) // 2] - mean[-1], mean[0] - mean[len(mean) // 2]))
    ids = [run.id for run in stored]
    note = f"stand-in: {stored[0].spec.settings['model']['name']}; {chases} chases in {len(stored)} runs"
    yield "above-limit", point(min(agreed), kind="proxy", runs=ids, note=note)
    steps = [min(fall[i] for fall in falls) for i in range(2)]
    yield "decline", point([float(v) for v in steps], kind="proxy", runs=ids, note=note)


def measure_limit(evidence: Evidence) -> Quantities:
    """The limit against the losses that it follows from."""
    yield from readings.limit_statistics(evidence)


def draw(evidence: Evidence, figure: Figure) -> None:
    run = evidence.runs("isgd")[0]
    table = run.curve("updates").sort_values("update")
    axes = figure.subplots()
    plain, chased = table[table["chasing"] == 0], table[table["chasing"] == 1]
    axes.plot(plain["update"], plain["loss"], ".", markersize=1.5, alpha=0.4, label="batch loss", rasterized=True)
    axes.plot(chased["update"], chased["loss"], "x", markersize=3, color="C3", label="loss while chasing the limit")
    axes.plot(table["update"], table["mean"], color="C1", label="mean of the last epoch")
    axes.plot(table["update"], table["limit"], color="C2", label="limit: mean + 3 deviations")
    axes.set_yscale("log")
    axes.set_xlabel("gradient evaluations")
    axes.set_ylabel("loss (nats)")
    axes.legend(fontsize="small")


ARTIFACTS = (
    Artifact(
        "isgd/fig2",
        "Control chart over training: batch losses, running mean and limit (stand-in for AlexNet)",
        runs,
        (measure_chart, measure_limit),
        draw,
        "Batch losses as dots with the running mean and the control limit falling.",
    ),
)
