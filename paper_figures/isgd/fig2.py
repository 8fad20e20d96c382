"""Fig. 2: the control chart of ISGD over a training of AlexNet.

Batch losses scatter about their running mean; the limit lies three standard deviations above it, and exactly the
losses above the limit mark the batches that are accelerated. Mean and limit fall as training goes on. Here the runs
of Fig. 5b stand in for AlexNet, at the smoke profile those of the embedded digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paper_figures.isgd import readings, settings
from suite.claims.estimate import point
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.runs.store import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    """The stand-in, and small runs watched update by update for the limit itself."""
    pairs = settings.cifar_pairs(profile) or settings.mnist_pairs(profile)
    return {"isgd": pairs["isgd"], **settings.paper_margin()}


def measure_chart(evidence: Evidence) -> Quantities:
    """By how much the mean falls in each half of the run."""
    import numpy as np

    stored = evidence.runs("isgd")
    falls, chases = [], 0
    for run in stored:
        table = run.curve("updates").sort_values("update")
        n = -(-DATASETS[run.spec.settings["data"]["name"]].sizes["train"] // run.spec.settings["batch"])
        chasing, limit = (table[name].to_numpy() for name in ("chasing", "limit"))
        tested = (chasing[:-1] == 0) & (table["iteration"].to_numpy()[:-1] > n)
        started = chasing[1:] == 1
        chases += int((started & tested).sum())
        mean = table["mean"].to_numpy()[np.isfinite(limit)]
        falls.append((mean[len(mean) // 2] - mean[-1], mean[0] - mean[len(mean) // 2]))
    ids = [run.id for run in stored]
    note = f"stand-in: {stored[0].spec.settings['model']['name']}; {chases} chases in {len(stored)} runs"
    steps = [min(fall[i] for fall in falls) for i in range(2)]
    yield "decline", point([float(v) for v in steps], proxy=True, runs=ids, note=note)


def measure_limit(evidence: Evidence) -> Quantities:
    """The limit against the losses that it follows from."""
    yield from readings.limit_statistics(evidence)


def shown(evidence: Evidence) -> Run:
    """The run with the most accelerations."""
    return max(evidence.runs("isgd"), key=lambda run: float(run.curve("updates")["chasing"].sum()))


def frame(evidence: Evidence) -> pd.DataFrame:
    """The run shown, from its second epoch on: a row per update with its epoch, loss, mean, limit and kind."""
    run = shown(evidence)
    table = run.curve("updates").sort_values("update")
    n = -(-DATASETS[run.spec.settings["data"]["name"]].sizes["train"] // run.spec.settings["batch"])
    begun = (table["chasing"] == 0) & (table["chasing"].shift(-1) == 1)
    table = table.assign(epoch=table["iteration"] / n, accelerated=begun)
    return table.loc[table["iteration"] > n, ["update", "epoch", "loss", "mean", "limit", "chasing", "accelerated"]]


def draw(evidence: Evidence, figure: Figure) -> None:
    """Fig. 2's chart: losses as dots, mean and limit as lines, and the batches that were accelerated ringed."""
    import seaborn as sns

    run, table = shown(evidence), frame(evidence)
    axes = figure.subplots()
    met, accelerated = table[table["chasing"] == 0], table[table["accelerated"]]
    dots: dict[str, Any] = {"s": 5, "alpha": 0.5, "linewidth": 0, "rasterized": True}
    sns.scatterplot(met, x="epoch", y="loss", ax=axes, color="C0", label="batch loss", **dots)
    for column, colour, name in (("mean", "C1", "mean"), ("limit", "C2", "limit: mean + 3 deviations")):
        sns.lineplot(met, x="epoch", y=column, ax=axes, color=colour, label=name, estimator=None)
    rings: dict[str, Any] = {"s": 50, "facecolor": "none", "edgecolor": "C3", "linewidth": 1.2}
    axes.scatter(accelerated["epoch"], accelerated["loss"], label=f"accelerated ({len(accelerated)})", **rings)
    network = {"caffe_cifar_quick": "Caffe-Quick on CIFAR-10", "digits_lenet": "LeNet on scikit-learn's digits"}
    standing_in = network[run.spec.settings["model"]["name"]]
    axes.set_title(f"stand-in for AlexNet: {standing_in}, of {len(evidence.runs('isgd'))} runs the most accelerated")
    axes.set(xlabel="epoch", ylabel="loss (nats)")
    axes.legend(loc="upper right")


ARTIFACTS = (
    Artifact(
        "isgd/fig2",
        "Control chart over training: batch losses, running mean and limit (stand-in for AlexNet)",
        runs,
        (measure_chart, measure_limit),
        draw,
        "Batch losses as dots with the running mean and the control limit falling; accelerated batches are ringed.",
        frame=frame,
    ),
)
