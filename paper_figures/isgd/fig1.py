"""Fig. 1: losses of ten CIFAR-10 batches trained in a fixed cycle.

With i.i.d. batches (a) the losses fall together, but at clearly separate speeds: some batches are fully trained
hundreds of epochs before others. With batches of a single class each (b) every loss falls by itself. From this the
paper concludes that batches should be trained inconsistently: longer where the loss is high.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from paper_figures.isgd.pairs import settings_of
from paper_figures.isgd.settings import CIFAR, DIGITS, train
from suite.claims.intervals import Interval
from suite.papers.figure import Artifact, Figure, Frame, Groups, Missing, RunSpec, np, pd, printed_value, sns
from suite.report.style import PRINTED

EPOCHS = {"balanced": 2200, "single-class": 1700}  # a little more than the last epoch that the text names
LONG = 1000  # epochs below which a run says nothing of when batches are done
NEVER = 1e9  # epochs
TRAINED = 0.01  # nats, below which a batch is fully trained
WINDOW = 20  # epochs whose median tells a batch that is done from a low point
FASTEST = (9, 0)  # of the stored run the first two batches that are fully trained
SINCE = 338  # the first epoch in which both are
FURTHER = 500  # epochs for which the paper goes on training two batches that are (2.3.2)
# What the paper does not print, otherwise than in Caffe's solver of the quick network, for epochs enough to halve the
# loss. It may have trained the full network (2.3.1: "an exemplary convolutional neural network").
OTHERWISE: dict[str, tuple[dict[str, Any], int]] = {
    "a fifth of the rate": ({"rate": CIFAR["rate"] / 5}, 150),
    "thrice the rate": ({"rate": CIFAR["rate"] * 3}, 40),
    "no momentum": ({"descent": {**CIFAR["descent"], "momentum": 0.0}}, 260),
    "full network": ({"model": {"name": "caffe_cifar_full"}}, 100),
}


def cycle(profile: str, kind: str) -> tuple[RunSpec, ...]:
    """SGD on ten batches in a fixed cycle, 1,000 pictures each as printed for Fig. 1a."""
    sizes = {"smoke": (100, 30), "reduced": (1000, 40), "paper": (1000, EPOCHS[kind])}
    batch, epochs = sizes[profile]
    return train_ten({**(DIGITS if profile == "smoke" else CIFAR), "batch": batch}, 10 * epochs, kind)


def train_ten(base: Mapping[str, Any], updates: int, kind: str = "balanced", **more: Any) -> tuple[RunSpec, ...]:
    """SGD on ten batches in a fixed cycle; ``more`` are other settings of their order."""
    order = {"kind": kind, "batches": 10, **more}
    return (train(base, 0, algorithm={"name": "sgd"}, updates=updates, every=updates, order=order),)


def panel(letter: str, batches: str, runs: Callable[[str], Groups], shown: str) -> Artifact:
    title = f"Loss traces of ten {batches} CIFAR-10 batches trained in a fixed cycle"
    alt = f"Ten loss curves on a log axis, one per {shown}; printed values as open markers."
    return Artifact(f"isgd/fig1{letter}", title, runs, alt=alt, size=(8.0, 4.0))


def iid(profile: str) -> Groups:
    """The i.i.d. batches; at full length also without the two fastest, and as the paper may have trained them.

    The two are left out for ``FURTHER`` epochs once they are trained. In the epoch after those all ten come again:
    each loss is seen before its batch is trained.
    """
    groups = {"iid": cycle(profile, "balanced")}
    if profile == "paper":
        base, apart = groups["iid"][0].settings, {"batches": FASTEST, "since": SINCE, "until": SINCE + FURTHER}
        updates = 10 * SINCE + (10 - len(FASTEST)) * FURTHER + 10
        groups["left-out"] = train_ten(base, updates, without=apart)
        groups |= {name: train_ten({**base, **other}, 10 * epochs) for name, (other, epochs) in OTHERWISE.items()}
    return groups


IID = panel("a", "i.i.d.", iid, "batch, falling together")
both = lambda profile: {"iid": IID.runs(profile)["iid"], "single": cycle(profile, "single-class")}
SINGLE = panel("b", "single-class", both, "single-class batch, each by itself")


# ---------------------------------------------------------------- losses [epochs, 10] of a cycle


def updates(frame: Frame, group: str) -> Any:
    """The loss of every update of a group's only run, in their order."""
    return frame.table("updates", group).sort_values("update")["loss"].to_numpy()


def losses(frame: Frame, group: str) -> Any:
    """Losses [epochs, 10] of a group's only run."""
    found = updates(frame, group)
    return found[: len(found) // 10 * 10].reshape(-1, 10)


def long(frame: Frame, group: str) -> Any:
    """The losses of a run that is long enough to say when batches are done. Raises Missing for a shorter one."""
    found = losses(frame, group)
    if len(found) < LONG:
        raise Missing(f"lacks a run of {LONG} epochs")
    return found


def mean_correlation(found: Any) -> float:
    """Mean correlation of the epoch-to-epoch changes of every pair of batches."""
    matrix = np.corrcoef(np.diff(found, axis=0).T)
    return float(matrix[np.triu_indices(10, 1)].mean())


def half(found: Any) -> int:
    """The epoch that halves the mean of the ten losses. Raises Missing where none does."""
    mean = found.mean(1)
    below = (mean < mean[0] / 2).nonzero()[0]
    return int(finite(min(below, default=math.inf), f"losses that halve within {len(found)} epochs"))


def speed_spread(found: Any) -> float:
    """(max - min) / mean of the ten losses, averaged over 20 epochs around the one that halves their mean."""
    middle = half(found)
    around = found[max(0, middle - 10) : middle + 10].mean(0)
    return float((around.max() - around.min()) / around.mean())


def completion(trace: Any) -> float:
    """First epoch at which the median loss of ``WINDOW`` epochs lies below ``TRAINED``; infinite if there is none.

    What comes later is no training: a batch that has been fitted for a thousand epochs and is disturbed was done.
    """
    below = (pd.Series(trace).rolling(WINDOW).median().to_numpy() < TRAINED).nonzero()[0]
    return float(below[0]) if len(below) else math.inf


def done(found: Any) -> Any:
    """When each batch was done [10], in epochs; infinite where it was not fully trained by the end."""
    return np.array([completion(trace) for trace in found.T])


def completed(group: str, of: Callable[[Any], float], frame: Frame) -> Interval:
    """The epoch that ``of`` takes of those at which the batches of a run were done.

    Where it lies beyond the run's end, anything from there on.
    """
    found = long(frame, group)
    at = of(done(found))
    first = min(at, float(len(found)))
    return Interval(first, first, first if math.isfinite(at) else NEVER, 1)


def finite(at: float, what: str, latest: float = math.inf) -> float:
    """An epoch that must have come, and at the latest then. Raises Missing otherwise."""
    if not math.isfinite(at) or at > latest:
        raise Missing(f"lacks {what}")
    return at


def floor(group: str, frame: Frame) -> float:
    """Median loss of the batches done, over the last 100 epochs. Raises Missing where there is none."""
    found = long(frame, group)
    trained = np.isfinite(done(found))
    finite(done(found).min(), f"a batch that is fully trained after {len(found)} epochs")
    return float(np.median(found[-100:, trained]))


# ---------------------------------------------------------------- Fig. 1a


def length(group: str, frame: Frame) -> str:
    return f"{len(losses(frame, group))} epochs of ten batches of {settings_of(frame, group)['batch']}"


@IID.quantity("distinct-speeds", ["iid"], note=partial(length, "iid"))
def together(frame: Frame) -> list[float]:
    """Speeds apart while the losses fall, and how much the ten move together."""
    return [speed_spread(losses(frame, "iid")), mean_correlation(losses(frame, "iid"))]


def at_400(of: Callable[[Any], float], frame: Frame) -> float:
    """What is taken ``of`` the ten losses at epoch 400, averaged over 20 epochs. Raises Missing for a shorter run."""
    found = losses(frame, "iid")
    if len(found) < 410:
        raise Missing("lacks a run of 410 epochs")
    return float(of(found[390:410].mean(0).astype(float)))


IID.quantity("epoch400-b4", ["iid"], note="lowest batch")(partial(at_400, min))
IID.quantity("epoch400-b3", ["iid"], note="highest batch")(partial(at_400, max))
IID.quantity("epoch400-spread", ["iid"])(partial(at_400, lambda ten: max(ten) / min(ten)))
IID.quantity("fast-batches-done", ["iid"])(partial(completed, "iid", lambda at: sorted(at)[1]))
IID.quantity("all-done", ["iid"])(partial(completed, "iid", max))


@IID.quantity("b7-still-training", ["iid"], note="at least, if not all are done")
def still_training(frame: Frame) -> float:
    """Epochs from the completion of the second batch to that of the last."""
    found = long(frame, "iid")
    return min(done(found).max(), float(len(found))) - finite(sorted(done(found))[1], "two batches that are done")


@IID.quantity("stay-trained", ["iid"])
def stay_trained(frame: Frame) -> float:
    """Share of the 500 epochs after the second completion in which the two fastest batches are below 0.1."""
    found = long(frame, "iid")
    fastest = done(found).argsort()[:2]
    from_there = int(finite(done(found)[fastest[1]], "500 epochs after two batches are done", len(found) - 500))
    return float((found[from_there : from_there + 500, fastest] < 0.1).all(1).mean())


def halves(frame: Frame) -> str:
    return "losses halve at epoch " + ", ".join(f"{half(losses(frame, name))} ({name})" for name in OTHERWISE)


@IID.quantity("one-speed", OTHERWISE, note=halves)
def one_speed(frame: Frame) -> list[float]:
    """The spread of speeds with each of the settings that the paper leaves open, in the order of ``OTHERWISE``."""
    return [speed_spread(losses(frame, name)) for name in OTHERWISE]


def again(frame: Frame) -> Any:
    """The losses [10] of the epoch in which the batches left out come again."""
    return updates(frame, "left-out")[-10:]


def without(frame: Frame) -> tuple[Any, Any]:
    """Losses [10] of the epoch in which two batches come again, and of the same epoch had they not been left out.

    Raises Missing where the two were not fully trained when they were left out.
    """
    found = updates(frame, "left-out")
    before = done(found[: 10 * SINCE].reshape(-1, 10))[list(FASTEST)]
    finite(before.max(), f"two batches that are fully trained by epoch {SINCE}")
    return again(frame), losses(frame, "iid")[SINCE + FURTHER]


@IID.quantity("again", ["left-out"])
def both_losses(frame: Frame) -> list[float]:
    """The mean loss of the two batches that come again, and of the others in that epoch."""
    ours = again(frame)
    return [float(ours[list(FASTEST)].mean()), float(np.delete(ours, FASTEST).mean())]


def left_out(frame: Frame) -> str:
    theirs, others = both_losses(frame)
    trained = without(frame)[1].mean()
    return f"{theirs:.4f} of the two left out, {others:.4f} of the others; {trained:.4f} of all ten trained on"


@IID.quantity("trained-add-little", ["iid", "left-out"], note=left_out)
def add_little(frame: Frame) -> float:
    """By how much the mean loss of the ten is higher where the two fastest were left out."""
    ours, trained = without(frame)
    return float(ours.mean() - trained.mean())


# ---------------------------------------------------------------- Fig. 1b: batch i holds class i


@SINGLE.quantity("independent-speeds", ["single"], note=partial(length, "single"))
def independent(frame: Frame) -> float:
    return speed_spread(losses(frame, "single"))


def correlations(frame: Frame) -> str:
    apart, together = (mean_correlation(losses(frame, group)) for group in ("single", "iid"))
    return f"mean correlation of changes: single-class {apart:.2f}, i.i.d. {together:.2f}"


@SINGLE.quantity("less-correlated-than-iid", ["single", "iid"], note=correlations)
def less_correlated(frame: Frame) -> float:
    """By how much single-class batches move together less than i.i.d. ones."""
    return mean_correlation(losses(frame, "iid")) - mean_correlation(losses(frame, "single"))


@SINGLE.quantity("late-variation", ["single"])
def late_variation(frame: Frame) -> float:
    """Deviation over mean of the losses of batches 8 and 9 in the 200 epochs after both are done, the smaller."""
    found = long(frame, "single")
    from_there = int(finite(done(found)[[8, 9]].max(), "200 epochs after batches 8 and 9 are done", len(found) - 200))
    after = found[from_there : from_there + 200, [8, 9]]
    return float((after.std(0) / after.mean(0)).min())


SINGLE.quantity("b8-b9-done", ["single"])(partial(completed, "single", lambda at: at[8:10].max()))
SINGLE.quantity("b6-b7-done", ["single"])(partial(completed, "single", lambda at: at[6:8].max()))
IID.quantity("floor", ["iid"])(partial(floor, "iid"))
SINGLE.quantity("floor", ["single"])(partial(floor, "single"))


# ---------------------------------------------------------------- drawing


def table(group: str, frame: Frame) -> pd.DataFrame:
    """A row per epoch and batch: its loss in nats, and whether it came again after being left out."""
    rows = pd.DataFrame(losses(frame.needed([group]), group)).rename_axis(index="epoch", columns="batch")
    found = rows.stack().rename("loss").reset_index().assign(again=False)
    if not frame.whole("left-out"):
        return found
    apart = pd.DataFrame({"epoch": SINCE + FURTHER, "batch": FASTEST, "loss": again(frame)[list(FASTEST)]})
    return pd.concat([found, apart.assign(again=True)], ignore_index=True)


def draw(
    group: str, length: int, what: str, at_400: list[str], trained: list[str], frame: Frame, figure: Figure
) -> None:
    """Ten curves over the paper's length even where ours is shorter, with what the text prints in open markers."""
    drawn, axes = table(group, frame), figure.subplots()
    rows, apart = drawn[~drawn["again"]], drawn[drawn["again"]]
    look: dict[str, Any] = {"linewidth": 0.6, "palette": "tab10", "legend": "full", "errorbar": None}
    sns.lineplot(rows, x="epoch", y="loss", hue="batch", estimator=None, ax=axes, **look)
    axes.axhline(TRAINED, color="0.3", linestyle="--", linewidth=1, label=f"trained: below {TRAINED:g}")
    epochs = int(rows["epoch"].max()) + 1
    if epochs < length:
        axes.axvspan(epochs, length, color="0.5", alpha=0.12, linewidth=0)
        axes.text((epochs + length) / 2, 1.2, f"run: {epochs} of {length} epochs", ha="center")
    axes.set(xlim=(0, length), yscale="log", ylim=(1e-3, 4), xlabel="epoch (each batch once)", ylabel="loss (nats)")
    if len(apart):
        axes.plot(apart["epoch"], apart["loss"], "ks", markersize=5, label=f"9 and 0, left out\nsince epoch {SINCE}")
    for claim in at_400:
        axes.plot(400, printed_value(claim), "o", markersize=7, label="printed: batches 3, 4", **PRINTED)
    for claim in trained:
        axes.plot(printed_value(claim), TRAINED, "D", markersize=7, label="printed: trained", **PRINTED)
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))  # each label once
    axes.legend(handles.values(), handles.keys(), title="batch", loc="upper left", bbox_to_anchor=(1, 1))
    data = settings_of(frame, group)["data"]["name"]
    axes.set_title(what if data == "cifar10" else f"{what} (stand-in: {data})")


IID.table(partial(table, "iid"))
SINGLE.table(partial(table, "single"))
NAMED = ["isgd/fig1a/epoch400-b4", "isgd/fig1a/epoch400-b3"]
TOLD = ["isgd/fig1a/fast-batches-done", "isgd/fig1a/all-done"], ["isgd/fig1b/b8-b9-done", "isgd/fig1b/b6-b7-done"]
IID.drawing(partial(draw, "iid", EPOCHS["balanced"], "ten i.i.d. batches", NAMED, TOLD[0]))
SINGLE.drawing(partial(draw, "single", EPOCHS["single-class"], "ten batches of one class each", [], TOLD[1]))
