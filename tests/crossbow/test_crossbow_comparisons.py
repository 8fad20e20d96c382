"""Crossbow's methods compared on fabricated trainings: known values and intervals, and the verdicts that follow."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from crossbow_worlds import (
    PANELS,
    QUANTITIES,
    Made,
    arriving,
    found,
    frame_for,
    throughput,
    trained,
    training,
    verdict,
)
from fabricated_frames import student

from suite.papers.artifact import Missing
from suite.spec import RunSpec

# ---------------------------------------------------------------- methods compared seed by seed

LESS = lambda x, y: 100 * (1 - x / y)
PAIRS: dict[str, tuple[str, str, Callable[[float, float], float]]] = {
    "fig10a/m4-1gpu": ("sma 4", "s-sgd 1", lambda x, y: LESS(x / 1.25, y)),
    "fig13b/m2-neutral": ("sma 8", "sma 16", lambda x, y: y / x),
    "fig13b/m4-worse": ("sma 16", "sma 32", lambda x, y: y - x),
    "fig15/1gpu": ("few, sma", "few, ea-sgd", LESS),
    "fig15/8gpu": ("sma 16", "ea-sgd 16", LESS),
    "fig16/tta-tau4": ("every", "fourth", lambda x, y: 100 * (y / x - 1)),
    "alg1/momentum-helps-many": ("sma", "ea-sgd", lambda x, y: y - x),
}
SEEDS = ([20, 31, 44], [27, 52, 39])  # epochs in which both methods arrive


@pytest.mark.parametrize("name", PAIRS)
def test_methods_are_compared_seed_by_seed(name: str) -> None:
    (a, b, combine), figure = PAIRS[name], name.partition("/")[0]
    measured = found(name, trained(figure, dict(zip((a, b), SEEDS, strict=True))))
    assert measured.spans == (pytest.approx(student([combine(x, y) for x, y in zip(*SEEDS, strict=True)])),)
    assert (measured.n, measured.proxy) == (3, name == "fig16/tta-tau4")
    late = trained(figure, {a: [20, 31, 200], b: SEEDS[1]})  # no run is as long
    ((value, low, high),) = found(name, late).spans
    assert value == pytest.approx(sum(combine(x, y) for x, y in ((20, 27), (31, 52))) / 2)
    assert (low, high) == (-math.inf, math.inf)


WORLDS: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {  # epochs of both where a claim holds, and not
    "fig10a/m4-1gpu": ((68, 100), (100, 100)),  # 100 (1 - 68 / 1.25 / 100) = 45.6
    "fig13b/m2-neutral": ((50, 52), (50, 90)),
    "fig13b/m4-worse": ((50, 53), (50, 50)),
    "fig15/1gpu": ((91, 100), (100, 91)),
    "fig15/8gpu": ((39, 100), (100, 39)),
    "alg1/momentum-helps-many": ((30, 33), (33, 30)),
    "lenet/s-sgd-4": ((7, 9), (9, 7)),
    "lenet/s-sgd-16": ((7, 9), (9, 7)),
    "lenet/ea-sgd-4": ((7, 9), (9, 7)),
    "lenet/ea-sgd-16": ((7, 9), (9, 7)),
    "lenet/epochs-kept-4": ((10, 10), (10, 17)),
    "lenet/epochs-kept-16": ((10, 10), (10, 17)),
}


@pytest.mark.parametrize("name", WORLDS)
def test_a_comparison_follows_the_world(name: str) -> None:
    figure = name.partition("/")[0]
    a, b = PAIRS[name][:2] if name in PAIRS else QUANTITIES[name].groups
    for (x, y), word in zip(WORLDS[name], ("reproduced", "not reproduced"), strict=True):
        level = 0.995 if figure == "lenet" else 0.955
        frame = frame_for(
            figure,
            "paper",
            lambda group, spec, x=x, y=y, level=level: {
                a: training(arriving(x, level)),
                b: training(arriving(y, level)),
            }.get(group, throughput({4: [1.25] * 3}) if group == "throughput" else None),
        )
        assert verdict(name, frame) == word


def test_time_on_a_processor_decides_nothing_at_the_papers_scale() -> None:
    arrivals = dict(zip(("sma 4", "s-sgd 1"), SEEDS, strict=True))
    with pytest.raises(Missing, match="GPU"):
        found("fig10a/m4-1gpu", trained("fig10a", arrivals, device="cpu"))
    reduced = trained("fig10d", {**arrivals, "sma 1": [33, 26, 41]}, "reduced", device="cpu")
    for name, x, ratio in (("best-1gpu", SEEDS[0], 1.25), ("m1-1gpu", [33, 26, 41], 1.0)):
        measured = found(f"fig10d/{name}", reduced)
        assert measured.spans == (
            pytest.approx(student([LESS(m / ratio, y) for m, y in zip(x, SEEDS[1], strict=True)])),
        )
        assert measured.proxy


def test_epochs_whose_times_are_not_measured_are_compared_as_they_are() -> None:
    """Of ResNet-32's first epochs at reduced; eight learners are as fast there as one."""
    arrivals = dict(zip(("sma 4", "s-sgd 1"), ([20], [25]), strict=True))
    make = lambda group, spec: training(arriving(arrivals[group][0])) if group in arrivals else None
    assert found("fig10a/m4-1gpu", frame_for("fig10a", "reduced", make)).values == (pytest.approx(20.0),)
    with pytest.raises(Missing):
        found("fig10a/m4-1gpu", frame_for("fig10a", "paper", make))


def test_the_rarer_synchronisation_is_best_where_it_takes_fewer_epochs() -> None:
    for fourth, best in ((41, 1.0), (40, 4.0), (39, 4.0)):
        assert found("fig16/tau1-best", trained("fig16", {"every": [40], "fourth": [fourth]})).values == (best,)


def test_batches_are_compared_step_by_step_and_by_the_slope_beyond_the_smallest() -> None:
    """Batches of 64, 256, 512 and 1,024."""
    epochs = {"smallest": [10, 12, 11], "second": [14, 17, 13], "third": [20, 30, 25], "largest": [50, 90, 60]}
    frame = trained("fig3", epochs)
    names = list(epochs)
    wanted = [
        pytest.approx(student([y - x for x, y in zip(epochs[a], epochs[b], strict=True)])) for a, b in pairwise(names)
    ]
    assert list(found("fig3/rises", frame).spans) == wanted
    slopes = [math.log(y / x) / math.log(4) for x, y in zip(epochs["second"], epochs["largest"], strict=True)]
    assert found("fig3/threshold", frame).spans == (pytest.approx(student(slopes)),)
    grows = {"smallest": [10], "second": [12], "third": [40], "largest": [140]}
    assert [verdict(f"fig3/{n}", trained("fig3", grows)) for n in ("rises", "threshold")] == ["reproduced"] * 2
    falls = {"smallest": [14], "second": [12], "third": [11], "largest": [10]}
    assert [verdict(f"fig3/{n}", trained("fig3", falls)) for n in ("rises", "threshold")] == ["not reproduced"] * 2


@pytest.mark.parametrize("k", [4, 16])
def test_lenets_epochs_are_paired_and_late_arrivals_bounded(k: int) -> None:
    """A run that ends before counts as there in the epoch after its last."""
    epochs = {"sma 1": [6, 9, 7], f"sma {k}": [8, 6, 12], f"s-sgd {k}": [11, 40, 9], f"ea-sgd {k}": [7, 10, 13]}

    def make(group: str, spec: RunSpec) -> Made:
        return training(arriving(epochs[group][spec.seed], 0.995)[:20]) if group in epochs else None

    frame, late = frame_for("lenet", "paper", make), [11, 21, 9]
    for rival, arrived in (("s-sgd", late), ("ea-sgd", epochs[f"ea-sgd {k}"])):
        saved = [y - x for x, y in zip(epochs[f"sma {k}"], arrived, strict=True)]
        assert found(f"lenet/{rival}-{k}", frame).spans == (pytest.approx(student(saved)),)
    mean, low, high = student([math.log(y / x) for x, y in zip(epochs["sma 1"], epochs[f"sma {k}"], strict=True)])
    assert found(f"lenet/epochs-kept-{k}", frame).spans == (
        pytest.approx((math.exp(mean), math.exp(low), math.exp(high))),
    )
    assert f"SMA, k = {k}: 8, 6, 12; S-SGD, k = {k}: 11, 21, 9" in found(f"lenet/s-sgd-{k}", frame).note


LEVELS = {"fig11a": ("sma 4", (0.6, 0.7, 0.8), 1.25), "fig11b": ("sma 3", (0.4, 0.5, 0.6), 1.0)}


@pytest.mark.parametrize("figure", LEVELS)
def test_leads_at_lower_accuracies(figure: str) -> None:
    """Each level is passed in an epoch of its own."""
    best, levels, faster = LEVELS[figure]
    arrivals = {best: (9, 15, 22), "s-sgd 1": (12, 16, 31)}

    def make(group: str, spec: RunSpec) -> Made:
        if group not in arrivals:
            return throughput({4: [1.25] * 3}) if group == "throughput" else None
        first, second, third = (epoch - 3 for epoch in arrivals[group])
        stairs = [0.1] * first + [levels[0]] * (second - first) + [levels[1]] * (third - second)
        return training([*(s + 0.01 for s in stairs), *[levels[2] + 0.01] * 20])

    measured = found(f"{figure}/other-thresholds", frame_for(figure, "paper", make))
    pairs = zip(arrivals[best], arrivals["s-sgd 1"], strict=True)
    assert measured.values == pytest.approx([math.log(y * faster / x) for x, y in pairs])
    assert measured.proxy == (figure == "fig11b"), "no times of VGG-16 belong to it"


def test_epochs_of_one_and_four_learners() -> None:
    arrivals = {"sma 1": [29, 31, 33], "sma 4": [13, 15, 14, 16, 12]}
    frame = trained("fig12b", arrivals)
    for name, group in (("epochs-m1", "sma 1"), ("epochs-m4", "sma 4")):
        assert found(f"fig12b/{name}", frame).spans == (pytest.approx(student(arrivals[group])),)
        assert verdict(f"fig12b/{name}", trained("fig12b", {g: [a[1]] for g, a in arrivals.items()})) == "reproduced"
        assert verdict(f"fig12b/{name}", trained("fig12b", {"sma 1": [14], "sma 4": [30]})) == "not reproduced"


def test_four_learners_against_plain_training_by_the_pooled_spread() -> None:
    arrivals = {"sma 1": [20, 24, 28], "sma 4": [18, 20, 22, 20, 20], "s-sgd 1": [38, 40, 42]}  # squares 32, 8, 8
    measured = found("fig12b/plain", trained("fig12b", arrivals))
    half = 2.306004 * math.sqrt(48 / 8 * (1 / 3 + 1 / 5))  # Student's 97.5% quantile for eight degrees of freedom
    assert measured.spans == (pytest.approx((20, 20 - half, 20 + half)),)
    for epoch, word in ((40, "reproduced"), (200, "reproduced"), (22, "inconclusive"), (6, "not reproduced")):
        assert verdict("fig12b/plain", trained("fig12b", arrivals | {"s-sgd 1": 3 * [epoch]})) == word
    one_each = found("fig12b/plain", trained("fig12b", {group: counts[:1] for group, counts in arrivals.items()}))
    assert one_each.spans == ((20, 20, 20),)  # one run of each has no spread to pool: the number stands alone


@pytest.mark.parametrize(("figure", "target"), [("fig9a", 99), ("fig9b", 88), ("fig9c", 69)])
def test_the_target_is_the_best_median_of_five_epochs(figure: str, target: float) -> None:
    curve = [0.1, 0.2, 0.9, 0.15, 0.3, 0.45, 0.6, 0.55, 0.5]  # medians 0.2, 0.3, 0.45, 0.45, 0.5
    best = lambda seed: [share * (1 - seed / 50) for share in curve]
    measured = found(f"{figure}/target", frame_for(figure, "paper", lambda group, spec: training(best(spec.seed))))
    seeds = len(PANELS[figure].runs("paper")["plain"])
    tops = [50 * (1 - seed / 50) for seed in range(seeds)]
    assert measured.values == (pytest.approx(sum(tops) / seeds),)
    assert seeds == 1 or measured.spans == (pytest.approx(student(tops)),)
    level = lambda share: frame_for(
        figure, "paper", lambda group, spec: training([share / 100 + spec.seed / 1e4] * 9)
    )
    if seeds > 1:
        assert [verdict(f"{figure}/target", level(x)) for x in (target, target - 9)] == [
            "reproduced",
            "not reproduced",
        ]
    with pytest.raises(Missing, match="5 epochs"):
        found(f"{figure}/target", frame_for(figure, "paper", lambda group, spec: training([0.9] * 4)))
    just = frame_for(figure, "paper", lambda group, spec: training([0.9] * 5))
    assert found(f"{figure}/target", just).values == (pytest.approx(90),)
