"""Fig. 2: the control chart of ISGD over a training of AlexNet.

Batch losses scatter about their running mean; the limit lies three standard deviations above it, and exactly the
losses above the limit mark the batches that are accelerated. Mean and limit fall as training goes on. Below the
paper's profile the narrow AlexNet of Fig. 5(c) stands in, or LeNet on the embedded digits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from paper_figures.isgd import settings
from paper_figures.isgd.pairs import data_of, settings_of
from suite.data.catalogue import DATASETS
from suite.papers.figure import Artifact, Figure, Frame, Groups, Quantity, np, pd, sns

NETWORKS = {
    "caffe_alexnet": "AlexNet on ImageNet",
    "narrow_alexnet": "stand-in for AlexNet: narrow AlexNet on CIFAR-100",
    "digits_lenet": "stand-in for AlexNet: LeNet on scikit-learn's digits",
}


def runs(profile: str) -> Groups:
    """ISGD's run of Fig. 5(c) on ImageNet, or those of a stand-in."""
    if profile == "paper":
        return {"isgd": (settings.imagenet(1000, 60),)}
    pairs = settings.narrow_pairs(profile) or settings.mnist_pairs(profile)
    return {"isgd": pairs["isgd"]}


PANEL = Artifact(
    "isgd/fig2",
    "Control chart over the training of AlexNet: batch losses, running mean and limit",
    runs,
    alt="Batch losses as dots with the running mean and the control limit falling; accelerated batches are ringed.",
)


def updates(frame: Frame, run: str) -> pd.DataFrame:
    """The updates of a run, with their epoch, and whether the batch is accelerated in the next."""
    table = frame.stored[run].curve("updates").sort_values("update")
    n = -(-DATASETS[data_of(frame, "isgd")].sizes["train"] // settings_of(frame, "isgd")["batch"])
    begun = (table["chasing"] == 0) & (table["chasing"].shift(-1) == 1)
    return table.assign(epoch=table["iteration"] / n, accelerated=begun)


def falls(frame: Frame, line: str) -> list[float]:
    """By how much the mean or the limit falls in the second half of a run and in the first: the least of the runs."""
    found = []
    for run in frame["isgd"]["run"]:
        table = updates(frame, run)
        height = table[line].to_numpy()[np.isfinite(table["limit"])]
        middle = height[len(height) // 2]
        found.append((middle - height[-1], height[0] - middle))
    return [float(least) for least in np.min(found, axis=0)]


def beside(frame: Frame) -> str:
    """What the mean's falls are of, and the limit's."""
    second, first = falls(frame, "limit")
    network, runs = settings_of(frame, "isgd")["model"]["name"], len(frame["isgd"])
    return f"{network}, {runs} runs; the limit falls by {second:.2f} in the second half and {first:.2f} in the first"


PANEL.quantities["decline"] = Quantity(partial(falls, line="mean"), ("isgd",), note=beside)


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """The run with the most accelerations, from its second epoch on: a row per update with its kind."""
    part = frame.needed(["isgd"])
    rows = max((updates(part, run) for run in part["isgd"]["run"]), key=lambda each: float(each["chasing"].sum()))
    return rows.loc[rows["epoch"] > 1, ["update", "epoch", "loss", "mean", "limit", "chasing", "accelerated"]]


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Fig. 2's chart: losses as dots, mean and limit as lines, and the batches that were accelerated ringed."""
    rows = table(frame)
    axes = figure.subplots()
    met, accelerated = rows[rows["chasing"] == 0], rows[rows["accelerated"]]
    dots: dict[str, Any] = {"s": 5, "alpha": 0.5, "linewidth": 0, "rasterized": True}
    sns.scatterplot(met, x="epoch", y="loss", ax=axes, color="C0", label="batch loss", **dots)
    for column, colour, name in (("mean", "C1", "mean"), ("limit", "C2", "limit: mean + 3 standard deviations")):
        sns.lineplot(met, x="epoch", y=column, ax=axes, color=colour, label=name, estimator=None)
    rings: dict[str, Any] = {"s": 50, "facecolor": "none", "edgecolor": "C3", "linewidth": 1.2}
    axes.scatter(accelerated["epoch"], accelerated["loss"], label=f"accelerated ({len(accelerated)})", **rings)
    network, runs = NETWORKS[settings_of(frame, "isgd")["model"]["name"]], len(frame["isgd"])
    axes.set_title(f"{network}, the most accelerated of {runs} runs" if runs > 1 else network)
    axes.set(xlabel="epoch", ylabel="loss (nats)")
    axes.legend(loc="upper right")
