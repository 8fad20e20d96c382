"""Claims that follow from other printed numbers, from settings, or from sizes of data."""

from __future__ import annotations

import math
from collections.abc import Iterable

from paper_figures.crossbow import settings
from paper_figures.crossbow.printed import value
from suite.claims.measured import Measured, exact, interval
from suite.data.catalogue import DATASETS
from suite.model_averaging.time_to_accuracy import epochs_to_accuracy, time_to_accuracy
from suite.papers.artifact import Evidence

Quantities = Iterable[tuple[str, Measured]]

MIB, PAGE, FLOAT = 2**20, 4096, 4  # bytes
IMAGENET_IMAGES, IMAGENET_SHAPE = 1_431_167, (3, 256, 256)  # training, validation and test; as ISGD's paper counts
PASCAL_PROCESSORS, CORES_PER_PROCESSOR, PASCAL_GIGABYTES = 28, 128, 12  # NVIDIA's Titan X of 2016 (GP102)


def factor(percent_less: float) -> float:
    """How many times as fast something is that needs so many per cent less time."""
    return 1 / (1 - percent_less / 100)


def table1_inputs(_: Evidence) -> Quantities:
    """Sizes of the data sets as float32, in MiB."""
    mnist, cifar = DATASETS["mnist"], DATASETS["cifar10"]
    assert mnist.shape is not None
    assert cifar.shape is not None
    size = mnist.sizes["train"] * math.prod(mnist.shape) * FLOAT
    pages = -(-size // PAGE) * PAGE
    yield "lenet-input-mb", exact(pages / MIB, note=f"training images in whole pages; without, {size / MIB:.4f}")
    for claim, name in (("resnet-32", "cifar10"), ("vgg-16", "cifar100")):
        info = DATASETS[name]
        assert info.shape is not None
        everything = sum(info.sizes.values()) * math.prod(info.shape) * FLOAT
        yield f"{claim}-input-mb", exact(everything / MIB, note="training and test images")
    imagenet = IMAGENET_IMAGES * math.prod(IMAGENET_SHAPE) * FLOAT
    yield "resnet-50-input-mb", exact(imagenet / MIB, note="training, validation and test images")
    cores = PASCAL_PROCESSORS * CORES_PER_PROCESSOR
    gpus = settings.RESNET50["gpus"]
    yield "hardware-gpus", exact((gpus, cores, PASCAL_GIGABYTES), note="cores as NVIDIA lists them for this card")


def fig2(_: Evidence) -> Quantities:
    yield "b64-per-gpu", exact(64 / 8)


def fig3(_: Evidence) -> Quantities:
    yield "target", exact(100 * settings.TARGET)


def fig9b(_: Evidence) -> Quantities:
    """Read back from the specification of a training run."""
    spec = settings.stand_in("paper", "s-sgd", 1, 0)
    epoch = spec.settings["evaluate"]["every"]
    (first, fall), (second, _) = spec.settings["drops"]
    yield "lr-schedule", exact((fall, first / epoch, second / epoch))


def fig9c(_: Evidence) -> Quantities:
    spec = settings.vgg16("paper")["s-sgd 1"][0]
    (first, fall), (second, again) = spec.settings["drops"][:2]
    epoch = spec.settings["evaluate"]["every"]
    assert again / fall == fall, "every halving is the same factor"
    assert second == 2 * first, "halvings are equally far apart"
    yield "lr-schedule", exact((fall, first / epoch))


def fig9d(_: Evidence) -> Quantities:
    yield "lr-schedule", exact(settings.RESNET50_DROPS)


def fig10a(_: Evidence) -> Quantities:
    """What the reductions of section 5.2 amount to as factors, and each other."""
    reductions = [value(f"fig10{claim}") for claim in ("a/m4-1gpu", "a/m2-8gpu", "b/best-1gpu", "b/best-8gpu")]
    reductions += [value("fig10c/m2-8gpu"), value("fig10d/best-1gpu")]
    yield "reductions-to-factors", exact([factor(r) for r in reductions])
    pairs = [("a/m1-8gpu", "a/m2-8gpu"), ("b/m1-8gpu", "b/best-8gpu")]
    pairs += [("c/m1-8gpu", "c/m2-8gpu"), ("d/m1-1gpu", "d/best-1gpu")]
    yield (
        "learners-gain",
        exact([factor(value(f"fig10{best}")) / factor(value(f"fig10{one}")) for one, best in pairs]),
    )
    on_eight = [value("fig10a/m2-8gpu"), value("fig10b/best-8gpu"), value("fig10c/m2-8gpu")]
    yield "abstract-range", rounded(on_eight)
    spec = settings.stand_in("paper", "sma", 1, 0)
    yield (
        "batches",
        exact((spec.settings["batch"], spec.settings["batch"] * 16), note="TensorFlow's as 16 shares of 64"),
    )


def rounded(reductions: list[float]) -> Measured:
    """Factors of reductions in whole per cent, with the ends that rounding leaves open."""
    low, high = ([factor(r + half) for r in reductions] for half in (-0.5, 0.5))
    return interval([factor(r) for r in reductions], low, high, kind="exact")


def fig10b(_: Evidence) -> Quantities:
    yield "speedup-intro", rounded([value("fig10b/best-8gpu")])


def fig10c(_: Evidence) -> Quantities:
    hours = value("fig10c/hours-saved")
    slow = hours / (value("fig10c/m2-8gpu") / 100)
    yield "implied-hours", exact((slow, slow - hours))
    plan = settings.RESNET50
    aggregate = plan["tensorflow"] * plan["gpus"]
    yield "batches", exact((plan["crossbow"], plan["tensorflow"], plan["gpus"], aggregate))


def fig11c(_: Evidence) -> Quantities:
    slow, fast = value("fig11c/tensorflow-252s"), value("fig11c/crossbow-92s")
    yield "reduction-arithmetic", exact(100 * (slow - fast) / slow)


def fig12b(_: Evidence) -> Quantities:
    gain = value("fig12b/epochs-m1") / value("fig12b/epochs-m4")
    yield "epoch-ratio", exact(gain)
    yield "intro-1p6", exact(gain, note="the largest gain in epochs that the evaluation prints")


def fig12c(_: Evidence) -> Quantities:
    """Time to accuracy is the product of the two factors printed beside it."""
    epochs = value("fig12b/epochs-m1") / value("fig12b/epochs-m4")
    throughput = value("fig12a/throughput")
    yield "product", exact((throughput * epochs, (throughput + 0.05) * epochs))
    ends = [(throughput + half) * epochs for half in (-0.05, 0.0, 0.05)]
    yield "tta", interval(ends[1], ends[0], ends[2], kind="exact", note="ends: 1.4 unrounded")


def fig13a(_: Evidence) -> Quantities:
    yield "learners-32", exact(8 * 4)


def fig15(_: Evidence) -> Quantities:
    yield "learners-16", exact(8 * 2)


def fig16(_: Evidence) -> Quantities:
    """What Fig. 17 leaves for Fig. 16: synchronising sometimes cannot beat never synchronising."""
    gain, longer = value("fig16/throughput-tau4"), value("fig16/tta-tau4")
    yield "implied-epochs", exact((1 + gain / 100) * (1 + longer / 100))
    ends = sorted((value("fig17/gain-m1"), value("fig17/gain-m4")))
    note = "at most the gain of no synchronisation at all at m = 1 and m = 4"
    yield "throughput-tau4", interval(ends[1], 0.0, ends[1], kind="exact", note=note)


def fig17(_: Evidence) -> Quantities:
    yield "gain-m1-arithmetic", exact(100 * (value("fig17/nosync") / value("fig17/tau1") - 1))


def eqtta(_: Evidence) -> Quantities:
    """Properties of the metric, from curves whose answers are known."""
    jump = [0.0] * 20 + [1.0] * 20
    after = epochs_to_accuracy(jump, 1.0)
    assert after is not None
    yield (
        "median-of-5",
        exact(2 * (after - 20) - 1, note="a median over n epochs sees a jump (n + 1) / 2 epochs later"),
    )
    gaps = []
    for step in (0.01, 0.02, 0.05):
        for seconds in (0.5, 3.0, 7.25):
            curve = [step * epoch for epoch in range(1, 200)]
            times = [seconds * epoch for epoch in range(1, 200)]
            epochs, reached = epochs_to_accuracy(curve, 0.8), time_to_accuracy(times, curve, 0.8)
            assert epochs is not None
            assert reached is not None
            gaps.append(abs(reached - epochs * seconds))
    yield "product", exact(max(gaps))


def ring(gpus: int, size: int) -> tuple[list[list[int]], list[int]]:
    """A ring all-reduce of ``size`` integers on each GPU: what every GPU ends with, and how many sums it made.

    ``size`` is a multiple of ``gpus``. In step s of the first phase GPU g hands chunk g - s on, and its neighbour
    adds its own; after g - 1 steps every GPU holds one finished chunk, which then goes round.
    """
    data = [[(g + 1) * (i + 3) for i in range(size)] for g in range(gpus)]
    chunk = size // gpus
    sums = [0] * gpus
    for step in range(gpus - 1):
        moving = [data[g][(g - step) % gpus * chunk :][:chunk] for g in range(gpus)]
        for g in range(gpus):
            to, start = (g + 1) % gpus, (g - step) % gpus * chunk
            for i, number in enumerate(moving[g]):
                data[to][start + i] += number
                sums[to] += 1
    for step in range(gpus - 1):
        moving = [data[g][(g + 1 - step) % gpus * chunk :][:chunk] for g in range(gpus)]
        for g in range(gpus):
            start = (g + 1 - step) % gpus * chunk
            data[(g + 1) % gpus][start : start + chunk] = moving[g]
    return data, sums


def fig8(_: Evidence) -> Quantities:
    """The reductions that fall to the busiest GPU, in units of an equal share of all (g - 1) * n of them."""
    shares = []
    for gpus in (2, 4, 8):
        size = 16
        data, sums = ring(gpus, size)
        whole = [sum(g + 1 for g in range(gpus)) * (i + 3) for i in range(size)]
        assert all(row == whole for row in data), "the ring must end with the sum everywhere"
        shares.append(max(sums) / ((gpus - 1) * size / gpus))
    yield "ring", exact(shares)
