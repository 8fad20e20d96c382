"""Fig. 2: the control chart of ISGD over a training of AlexNet.

Batch losses scatter about their running mean; the limit lies three standard deviations above it, and exactly the
losses above the limit mark the batches that are accelerated. Mean and limit fall as training goes on. Here the runs
of Fig. 5b stand in for AlexNet, at the smoke profile those of the embedded digits.
"""

from __future__ import annotations

from typing import Any

from paper_figures.isgd import settings
from paper_figures.isgd.pairs import settings_of
from suite.data.catalogue import DATASETS
from suite.papers.figure import Artifact, Figure, Frame, Groups, np, pd, sns

NETWORKS = {"caffe_cifar_quick": "Caffe-Quick on CIFAR-10", "digits_lenet": "LeNet on scikit-learn's digits"}


def runs(profile: str) -> Groups:
    """ISGD's runs of the stand-in."""
    pairs = settings.cifar_pairs(profile) or settings.mnist_pairs(profile)
    return {"isgd": pairs["isgd"]}


PANEL = Artifact(
    "isgd/fig2",
    "Control chart over training: batch losses, running mean and limit (stand-in for AlexNet)",
    runs,
    alt="Batch losses as dots with the running mean and the control limit falling; accelerated batches are ringed.",
)


def updates(frame: Frame, run: str) -> pd.DataFrame:
    """The updates of a run, with their epoch, and whether the batch is accelerated in the next."""
    table = frame.stored[run].curve("updates").sort_values("update")
    chosen = settings_of(frame, "isgd")
    n = -(-DATASETS[chosen["data"]["name"]].sizes["train"] // chosen["batch"])
    begun = (table["chasing"] == 0) & (table["chasing"].shift(-1) == 1)
    return table.assign(epoch=table["iteration"] / n, accelerated=begun)


def stand_in(frame: Frame) -> str:
    return f"stand-in: {settings_of(frame, 'isgd')['model']['name']}, {len(frame['isgd'])} runs"


@PANEL.quantity("decline", ["isgd"], shown=True, note=stand_in)
def decline(frame: Frame) -> list[float]:
    """By how much the mean falls in the second half of a run and in the first: the least over the runs."""
    falls = []
    for run in frame["isgd"]["run"]:
        table = updates(frame, run)
        mean = table["mean"].to_numpy()[np.isfinite(table["limit"])]
        falls.append((mean[len(mean) // 2] - mean[-1], mean[0] - mean[len(mean) // 2]))
    return [float(least) for least in np.min(falls, axis=0)]


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
    standing_in = NETWORKS[settings_of(frame, "isgd")["model"]["name"]]
    axes.set_title(f"stand-in for AlexNet: {standing_in}, the most accelerated of {len(frame['isgd'])} runs")
    axes.set(xlabel="epoch", ylabel="loss (nats)")
    axes.legend(loc="upper right")
