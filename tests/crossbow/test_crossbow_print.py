"""Statements of Crossbow on printed numbers and settings, and on the ring of section 4.2."""

from __future__ import annotations

from statistics import median

import pytest

from paper_figures.crossbow import settings
from paper_figures.crossbow.fig10 import implied_hours, reduction
from paper_figures.crossbow.fig13 import EIGHT_GPUS
from paper_figures.crossbow.fig16 import implied_epochs
from paper_figures.crossbow.readings import epochs_to_accuracy
from suite.papers.catalogue import printed_value


def value(claim: str) -> float:
    return printed_value(f"crossbow/{claim}")


factor = lambda percent_less: 1 / (1 - percent_less / 100)  # how many times as fast


def test_arithmetic_on_printed_numbers() -> None:
    best = [reduction(claim) for claim in ("a/m4-1gpu", "a/m2-8gpu", "b/best-1gpu", "b/best-8gpu", "c/m2-8gpu")]
    factors = [factor(r) for r in (*best, reduction("d/best-1gpu"))]
    assert factors == pytest.approx([1.852, 1.316, 1.111, 4.348, 1.493, 2.703], abs=5e-4)
    pairs = (("a/m1-8gpu", "a/m2-8gpu"), ("b/m1-8gpu", "b/best-8gpu"), ("c/m1-8gpu", "c/m2-8gpu"))
    gains = [factor(reduction(b)) / factor(reduction(a)) for a, b in (*pairs, ("d/m1-1gpu", "d/best-1gpu"))]
    assert gains == pytest.approx([1.224, 1.217, 1.224, 1.541], abs=5e-4)
    assert implied_hours() == pytest.approx((15.15, 10.15), abs=5e-3)
    slow, fast = value("fig11c/tensorflow-252s"), value("fig11c/crossbow-92s")
    assert 100 * (slow - fast) / slow == pytest.approx(63.49, abs=5e-3)
    ratio = value("fig12b/epochs-m1") / value("fig12b/epochs-m4")
    assert ratio == pytest.approx(2.143, abs=5e-4)
    assert value("fig12a/throughput") * ratio == pytest.approx(3.0)
    assert implied_epochs() == pytest.approx(2.00, abs=5e-3)
    assert 100 * (value("fig17/nosync") / value("fig17/tau1") - 1) == pytest.approx(19.35, abs=5e-3)


def test_printed_numbers_that_exclude_each_other() -> None:
    """The most that rounding leaves open is not enough."""
    assert factor(reduction("b/best-8gpu") - 0.5) > 4.2 + 0.05 > 4.05, "nor 4 times as fast"
    gain = value("fig12b/epochs-m1") / value("fig12b/epochs-m4")
    assert gain > 1.65
    assert (value("fig12a/throughput") + 0.05) * gain < value("fig12c/tta") - 0.05
    assert max(value("fig17/gain-m1"), value("fig17/gain-m4")) < value("fig16/throughput-tau4")
    assert 28 * 128 != 3072 == 24 * 128, "multiprocessors of the Pascal card and of the Maxwell card"


def test_settings_are_the_printed_ones() -> None:
    plain = settings.stand_in("paper", "s-sgd", 1, 0).settings
    epoch = plain["evaluate"]["every"]
    assert [(turn / epoch, fall) for turn, fall in plain["drops"]] == [(80, 0.1), (120, 0.01)]
    vgg = settings.vgg16("paper")["s-sgd 1"][0].settings
    drops = [(turn / vgg["evaluate"]["every"], fall) for turn, fall in vgg["drops"]]
    assert drops == [(20 * n, 0.5**n) for n in range(1, len(drops) + 1)]
    assert settings.RESNET50_DROPS == (30, 60)
    assert (plain["batch"], 16 * plain["batch"]) == (64, 1024)
    assert settings.TARGET == 0.8
    assert list(EIGHT_GPUS.values()) == [f"sma {8 * m}" for m in (1, 2, 4)]
    assert {"sma 16", "ea-sgd 16"} <= settings.groups("paper", "sma 16", "ea-sgd 16").keys()
    assert 64 / 8 == 8, "images for each of eight GPUs"


@pytest.mark.parametrize(("step", "seconds"), [(0.01, 0.5), (0.02, 3.0), (0.05, 7.25)])
def test_time_to_accuracy_is_epochs_times_seconds(step: float, seconds: float) -> None:
    """As section 5.1 words it: the first end of an epoch at which the median of the last five is there."""
    curve = [step * epoch for epoch in range(1, 200)]
    ends = (seconds * n for n in range(5, 200) if median(curve[n - 5 : n]) >= 0.8)
    assert next(ends) == pytest.approx(epochs_to_accuracy(curve, 0.8) * seconds)


@pytest.mark.parametrize("gpus", [2, 3, 8])
def test_a_ring_leaves_each_gpu_an_equal_share_of_the_sums(gpus: int) -> None:
    """In step s GPU g hands chunk g - s on, and its neighbour adds its own."""
    held = [[{g} for _ in range(gpus)] for g in range(gpus)]  # whose numbers a chunk is the sum of
    sums = [0] * gpus
    for step in range(gpus - 1):
        moving = [set(held[g][(g - step) % gpus]) for g in range(gpus)]
        for g, chunk in enumerate(moving):
            held[(g + 1) % gpus][(g - step) % gpus] |= chunk
            sums[(g + 1) % gpus] += 1
    assert sums == [gpus - 1] * gpus
    assert [held[g][(g + 1) % gpus] for g in range(gpus)] == [set(range(gpus))] * gpus
