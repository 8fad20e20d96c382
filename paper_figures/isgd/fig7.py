"""Fig. 7: time per image against batch size on one GPU and on two, for three networks.

The paper shows the time of 1000 images falling with the batch size and levelling off once the device is full: at
500 images of MNIST (a), 300 of CIFAR-10 (b) and 150 of ImageNet (c) on one TITAN X, at more than twice as many on
two. Timings here run on the machine at hand, so away from the paper's card each is a *proxy*: another card is full at
another batch, and need not level off on the paper's axis. Images are random.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from paper_figures.isgd import settings
from paper_figures.isgd.settings import NETWORKS
from suite.papers.figure import Artifact, Figure, Frame, Groups, Missing, np, pd, printed_value, sns
from suite.papers.grades import machine_of
from suite.report.style import INK, PALETTE, plain_numbers

FULL = 1.05  # saturated: at most this multiple of the least time per image
CARD = "TITAN X"  # the paper's
NAMES = {"mnist": "LeNet", "cifar": "Caffe-Quick", "imagenet": "AlexNet"}


def panel(letter: str, kind: str, title: str) -> Artifact:
    """The panel of a network; the first has the times of all three, whose order it tells."""

    def runs(profile: str) -> Groups:
        found = settings.latencies(profile)
        return found if letter == "a" else {name: specs for name, specs in found.items() if name == kind}

    alt = "Time per image against batch size; lines across where the paper has one and two cards saturated."
    return Artifact(
        f"isgd/fig7{letter}", f"Normalised latency against batch size, {title}", runs, alt=alt, size=(8.5, 4)
    )


FIG7A, FIG7B, FIG7C = ARTIFACTS = (
    panel("a", "mnist", "MNIST"),
    panel("b", "cifar", "CIFAR-10"),
    panel("c", "imagenet", "ImageNet (synthetic images)"),
)


def medians(frame: Frame, kind: str) -> pd.Series:
    """Seconds of a gradient by batch size, medians over the repetitions."""
    return frame.table("latency", kind).groupby("batch")["seconds"].median()


def per_image(frame: Frame, kind: str) -> pd.Series:
    """Seconds per image by batch size."""
    seconds = medians(frame, kind)
    return seconds / seconds.index


def saturation(kind: str, frame: Frame) -> float:
    """Smallest batch from which the time per image stays within FULL of its minimum; infinite if none.

    The largest batch timed is none: nothing shows that larger ones would not be faster still.
    """
    times = per_image(frame, kind)
    bad = (times > FULL * times.min()).to_numpy().nonzero()[0]
    first = bad[-1] + 1 if len(bad) else 0
    return float(times.index[first]) if first < len(times) - 1 else math.inf


def shape(kind: str, frame: Frame) -> list[float]:
    """Log ratio of the ends, and how much steeper the first third of the log axis falls than the last."""
    times = per_image(frame, kind)
    x, y = np.log(times.index.to_numpy()), np.log(times.to_numpy())
    third = (x[-1] - x[0]) / 3
    ends = np.interp([x[0], x[0] + third, x[-1] - third, x[-1]], x, y)
    first, last = ends[0] - ends[1], abs(ends[2] - ends[3])
    return [float(y[0] - y[-1]), float(first / max(last, 1e-3))]


def machine(frame: Frame, kind: str) -> tuple[str, str]:
    """Device and card, or processor, on which a network was timed."""
    run = frame.run(kind)
    return run.environment["execution"]["device"], machine_of(run)


def elsewhere(kind: str, frame: Frame) -> bool:
    """Whether another card than the paper's was timed, or other batch sizes."""
    return CARD not in machine(frame, kind)[1] or frame.profile != "paper"


def told(kind: str, frame: Frame) -> str:
    return f"on {machine(frame, kind)[1]}: within {FULL - 1:.0%} of the least time per image"


def sizes_of(frame: Frame) -> dict[str, float]:
    return {kind: saturation(kind, frame) for kind in ("imagenet", "cifar", "mnist")}


def told_sizes(frame: Frame) -> str:
    return "saturating batches: " + ", ".join(f"{kind} {size:g}" for kind, size in sizes_of(frame).items())


@FIG7A.quantity("order-datasets", list(NETWORKS), shown=True, note=told_sizes)
def order(frame: Frame) -> list[float]:
    """Steps of the log of the saturating batch from ImageNet to CIFAR-10 to MNIST.

    One network may not saturate: it counts with the largest batch timed, above which its own lies.
    """
    sizes = sizes_of(frame)
    if [*sizes.values()].count(math.inf) > 1:
        raise Missing(f"lacks a saturating batch size for more than one network (found {sizes})")
    imagenet, cifar, mnist = (min(size, per_image(frame, kind).index.max()) for kind, size in sizes.items())
    return [math.log(cifar / imagenet), math.log(mnist / cifar)]


def table(kind: str, frame: Frame) -> pd.DataFrame:
    """A row per batch size and repeat: time per image over the largest median."""
    rows = frame.needed([kind]).table("latency")
    times = rows["seconds"] / rows["batch"]
    rows = rows.assign(latency=times / times.groupby(rows["batch"]).median().max())
    return rows[["batch", "repeat", "seconds", "latency"]]


def draw(kind: str, named: str, frame: Frame, figure: Figure) -> None:
    """Normalised latency on logarithmic axes; a line across where one card and two are printed to be saturated."""
    rows = table(kind, frame)
    (device, card), axes = machine(frame, kind), figure.subplots()
    looks: dict[str, Any] = {"label": f"{card}: median, middle half", "marker": "o"}
    sns.lineplot(rows, x="batch", y="latency", estimator="median", errorbar=("pi", 50), ax=axes, **looks)
    found = saturation(kind, frame)
    if math.isfinite(found):
        axes.axvline(found, color=PALETTE[1], linewidth=1.2, label=f"saturated here: {found:,g}")
    for gpus, line in ((1, "--"), (2, ":")):
        printed = printed_value(f"{named}/saturation-{gpus}gpu")
        name = f"printed: {gpus} {CARD} saturated at {printed:,g}"
        axes.axvline(printed, color=INK, linewidth=1.2, linestyle=line, label=name)
    axes.set(xlabel="batch size (images)", ylabel="time per image (largest = 1)", xscale="log", yscale="log")
    plain_numbers(axes.xaxis, (1,))
    plain_numbers(axes.yaxis, numbers="{x:g}")
    standing_in = f"; stand-in: {'another GPU' if device == 'cuda' else 'a CPU'} for {CARD}"
    axes.set_title(NAMES[kind] + ("" if CARD in card else standing_in))
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


for figure, kind in zip(ARTIFACTS, NETWORKS, strict=True):
    for name, measure in (("saturation-1gpu", saturation), ("falls-then-flat", shape)):
        add = figure.quantity(name, [kind], note=partial(told, kind), shown=partial(elsewhere, kind))
        add(partial(measure, kind))
    figure.table(partial(table, kind))
    figure.drawing(partial(draw, kind, figure.id))
