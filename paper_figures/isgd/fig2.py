"""Fig. 2: the control chart of ISGD over a training of AlexNet.

Batch losses scatter about their running mean; the limit lies three standard deviations above it, and exactly the
losses above the limit mark the batches that are accelerated. Mean and limit fall as training goes on. Below the
paper's profile the narrow AlexNet of Fig. 5(c) stands in, or LeNet on the embedded digits. The longer runs of
Fig. 5(b) are drawn beside.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from paper_figures.isgd import settings
from paper_figures.isgd.pairs import data_of, settings_of
from suite.papers.figure import Artifact, Axes, Figure, Frame, Groups, Quantity, np, pd, sns

NETWORKS = {
    "caffe_alexnet": "AlexNet on ImageNet",
    "narrow_alexnet": "stand-in: narrow AlexNet on CIFAR-100",
    "digits_lenet": "stand-in: LeNet on scikit-learn's digits",
    "caffe_cifar_quick": "Caffe-Quick on CIFAR-10",
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
    beside=lambda profile: {"quick": settings.cifar_pairs("paper")["isgd"]} if profile == "reduced" else {},
    size=(10.4, 4.2),
)


def updates(frame: Frame, run: str, group: str = "isgd") -> pd.DataFrame:
    """The updates of a run, with their epoch, and whether the batch is accelerated in the next."""
    table = frame.stored[run].curve("updates").sort_values("update")
    n = settings.epoch(data_of(frame, group), settings_of(frame, group)["batch"])
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
    """What the mean's falls are of, and the limit's falls."""
    second, first = falls(frame, "limit")
    fall = f"the limit falls by {second:.2f} in the second half and {first:.2f} in the first"
    return f"{settings_of(frame, 'isgd')['model']['name']}, {len(frame['isgd'])} runs; {fall}"


PANEL.quantities["decline"] = Quantity(partial(falls, line="mean"), ("isgd",), note=beside)


@PANEL.quantity("accelerated", ["isgd"])
def accelerated(frame: Frame) -> list[float]:
    """Batches that are accelerated, and batches met after the first epoch, of all runs."""
    met = pd.concat([updates(frame, run) for run in frame["isgd"]["run"]]).query("epoch > 1 and chasing == 0")
    return [float(met["accelerated"].sum()), float(len(met))]


def chart(frame: Frame, group: str) -> pd.DataFrame:
    """The run of a group with the most steps of Algorithm 2, from its second epoch on: a row per update."""
    found = (updates(frame, run, group) for run in frame[group]["run"])
    rows = max(found, key=lambda each: float(each["chasing"].sum()))
    network, runs = NETWORKS[settings_of(frame, group)["model"]["name"]], len(frame[group])
    kept = rows.loc[rows["epoch"] > 1, ["update", "epoch", "loss", "mean", "limit", "chasing", "accelerated"]]
    return kept.assign(network=f"{network}, one of {runs} runs" if runs > 1 else network)


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """The charts of the groups that are stored."""
    part = frame.needed(["isgd"], beside=["quick"])
    return pd.concat([chart(part, group) for group in ("isgd", "quick") if part.results(group)], ignore_index=True)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Losses of batches as dots, their mean and the control limit as lines, and the batches accelerated ringed."""
    charts = dict(tuple(table(frame).groupby("network", sort=False)))
    panels = figure.subplots(1, len(charts), squeeze=False).flat
    for axes, (network, rows) in zip(panels, charts.items(), strict=True):
        draw_chart(axes, rows)
        axes.set_title(network)


def draw_chart(axes: Axes, rows: pd.DataFrame) -> None:
    """The chart of one run."""
    met, accelerated = rows[rows["chasing"] == 0], rows[rows["accelerated"]]
    dots: dict[str, Any] = {"s": 5, "alpha": 0.5, "linewidth": 0, "rasterized": True}
    sns.scatterplot(met, x="epoch", y="loss", ax=axes, color="C0", label="batch loss", **dots)
    for column, colour, name in (("mean", "C1", "mean"), ("limit", "C2", "limit: mean + 3 standard deviations")):
        sns.lineplot(met, x="epoch", y=column, ax=axes, color=colour, label=name, estimator=None)
    rings: dict[str, Any] = {"s": 50, "facecolor": "none", "edgecolor": "C3", "linewidth": 1.2}
    axes.scatter(accelerated["epoch"], accelerated["loss"], label=f"accelerated ({len(accelerated)})", **rings)
    axes.set(xlabel="epoch", ylabel="loss (nats)")
    axes.legend(loc="upper right")
