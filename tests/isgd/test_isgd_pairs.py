"""ISGD beside SGD (Figs. 5 and 6, zeta): each quantity on a frame whose answer is known, and both verdicts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from fabricated_frames import frame_of, measured, student, verdict

from paper_figures.isgd import fig5, fig6, settings, zeta
from paper_figures.isgd.zeta import GRID, Treatment
from suite.papers.artifact import Frame, Missing
from suite.papers.catalogue import paper

AT = [0, 100, 200, 300, 400, 500]
# test errors of three seeds: SGD is at 1% from 400, 500 and 300 updates on, ISGD from 200, 400 and 300
SGD = [
    [0.9, 0.04, 0.03, 0.02, 0.01, 0.011],
    [0.9, 0.05, 0.03, 0.02, 0.015, 0.009],
    [0.9, 0.04, 0.03, 0.0095, 0.012, 0.01],
]
ISGD = [
    [0.9, 0.03, 0.01, 0.012, 0.009, 0.011],
    [0.9, 0.04, 0.02, 0.013, 0.01, 0.012],
    [0.9, 0.05, 0.02, 0.01, 0.008, 0.013],
]
ITERATIONS = [update * 4 // 5 for update in range(500)]  # a fifth of the updates are steps of Algorithm 2


def training(errors: Any, train: float = 0.5, data: str = "mnist", **more: Any) -> dict[str, Any]:
    """A run with these test errors, ``train`` times as high ones in training, and seconds per update."""
    errors = np.asarray(errors)
    at = AT if len(errors) == len(AT) else list(range(0, 100 * len(errors), 100))
    tests = {"update": at, "test_error": errors, "train_error": train * errors}
    return {
        "settings": {"data": {"name": data}},
        "tables": {"evaluations": tests, "updates": {"iteration": ITERATIONS}},
        **more,
    }


PAIRS = frame_of({"sgd": [training(e) for e in SGD], "isgd": [training(e, 0.4) for e in ISGD]})
LOGS = [math.log(2), math.log(1.25), 0.0]
KNOWN = {
    "fig5a/slightly-faster": LOGS,
    "fig5a/isgd-at-least-sgd": [0.78, 0.58, 0.01],
    "fig5b/isgd-above-sgd": [0.78, 0.58, 0.01],
    "fig5a/sgd-dent": [0.001 - 0.002, 0 - 0.002, 0.0025 - 0.005],
    "fig5b/expected-top": [99.0, 99.1, 99.05],
    "fig5d/isgd-lower": [(0.5 * s - 0.4 * i) / 3 for s, i in ((0.041, 0.032), (0.044, 0.035), (0.0315, 0.031))],
    "fig5e/isgd-lower": [(0.5 * s - 0.4 * i) / 3 for s, i in ((0.041, 0.032), (0.044, 0.035), (0.0315, 0.031))],
}


@pytest.mark.parametrize("name", KNOWN)
def test_pairs_are_compared_seed_by_seed(name: str) -> None:
    found = measured(f"isgd/{name}", PAIRS)
    assert found.spans == (pytest.approx(student(KNOWN[name]), rel=1e-9, abs=1e-12),)
    assert (found.n, found.proxy) == (3, False)
    groups = ("sgd",) if name.endswith("expected-top") else ("sgd", "isgd")
    assert set(found.runs) == {f"{group} seed {seed}" for group in groups for seed in range(3)}


def test_a_dent_of_the_first_half_is_none() -> None:
    early = [0.9, 0.04, 0.06, 0.02, 0.01, 0.01]
    frame = frame_of({"sgd": [training(early)] * 3, "isgd": [training(sorted(early, reverse=True))] * 3})
    assert measured("isgd/fig5a/sgd-dent", frame).values == (0,)


def test_a_pair_that_lacks_a_seed_is_not_measured() -> None:
    lacking = frame_of({"sgd": [training(e) for e in SGD], "isgd": [training(ISGD[0]), None, training(ISGD[2])]})
    with pytest.raises(Missing, match="1 of 3 runs of isgd at paper"):
        measured("isgd/fig5a/slightly-faster", lacking)


def test_the_accuracy_of_a_speed_is_the_highest_tick_that_every_run_reaches() -> None:
    """One run ends at 1.2%: the tick is 98.5%, which SGD reaches at 400, 400 and 300, ISGD at 200, 300 and 300."""
    worse = [np.maximum(errors, 0.012) if seed == 1 else errors for seed, errors in enumerate(ISGD)]
    found = measured(
        "isgd/fig5a/slightly-faster", frame_of({"sgd": map(training, SGD), "isgd": map(training, worse)})
    )
    assert found.values == (pytest.approx((math.log(2) + math.log(4 / 3) + 0) / 3),)
    assert found.note == "until 98.5% test accuracy, 3 paired seeds"
    with pytest.raises(Missing, match="an accuracy on the figure's axis"):
        measured("isgd/fig5a/slightly-faster", frame_of({g: [training([0.9, 0.5])] * 2 for g in ("sgd", "isgd")}))


# stays at or above 75% from 300, 400 and 500 updates on with SGD, from 200, 300 and 500 with ISGD
STAYS = {
    "sgd": [[0.9, 0.24, 0.26, 0.25, 0.24, 0.2], [0.9, 0.3, 0.2, 0.26, 0.25, 0.2], [0.9, 0.2, 0.2, 0.2, 0.3, 0.25]],
    "isgd": [[0.9, 0.26, 0.25, 0.25, 0.2, 0.2], [0.9, 0.2, 0.26, 0.2, 0.2, 0.2], [0.9, 0.9, 0.8, 0.7, 0.6, 0.2]],
}


def test_a_gain_is_counted_from_the_last_test_below_the_level() -> None:
    frame = frame_of({group: [training(e) for e in runs] for group, runs in STAYS.items()})
    assert measured("isgd/fig5b/gain", frame).spans == (pytest.approx(student([100 / 3, 25.0, 0.0])),)
    below = frame_of({group: [training([*e[:-1], 0.3]) for e in runs] for group, runs in STAYS.items()})
    found = measured("isgd/fig5b/gain", below)
    assert not found.decidable
    assert found.note == "0 of 6 runs end at the printed accuracy or above"


def test_imagenet_is_one_pair() -> None:
    top5 = {"sgd": [0.9, 0.5, 0.191, 0.19], "isgd": [0.9, 0.191, 0.1, 0.2]}
    errors = {"sgd": [0.9, 0.5, 0.4, 0.3], "isgd": [0.8, 0.4, 0.5, 0.2]}
    runs: dict[str, list[Any]] = {}
    for group in errors:
        run = training(errors[group])
        run["tables"]["evaluations"] |= {"top5_error": top5[group]}
        runs[group] = [run]
    assert measured("isgd/fig5c/isgd-above-sgd", frame_of(runs)).spans == ((2 / 3, 2 / 3, 2 / 3),)
    assert measured("isgd/fig5f/gain", frame_of(runs)).values == (pytest.approx(50.0),)  # 80.9% after 200, and 100
    assert measured("isgd/fig5f/sooner", frame_of(runs)).values == (pytest.approx(math.log(2)),)


# a stand-in's tests: the pairs are alike at the first, and reach 30% after 300 and 300, 400 and 200 updates
LOW = {
    "sgd": [[0.99, 0.9, 0.75, 0.7, 0.72, 0.65], [0.99, 0.88, 0.8, 0.71, 0.7, 0.695]],
    "isgd": [[0.99, 0.9, 0.76, 0.69, 0.71, 0.6], [0.99, 0.88, 0.7, 0.68, 0.66, 0.66]],
}


def test_a_stand_in_is_compared_where_the_methods_differ_and_at_an_accuracy_that_all_reach() -> None:
    frame = frame_of({group: [training(e, data="cifar100") for e in runs] for group, runs in LOW.items()}, "reduced")
    # leads in points: -1 and 10, 1 and 3, 1 and 4, 5 and 3.5; only the last has a whole interval above nought
    found = measured("isgd/fig5c/isgd-above-sgd", frame)
    assert (found.spans, found.n, found.ranged) == (((1.0, 0.0, 1.0),), 2, True)
    assert measured("isgd/fig5f/gain", frame).spans == (pytest.approx(student([0.0, 50.0])),)
    found = measured("isgd/fig5f/sooner", frame)
    assert found.spans == (pytest.approx(student([0.0, math.log(2)])),)
    assert found.note == "until 30.0% test accuracy, 2 paired seeds"
    alike = frame_of({group: [training(LOW["sgd"][0], data="cifar100")] * 2 for group in LOW}, "reduced")
    with pytest.raises(Missing, match="a test at which the methods differ"):
        measured("isgd/fig5c/isgd-above-sgd", alike)
    with pytest.raises(Missing, match="no run was tested after its first update"):
        fig5.table(frame_of({group: [training([0.99])] for group in LOW}))


def test_a_test_that_is_no_number_leaves_the_lead_open() -> None:
    lost = [training([*ISGD[0][:4], math.nan, math.nan]), *map(training, ISGD[1:])]
    frame = frame_of({"sgd": map(training, SGD), "isgd": lost})
    assert verdict("isgd/fig5a/isgd-at-least-sgd", frame) == "inconclusive"


def test_a_run_that_diverged_early_keeps_its_last_error() -> None:
    early, late = ([training([*ISGD[0][:4], *[0.9] * n]), *map(training, ISGD[1:])] for n in (1, 2))
    ended = [measured("isgd/fig5a/isgd-at-least-sgd", frame_of({"sgd": map(training, SGD), "isgd": each}))
             for each in (early, late)]  # fmt: skip
    assert ended[0] == ended[1]


def test_two_that_learn_nothing_do_not_agree() -> None:
    frame = frame_of({group: [training([0.9, 0.9, 0.895])] * 3 for group in ("sgd", "isgd", "chosen")})
    for name in ("fig5a/isgd-at-least-sgd", "fig5d/isgd-lower", "zeta/lower-training-error"):
        assert verdict(f"isgd/{name}", frame) == "inconclusive"


# ---------------------------------------------------------------- verdicts of pairs


def world(ahead: bool) -> Frame:
    """ISGD sooner and lower, or later and higher; SGD's best is as printed or not, its course rough or not."""
    floor, levels = (0.25 if ahead else 0.2), np.linspace(0, 1, 41)
    groups: dict[str, list[Any]] = {"sgd": [], "isgd": [], "chosen": []}
    for seed in range(4):
        for group in groups:
            treated = (group != "sgd") is ahead
            fall = np.exp(-8 * levels * (1 + 0.01 * seed) * (1.3 if treated else 1.0))
            errors = floor * (0.9 if treated else 1.0) + 0.65 * fall
            errors[25 + seed] += 0 if treated else 0.03  # a dent
            errors[-1] = floor if group == "sgd" else errors[-1]
            groups[group].append(training(errors, data="cifar10"))
    return frame_of(groups)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "fig5a/slightly-faster",
            "fig5a/sgd-dent",
            "fig5a/isgd-at-least-sgd",
            "fig5d/isgd-lower",
            "fig5e/isgd-lower",
        ),
        *("fig5b/isgd-above-sgd", "fig5b/expected-top", "zeta/faster", "zeta/lower-training-error"),
    ],
)
def test_each_claim_on_pairs_can_be_won_and_lost(name: str) -> None:
    assert verdict(f"isgd/{name}", world(True)) == "reproduced"
    assert verdict(f"isgd/{name}", world(False)) == "not reproduced"


def test_the_printed_gain_can_be_won_and_lost() -> None:
    """ISGD stays at 75% from the eleventh test on, SGD from the fifteenth: 26.7% less; the other way round; alike."""
    curve = lambda first, seed: training([*[0.3] * first, *[0.2 + 0.001 * seed] * (40 - first)])
    pair = lambda a, b: frame_of({"sgd": [curve(a, s) for s in range(4)], "isgd": [curve(b, s) for s in range(4)]})
    won, lost, alike = pair(15, 11), pair(11, 15), pair(15, 15)
    assert verdict("isgd/fig5b/gain", won) == verdict("isgd/fig5b/no-visible-difference", alike) == "reproduced"
    for frame in (lost, alike):
        assert verdict("isgd/fig5b/gain", frame) == "not reproduced"
    assert verdict("isgd/fig5b/no-visible-difference", won) == "not reproduced"


@pytest.mark.parametrize(("ahead", "word"), [(True, "reproduced"), (False, "not reproduced")])
def test_imagenet_can_be_won_and_lost(ahead: bool, word: str) -> None:
    runs: dict[str, list[Any]] = {}
    for group, first in (("sgd", 95), ("isgd", 75 if ahead else 95)):
        runs[group] = [training(np.linspace(0.9, 0.4 if (group == "isgd") is ahead else 0.5, 100))]
        runs[group][0]["tables"]["evaluations"]["top5_error"] = [0.3] * first + [0.19] * (100 - first)
    for name in ("fig5c/isgd-above-sgd", "fig5f/gain", "fig5f/sooner"):
        assert verdict(f"isgd/{name}", frame_of(runs)) == word


# ---------------------------------------------------------------- Fig. 6


def batches(case: str, arrive: dict[int, list[int | None]]) -> Frame:
    """Runs of batch sizes, a seed each, that reach the level after so many updates; None for never."""
    level, parameters = {"a": (0.02, 431_080), "b": (0.26, 145_578)}[case]
    runs = {}
    for size, updates in arrive.items():
        found = []
        for at in updates:
            errors = {"update": [0, at or 5, 2 * (at or 5)], "test_error": [0.9, level if at else 0.5, 0.5]}
            found.append({"tables": {"evaluations": errors}, "parameters": parameters})
        runs[f"b{size}"] = found
    return frame_of(runs)


# Of LeNet, whose 500 images take as long as the 2,000 that fill four cards; Caffe-Quick's weights are 145,578 of its
# 431,080.
SYNC = 2000 * 0.23 / 0.77


def test_the_largest_batch_is_set_beside_the_better_of_the_two_below() -> None:
    """Four cards are full at 2,000 images (1,200 of CIFAR-10): an update takes max(batch, that) and the sum."""
    frame = batches("a", {64: [1] * 3, 1000: [20, 30, 26], 2000: [24, 25, 30], 3000: [18, 20, 26]})
    assert fig6.timed(fig6.A, frame, fewest=2)["time"].min() == pytest.approx(20 * (2000 + SYNC))
    ratio = (3000 + SYNC) / (2000 + SYNC)
    wanted = [math.log(ratio * late / soon) for late, soon in ((18, 20), (20, 25), (26, 26))]
    assert measured("isgd/fig6a/extreme-batch-slower", frame).spans == (pytest.approx(student(wanted)),)
    frame = batches("b", {100: [1] * 2, 200: [1] * 2, 500: [40, 50], 2000: [30, 31], 10000: [10, 12]})
    sync = SYNC * 145_578 / 431_080
    slow, mid, small = 10000 + sync, 2000 + sync, 1200 + sync
    wanted = [math.log(10 * slow / min(30 * mid, 40 * small)), math.log(12 * slow / min(31 * mid, 50 * small))]
    assert measured("isgd/fig6b/extreme-batch-slower", frame).spans == (pytest.approx(student(wanted)),)


def test_a_seed_that_does_not_get_there_leaves_the_ratio_open() -> None:
    frame = batches("a", {64: [1] * 3, 1000: [20] * 3, 2000: [20] * 3, 3000: [40, None, None]})
    found = measured("isgd/fig6a/extreme-batch-slower", frame)
    assert found.spans == ((pytest.approx(math.log(2 * (3000 + SYNC) / (2000 + SYNC))), -math.inf, math.inf),)
    assert found.n == 3
    assert found.note.endswith(", inf, inf")
    with pytest.raises(Missing, match="a seed with which every batch size reaches 98%"):
        measured("isgd/fig6a/extreme-batch-slower", batches("a", {b: [None] * 3 for b in (64, 1000, 2000, 3000)}))


@pytest.mark.parametrize(("updates", "word"), [([40, 41, 42], "reproduced"), ([1, 1, 1], "not reproduced")])
def test_a_large_batch_can_be_slower_and_faster(updates: list[int], word: str) -> None:
    frame = batches("a", {64: [1] * 3, 1000: [20] * 3, 2000: [22, 20, 21], 3000: updates})
    assert verdict("isgd/fig6a/extreme-batch-slower", frame) == word
    assert (measured("isgd/fig6a/extreme-batch-slower", frame).values[0] < 0) is (word != "reproduced")
    frame = batches("b", {100: [1] * 3, 200: [1] * 3, 500: [20] * 3, 2000: [22, 20, 21], 10000: updates})
    assert verdict("isgd/fig6b/extreme-batch-slower", frame) == word


def test_four_cards_take_longer_than_one_for_a_batch_of_256() -> None:
    """600 images fill four cards, which then exchange for 600 x 0.45 / 0.55 images more; one card takes 4 x 256."""
    assert fig6.C.several == [256, 1000, 1536, 3400]
    found = measured("isgd/fig6c/small-batch-multi-gpu", frame_of({}))
    assert (found.values, found.proxy) == ((pytest.approx(math.log((600 + 600 * 45 / 55) / 1024)),), True)


# ---------------------------------------------------------------- zeta


BEST = Treatment(30.0, 2.0, 5)


def searched(group: str, seed: int) -> dict[str, Any]:
    """SGD at a loss of 0.2 nats; ISGD half of it where it is best and above it elsewhere; 1,000 rates diverge."""
    losses, chasing = np.full(145, 9.0), np.zeros(145)
    losses[-65:] = 0.2 if group == "search sgd" else (0.1 if group == BEST.group else 0.25) + 0.01 * seed
    chosen = {"data": {"name": "digits"}, "batch": 32, "updates": 112}
    table = {"update": range(145), "loss": losses}
    if group != "search sgd":
        chasing[-20:], losses[-20:] = 1, 50.0  # chases are no batches, whatever their losses
        table["chasing"] = chasing
    status = "diverged" if group.startswith("zeta 1000,") else "finished"
    return {"settings": chosen, "tables": {"updates": table}, "status": status}


def test_the_treatment_with_the_lowest_training_loss_is_chosen() -> None:
    frame = frame_of({group: [searched(group, seed) for seed in (0, 1)] for group in zeta.SEARCHED})
    assert measured("isgd/zeta/choice", frame).values == BEST
    gains = dict(
        zip(sorted({each.zeta for each in GRID}), measured("isgd/zeta/best-gain", frame).values, strict=True)
    )
    assert gains[30.0] == pytest.approx((math.log(0.2 / 0.1) + math.log(0.2 / 0.11)) / 2)
    assert gains[1.0] == pytest.approx((math.log(0.2 / 0.25) + math.log(0.2 / 0.26)) / 2)
    assert gains[1000.0] == -math.inf
    rows = zeta.table(frame)
    assert len(rows) == 2 * len(GRID)
    assert rows["chases"].tolist() == [pytest.approx(20 / 145)] * len(rows)
    assert measured("isgd/zeta/search-size", frame).values == (len(GRID), 2, pytest.approx(112 / 45))


def test_the_search_has_seeds_of_its_own() -> None:
    deciding = {s.seed for specs in settings.mnist_pairs("paper").values() for s in specs}
    assert not deciding & {s.seed for specs in zeta.search("paper").values() for s in specs}


def test_what_was_chosen_is_compared_with_sgd() -> None:
    ours = [training(e, 0.4) for e in ISGD]
    frame = frame_of({"sgd": map(training, SGD), "chosen": ours})
    assert measured("isgd/zeta/faster", frame).spans == (pytest.approx(student(LOGS)),)
    lower = KNOWN["fig5d/isgd-lower"]
    assert measured("isgd/zeta/lower-training-error", frame).spans == (pytest.approx(student(lower)),)


def test_tables_hold_what_is_drawn() -> None:
    table = fig5.table(PAIRS)
    assert table.groupby("method").size().to_dict() == {"ISGD": 15, "SGD": 15}
    assert table["top-1 accuracy"].max() == pytest.approx(0.992)
    assert paper("isgd").artifact("isgd/fig5b").draw is not None


def test_before_the_last_pair_the_first_ones_are_drawn() -> None:
    groups = {"sgd": [training(e) for e in SGD], "isgd": [training(ISGD[0]), training(ISGD[1]), None]}
    assert set(fig5.table(frame_of(groups))["seed"]) == {0, 1}
    with pytest.raises(Missing):
        fig5.table(frame_of(groups, "reduced"))
