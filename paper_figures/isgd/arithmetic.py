"""Claims that follow from other printed numbers, from the sizes of networks and data, or from pen and paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from paper_figures.isgd.printed import printed
from paper_figures.isgd.stated import (
    CAFFE_DECAY,
    IMAGENET_SPLITS,
    IMAGENET_STORED,
    NETWORKS,
    RATE_FACTORS,
    RATES,
    TEST_EVERY_SECONDS,
    USUAL_DECAY,
)
from suite.claims.measured import Measured, exact
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Evidence

Quantities = Iterable[tuple[str, Measured]]

BYTES_PER_WEIGHT = 4  # float32
MEGABYTE, GIGABYTE = 1e6, 1e9


def weight_megabytes(dataset: str) -> float:
    """Size of the weights of the network that the paper trains on a data set."""
    from suite.models.table import counts

    return counts(NETWORKS[dataset]).parameters * BYTES_PER_WEIGHT / MEGABYTE


def table1(_: Evidence) -> Quantities:
    """Sizes of the networks, from the networks."""
    lenet, quick, alexnet = (weight_megabytes(name) for name in ("MNIST", "CIFAR-10", "ImageNet"))
    yield "lenet-weight-mb", exact(lenet)
    yield "caffe-quick-weight-mb", exact(quick)
    yield "alexnet-weight-mb", exact(alexnet)
    yield "size-order", exact((lenet - quick, alexnet - lenet))


def data_sets(_: Evidence) -> Quantities:
    """Sizes of the data sets, from the catalogue that the loaders verify their files against."""
    mnist, cifar, imagenet = DATASETS["mnist"], DATASETS["cifar10"], DATASETS["imagenet"]
    assert cifar.shape is not None
    yield "mnist-images", exact(mnist.sizes["train"], note="training images; with the test images there are 70,000")
    yield "mnist-classes", exact(mnist.classes)
    count = sum(cifar.sizes.values())
    yield "cifar-images", exact((count, *cifar.shape[1:], cifar.classes), note="training and test images")
    count, stored = sum(IMAGENET_SPLITS), IMAGENET_STORED
    note = "training, validation and test images"
    yield "imagenet-images", exact((count, *stored[1:], imagenet.classes), note=note)
    per_image = math.prod(stored)
    every = count * per_image / GIGABYTE
    note = f"training images at one byte a value; all {count:,} images would take {every:.1f} GB"
    yield "imagenet-gb", exact(imagenet.sizes["train"] * per_image / GIGABYTE, note=note)


def example(_: Evidence) -> Quantities:
    """Section 5.3: 20 iterations of 1 s, and 18 of 2 s at twice the batch size."""
    yield "batch100", exact(20 * 1.0)
    yield "batch200", exact(18 * (1.0 * 200 / 100), note="seconds in proportion to the batch size")


def gain(slow: float, fast: float) -> float:
    """Per cent of the slow time that the fast one saves."""
    return 100 * (slow - fast) / slow


def cifar_gain(_: Evidence) -> Quantities:
    yield "gain-arithmetic", exact(gain(*printed("fig5b/sgd-392s"), *printed("fig5b/isgd-287s")))


def imagenet_gain(_: Evidence) -> Quantities:
    sgd, isgd = *printed("fig5f/sgd-hours"), *printed("fig5f/isgd-hours")
    yield "gain-arithmetic", exact(gain(sgd, isgd))
    yield "test-grid", exact([hours * 3600 / TEST_EVERY_SECONDS["ImageNet"] for hours in (sgd, isgd)])


def seconds_between_tests(_: Evidence) -> Quantities:
    yield "test-interval", exact(tuple(TEST_EVERY_SECONDS.values()), note="as set for the experiments here")


def nvidia_hours(_: Evidence) -> Quantities:
    (hours,), (percent,) = printed("fig6c/hours"), printed("fig6c/nvidia-claim")
    reference = hours / (1 - percent / 100)
    note = f"if 15.35% were on top of 11.5 h instead: {hours * (1 + percent / 100):.3f} h"
    yield "nvidia-implied-hours", exact(reference, note=note)


def saturation_ratio(artifact: str) -> Callable[[Evidence], Quantities]:
    """Printed saturating batch size on two GPUs over that on one."""

    def measure(_: Evidence) -> Quantities:
        (one,), (two,) = printed(f"{artifact}/saturation-1gpu"), printed(f"{artifact}/saturation-2gpu")
        yield "two-more-than-double", exact(two / one)

    return measure


def image_sizes(_: Evidence) -> Quantities:
    """Values per image as the networks of Table 1 read them, ImageNet's as stored."""
    from suite.models.table import counts

    sizes = [math.prod(counts(NETWORKS[name]).input_shape) for name in ("MNIST", "CIFAR-10")]
    yield "image-sizes", exact((*sizes, math.prod(IMAGENET_STORED)))


def synchronisation_share(_: Evidence) -> Quantities:
    """Shares at batch 3000 that Eq. 19 predicts from those at 500: t_comp grows sixfold, C2 stays."""
    predicted = []
    for network in ("lenet", "alexnet"):
        (percent,) = printed(f"fig8/{network}-b500")
        communication, computation = percent, 100 - percent
        predicted.append(100 * communication / (communication + computation * 3000 / 500))
    yield "eq19-prediction", exact(predicted)


def loss_floor(_: Evidence) -> Quantities:
    """The smallest value of Eq. 7 for one image of ten classes whose logits differ by a single weight m.

    log(1 + 9 exp(-m)) + (lambda/2) m^2: the first term vanishes only for infinite m, the second only for m = 0.
    """
    from scipy.optimize import minimize_scalar

    decay = USUAL_DECAY
    found = minimize_scalar(
        lambda m: math.log1p(9 * math.exp(-m)) + decay / 2 * m * m, bounds=(0.0, 100.0), method="bounded"
    )
    yield "positive-floor", exact(found.fun, note=f"at m = {found.x:.3g}, lambda = {decay:g}")


def decay_constant(_: Evidence) -> Quantities:
    values = sorted(CAFFE_DECAY.values())
    note = "median of " + ", ".join(f"{name} {value:g}" for name, value in CAFFE_DECAY.items())
    yield "lambda", exact(values[len(values) // 2], note=note)


def normal_tail(_: Evidence) -> Quantities:
    """Control charts on normal losses: chance of a false alarm, and margins that alarm neither never nor often."""
    from scipy import stats

    yield "normal-false-alarm", exact(float(stats.norm.sf(3)))
    usual = [margin for margin in range(1, 7) if 0.001 <= stats.norm.sf(margin) <= 0.05]
    note = "whole margins whose false-alarm rate lies between 0.1% and 5%"
    yield "margin-range", exact([float(margin) for margin in usual], note=note)


def smallest_epoch(_: Evidence) -> Quantities:
    """Batches per epoch from which a loss can exceed mean + 3 sigma of a window that contains it.

    One loss apart from n - 1 equal ones has the largest possible score in its window (Samuelson's inequality).
    """
    import numpy as np

    def largest_score(n: int) -> float:
        window = np.zeros(n)
        window[-1] = 1.0
        return float((window[-1] - window.mean()) / window.std())

    yield "needs-eleven-if-self-included", exact(next(n for n in range(2, 100) if largest_score(n) > 3))


def step_identity(_: Evidence) -> Quantities:
    """Eq. 15 on a quadratic whose n batches are equally likely: both sides by enumeration."""
    import numpy as np

    draw = np.random.default_rng(15)
    worst = 0.0
    for rate in (0.01, 0.5, 3.0):
        curvature = draw.uniform(0.2, 1.5, 6)
        targets = draw.normal(size=(12, 6))
        w, best = draw.normal(size=6), targets.mean(0)
        gradients = curvature * (w - targets)
        after = ((w - rate * gradients - best) ** 2).sum(1) - ((w - best) ** 2).sum()
        mean, variance = gradients.mean(0), gradients.var(0).sum()
        terms = -2 * rate * (w - best) @ mean + rate**2 * (mean @ mean + variance)
        worst = max(worst, abs(after.mean() - terms))
    yield "identity", exact(worst, note="largest gap over three learning rates in float64")


def square_summable(_: Evidence) -> Quantities:
    """Eq. 18 on f(w) = w^2/2 with unit gradient noise, where E h obeys (1 - eta)^2 E h + eta^2 exactly.

    Squares are summable when the sum over (2N, 4N] is smaller than that over (N, 2N] by a fixed factor; h goes
    to zero when it still falls by a fixed factor from 2N to 4N.
    """
    import numpy as np

    count = 2**14
    steps = np.arange(4 * count, dtype=float)
    falling = np.select(
        [steps < count / 4, steps < count / 2], [RATE_FACTORS[0], RATE_FACTORS[1]], default=RATE_FACTORS[2]
    )
    schedules = {f"constant {RATES[name]:g}": np.full_like(steps, RATES[name]) for name in ("MNIST", "CIFAR-10")}
    schedules[f"{RATES['ImageNet']:g} with two drops"] = RATES["ImageNet"] * falling
    schedules |= {f"(1+t)^-{power:g}": (1 + steps) ** -power for power in (0.75, 1.0)}

    def verdict(rates: np.ndarray) -> tuple[bool, bool]:
        squares = np.square(rates)
        early, late = squares[count : 2 * count].sum(), squares[2 * count :].sum()
        distance, seen = 1.0, []
        for t, rate in enumerate(rates.tolist()):
            distance = (1 - rate) ** 2 * distance + rate**2
            if t + 1 in (2 * count, 4 * count):
                seen.append(distance)
        return bool(late < 0.9 * early), seen[1] < 0.9 * seen[0]

    found = {name: verdict(rates) for name, rates in schedules.items()}
    agree = [summable == converges for summable, converges in found.values()]
    note = "; ".join(
        f"{name}: {'' if s else 'not '}summable, h {'->' if c else 'not ->'} 0" for name, (s, c) in found.items()
    )
    yield "condition", exact(sum(agree) / len(agree), note=note)
    summable, converges = verdict((1 + steps) ** -0.5)
    yield "necessary", exact(float(summable or not converges), note="(1+t)^-0.5: not summable, yet h -> 0 here")
