"""Fig. 7: time per image against batch size on one GPU and on two, for three networks.

The paper shows the time of 1000 images falling with the batch size and levelling off once the device is full: at
500 images of MNIST (a), 300 of CIFAR-10 (b) and 150 of ImageNet (c) on one TITAN X, at more than twice as many on
two. Timings here run on the machine at hand, so away from a GPU each is a *proxy*, and the batch that fills another
card than the paper's always is; images are random.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from paper_figures.isgd import readings, settings
from paper_figures.isgd.settings import IMAGENET_STORED, NETWORKS
from suite.claims.estimate import exact, point
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged, genuine
from suite.papers.grades import machine_of
from suite.papers.published import printed_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from suite.runs.store import Run

FULL = 1.05  # saturated: at most this multiple of the least time per image
CARD = "TITAN X"  # the paper's
ALT = "Time per image against batch size; lines across where the paper has one and two cards saturated."
SIZE = (8.5, 4.0)  # inches


def cifar_runs(profile: str) -> Groups:
    return settings.latency(profile, "cifar")


def imagenet_runs(profile: str) -> Groups:
    return settings.latency(profile, "imagenet")


def saturation(timed: readings.Latency) -> float:
    """Smallest batch from which the time per image stays within FULL of its minimum; infinite if none.

    The largest batch timed is none: nothing shows that larger ones would not be faster still.
    """
    good = timed.per_image <= FULL * timed.per_image.min()
    bad = (~good).nonzero()[0]
    first = bad[-1] + 1 if len(bad) else 0
    return float(timed.batches[first]) if first < len(timed.batches) - 1 else float("inf")


def shape(batches: Any, per_image: Any) -> tuple[float, float]:
    """Log ratio of the ends, and how much steeper the first third of the log axis falls than the last."""
    import numpy as np

    x, y = np.log(batches), np.log(per_image)
    ends = np.interp([x[0], x[0] + (x[-1] - x[0]) / 3, x[-1] - (x[-1] - x[0]) / 3, x[-1]], x, y)
    first, last = ends[0] - ends[1], abs(ends[2] - ends[3])
    return float(y[0] - y[-1]), float(first / max(last, 1e-3))


def saturating(evidence: Evidence, kind: str) -> Quantities:
    """Where the curve of a network levels off, and its shape."""
    timed, run = readings.latency(evidence, kind), evidence.run(kind)
    elsewhere = run.environment["execution"]["device"] != "cuda" or evidence.profile != "paper"
    other = CARD not in machine_of(run)
    note = f"on {machine_of(run)}: within {FULL - 1:.0%} of the least time per image"
    yield "saturation-1gpu", point(saturation(timed), runs=[timed.run], note=note, proxy=elsewhere or other)
    yield (
        "falls-then-flat",
        point(shape(timed.batches, timed.per_image), runs=[timed.run], note=note, proxy=elsewhere),
    )


def measure_mnist(evidence: Evidence) -> Quantities:
    yield from saturating(evidence, "mnist")


def measure_cifar(evidence: Evidence) -> Quantities:
    yield from saturating(evidence, "cifar")


def measure_imagenet(evidence: Evidence) -> Quantities:
    yield from saturating(evidence, "imagenet")


def measure_order(evidence: Evidence) -> Quantities:
    """Saturating batch: ImageNet, CIFAR-10, MNIST in increasing order, as steps of its logarithm."""
    timed = {kind: readings.latency(evidence, kind) for kind in NETWORKS}
    found = {kind: saturation(times) for kind, times in timed.items()}
    if not all(math.isfinite(size) for size in found.values()):
        raise Missing(f"a saturating batch size for every network (found {found})")
    steps = [math.log(found[b] / found[a]) for a, b in (("imagenet", "cifar"), ("cifar", "mnist"))]
    runs = [times.run for times in timed.values()]
    yield "order-datasets", point(steps, proxy=True, runs=runs, note=str(found))


def timed_as(evidence: Evidence, seconds: Callable[[Any], Any], *kinds: str) -> Evidence:
    """The same runs, of these networks or of all, with other seconds of a gradient by batch size."""

    def edit(run: Run) -> Run:
        table = run.curve("latency")
        return forged(run, latency=table.assign(seconds=seconds(table["batch"])))

    return edited(evidence, edit, *kinds)


@counterfeit("isgd/fig7a/falls-then-flat", "isgd/fig7b/falls-then-flat", "isgd/fig7c/falls-then-flat")
def each_image_costs_the_same(evidence: Evidence) -> Evidence:
    return timed_as(evidence, lambda batch: 1e-5 * batch)


@genuine("isgd/fig7a/falls-then-flat")
def full_at_500_images(evidence: Evidence) -> Evidence:
    """A call costs as much as 500 / 20 images, so that 500 of them come within 5% of the least time per image."""
    return timed_as(evidence, lambda batch: 1e-5 * (batch + 25), "mnist")


@genuine("isgd/fig7b/falls-then-flat")
def full_at_300_images(evidence: Evidence) -> Evidence:
    return timed_as(evidence, lambda batch: 1e-5 * (batch + 15), "cifar")


def printed_ratio(figure: str) -> Quantities:
    """Printed saturating batch size on two GPUs over that on one."""
    one, two = (printed_value(f"isgd/{figure}/saturation-{gpus}gpu") for gpus in (1, 2))
    yield "two-more-than-double", exact(two / one)


def measure_printed_mnist(_: Evidence) -> Quantities:
    yield from printed_ratio("fig7a")


def measure_printed_cifar(_: Evidence) -> Quantities:
    yield from printed_ratio("fig7b")


def measure_printed_imagenet(_: Evidence) -> Quantities:
    yield from printed_ratio("fig7c")


def measure_image_sizes(_: Evidence) -> Quantities:
    """Values per image as the networks of Table 1 read them, ImageNet's as stored."""
    from suite.models.table import counts

    sizes = [math.prod(counts(NETWORKS[kind]).input_shape) for kind in ("mnist", "cifar")]
    yield "image-sizes", exact((*sizes, math.prod(IMAGENET_STORED)))


def frame(evidence: Evidence, kind: str) -> pd.DataFrame:
    """A row per batch size and repeat: time per image over the largest median."""
    run = evidence.run(kind)
    table = run.curve("latency")
    per_image = table["seconds"] / table["batch"]
    return table.assign(latency=per_image / per_image.groupby(table["batch"]).median().max())


def draw_latency(evidence: Evidence, figure: Figure, kind: str, named: str) -> None:
    """Normalised latency on logarithmic axes; a line across where one card and two are printed to be saturated."""
    import seaborn as sns
    from matplotlib.ticker import StrMethodFormatter

    from suite.report.style import INK, PALETTE

    run = evidence.run(kind)
    device, axes = run.environment["execution"]["device"], figure.subplots()
    label = f"measured on {machine_of(run) if device == 'cuda' else 'this CPU'}"
    table = frame(evidence, kind)
    sns.lineplot(
        table, x="batch", y="latency", estimator="median", errorbar=("pi", 50), marker="o", ax=axes, label=label
    )
    found = saturation(readings.latency(evidence, kind))
    if math.isfinite(found):
        axes.axvline(found, color=PALETTE[1], linewidth=1.2, label=f"saturated here: {found:g}")
    for gpus, line in ((1, "--"), (2, ":")):
        printed = printed_value(f"isgd/{named}/saturation-{gpus}gpu")
        name = f"printed: {gpus} {CARD} saturated at {printed:g}"
        axes.axvline(printed, color=INK, linewidth=1.2, linestyle=line, label=name)
    axes.set(xlabel="batch size (images)", ylabel="time per image (largest = 1)", xscale="log", yscale="log")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    network = {"mnist": "LeNet", "cifar": "Caffe-Quick", "imagenet": "AlexNet"}[kind]
    elsewhere = "" if CARD in machine_of(run) else f"; stand-in: {_kind(device)} for {CARD}"
    axes.set_title(network + elsewhere)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


def _kind(device: str) -> str:
    return "another GPU" if device == "cuda" else "a CPU"


def draw_mnist(evidence: Evidence, figure: Figure) -> None:
    draw_latency(evidence, figure, "mnist", "fig7a")


def draw_cifar(evidence: Evidence, figure: Figure) -> None:
    draw_latency(evidence, figure, "cifar", "fig7b")


def draw_imagenet(evidence: Evidence, figure: Figure) -> None:
    draw_latency(evidence, figure, "imagenet", "fig7c")


ARTIFACTS = (
    Artifact(
        "isgd/fig7a",
        "Normalised latency against batch size, MNIST",
        settings.latencies,
        (measure_mnist, measure_order, measure_printed_mnist, measure_image_sizes),
        draw_mnist,
        ALT,
        SIZE,
    ),
    Artifact(
        "isgd/fig7b",
        "Normalised latency against batch size, CIFAR-10",
        cifar_runs,
        (measure_cifar, measure_printed_cifar),
        draw_cifar,
        ALT,
        SIZE,
    ),
    Artifact(
        "isgd/fig7c",
        "Normalised latency against batch size, ImageNet (synthetic images)",
        imagenet_runs,
        (measure_imagenet, measure_printed_imagenet),
        draw_imagenet,
        ALT,
        SIZE,
    ),
)
