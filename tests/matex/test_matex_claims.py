"""The measures of MaTEx on runs of the paper's sizes: known answers, and worlds in which claims fall."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fabricated_matex_runs import evidence, gap, training
from matplotlib.figure import Figure

from paper_figures.matex_agd import accuracy, algorithms, fig1, settings, table1
from suite.claims.intervals import Interval, least
from suite.claims.judge import judge
from suite.papers.artifact import Evidence, Missing
from suite.papers.catalogue import published
from suite.papers.counterfeits import edited, exchanged, forged
from suite.papers.evidence import with_committed

CLAIMS = {claim.id.removeprefix("matex_agd/"): claim for claim in published("matex_agd")}
PRINTED = table1.printed_table()
ROWS = [f"{row}-b{batch}" for row in table1.ROWS for batch in table1.BATCHES]


def verdict(name: str, found, profile: str = "paper") -> str:
    return judge(CLAIMS[name], found, profile).verdict


@pytest.fixture(scope="module")
def committed():
    return with_committed(None)


# Table 1


def table_of(accuracies, apart=0.01, without=()):
    """Table 1 at the paper's size, one run a row."""

    def make(name, spec):
        if name in without:
            return None
        return gap(apart) if name == "gap" else training(spec, accuracies.get(name, PRINTED["agd2"]))

    return evidence(table1.runs("paper"), make)


def row_quantities(found, *rows):
    return {name: value for row in rows or table1.ROWS for name, value in table1.measure_row(row)(found)}


@pytest.mark.parametrize(
    ("profile", "titles"),
    [
        ("paper", ["AlexNet, ImageNet, 1 seed; open: printed"]),
        ("reduced", ["as printed: AlexNet, ImageNet", "stand-in: cifar10, 3 seeds"]),
    ],
)
def test_on_imagenet_our_rows_are_drawn_among_the_printed_and_elsewhere_beside_them(profile, titles):
    make = lambda name, spec: gap(0.01) if name == "gap" else training(spec, PRINTED["agd2"])
    figure = Figure()
    table1.draw(evidence(table1.runs(profile), make, profile), figure)
    assert [axes.get_title() for axes in figure.axes[:-1]] == titles


def test_the_printed_table_reproduces_itself_when_seeds_agree():
    found = table_of(PRINTED)
    seen = row_quantities(found) | dict(table1.measure_all_rows(found)) | dict(table1.measure_tradeoff(found))
    assert {name: verdict(f"table1/{name}", seen[name]) for name in ROWS} == dict.fromkeys(ROWS, "reproduced")
    assert {name: verdict(f"table1/{name}", seen[name]) for name in ("order", "rises", "tradeoff")} == dict.fromkeys(
        ("order", "rises", "tradeoff"), "reproduced"
    )
    assert seen["serial-b5000"].values[0] == pytest.approx(0.16454)
    assert seen["serial-over-sgd"].values[0] == pytest.approx(0.16454 - 0.13052)
    assert not any(value.proxy for value in seen.values())


def test_one_run_is_as_wide_as_seeds_of_the_proxy_lie_apart():
    """Deviation of -2, -1, 0, 1, 2 is 1.5811, t of four degrees 2.7764: 4.39 times what lies between two seeds."""
    found = table_of(PRINTED, apart=0.05)
    (value,) = row_quantities(found, "serial")["serial-b1000"].spans
    assert value == pytest.approx((0.0124, 0.0124 * (1 - 0.21949), 0.0124 * (1 + 0.21949)), rel=1e-4)
    step = accuracy.steps(found, "sgd", "serial")[0]
    assert step.high - step.mean == pytest.approx(0.21949 * math.hypot(0.0124, 0.01116), rel=1e-4)
    assert step.mean - step.low == pytest.approx(step.high - step.mean)
    assert verdict("table1/order", dict(table1.measure_all_rows(found))["order"]) == "inconclusive"
    assert verdict("table1/tradeoff", dict(table1.measure_tradeoff(found))["tradeoff"]) == "reproduced"


@pytest.mark.parametrize(("row", "other"), [("serial", "agd1"), ("sgd", "agd1"), ("agd1", "agd2"), ("agd2", "agd1")])
def test_no_row_passes_for_another(row, other):
    found = table_of(PRINTED | {row: PRINTED[other]})
    seen = row_quantities(found, row)
    assert {verdict(f"table1/{name}", value) for name, value in seen.items()} == {"not reproduced"}


def test_rows_in_another_order_are_told():
    found = exchanged(table_of(PRINTED), "agd1", "sgd")
    assert verdict("table1/order", dict(table1.measure_all_rows(found))["order"]) == "not reproduced"
    assert verdict("table1/tradeoff", dict(table1.measure_tradeoff(found))["tradeoff"]) == "not reproduced"
    falling = table_of(PRINTED | {"agd2": PRINTED["agd2"][::-1]})
    rises = dict(table1.measure_all_rows(falling))["rises"]
    assert rises.values == (0.75,)  # 12 of 16 steps
    assert verdict("table1/rises", rises) == "not reproduced"


def test_a_missing_run_costs_its_own_row():
    found = table_of(PRINTED, without=("serial",))
    assert len(row_quantities(found, "sgd", "agd1", "agd2")) == 15
    assert "tradeoff" in dict(table1.measure_tradeoff(found))
    for measure in (table1.measure_all_rows, table1.measure_row("serial")):
        with pytest.raises(Missing, match="serial"):
            list(measure(found))


def test_a_run_that_diverged_stays_at_chance():
    found = table_of(PRINTED | {"agd2": [0.002, 0.0015]})
    assert accuracy.accuracies(found, "agd2") == [pytest.approx([0.002, 0.0015, 0.001, 0.001, 0.001])]
    proxy = evidence(settings.table1("reduced"), lambda name, spec: training(spec, [0.3]), "reduced")
    assert accuracy.accuracies(proxy, "sgd") == [pytest.approx([0.3, 0.1, 0.1, 0.1, 0.1])] * 3


def by_seed(name, spec):
    """CIFAR-10 at three seeds: the printed table, times 3, 3.3 and 3.6."""
    if name == "gap":
        return gap(0.1)
    return training(spec, [(3 + 0.3 * spec.seed) * value for value in PRINTED.get(name, PRINTED["agd2"])])


def test_seeds_are_paired_and_a_proxy_decides_nothing():
    found = evidence(table1.runs("reduced"), by_seed, "reduced")
    steps = accuracy.steps(found, "agd1", "sgd")
    away = PRINTED["sgd"][2] - PRINTED["agd1"][2]
    assert (steps[2].mean, steps[2].n) == (pytest.approx(3.3 * away), 3)
    assert steps[2].high - steps[2].mean == pytest.approx(4.3027 * 0.3 * away / math.sqrt(3), rel=1e-4)
    seen = row_quantities(found) | dict(table1.measure_all_rows(found))
    assert all(value.proxy for value in seen.values())
    of_seeds = dict(table1.measure_gap_on_the_proxy(found))
    assert of_seeds["proxy-gap"].values[0] == pytest.approx(table1.log_ratio(PRINTED["sgd"], PRINTED["serial"]))
    assert of_seeds["proxy-gap-of-seeds"].values[0] == pytest.approx(math.log(1.2))
    with pytest.raises(Missing, match="one seed"):
        list(table1.measure_gap_on_the_proxy(table_of(PRINTED)))


def test_least_speaks_for_all():
    seen = [Interval(0.2, 0.1, 0.9, 5), Interval(0.3, -0.1, 0.35, 5)]
    assert least(seen) == Interval(0.2, -0.1, 0.35, 5)


def test_the_table_is_drawn_with_every_printed_value():
    for found, panels, rows in (
        (table_of(PRINTED), 2, 20 + 25),
        (evidence(table1.runs("reduced"), by_seed, "reduced"), 3, 20 + 75),
        (table_of(PRINTED, without=("serial", "agd1", "agd2", "agd3")), 2, 20 + 5),
    ):
        table = table1.frame(found)
        assert len(table) == rows
        printed = table[table["source"] == "printed"]
        assert [f"{value:.5f}" for value in printed["accuracy"]] == [f"{v:.5f}" for r in PRINTED.values() for v in r]
        assert printed["batches"].tolist() == list(table1.BATCHES) * 4
        figure = Figure()
        table1.draw(found, figure)
        assert len(figure.axes) == panels
        filled = [line for line in figure.axes[panels - 2].lines if line.get_markerfacecolor() != "none"]
        assert sum(len(line.get_ydata()) for line in filled if len(line.get_ydata())) == rows - 20
        marked = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "none"]
        drawn = [value for line in marked for value in line.get_ydata()]
        assert sorted(drawn) == sorted(v for row in PRINTED.values() for v in row)
    nothing = table_of(PRINTED, without=tuple(settings.LABELS))
    with pytest.raises(Missing, match="serial"):
        table1.draw(nothing, Figure())


# Whole trainings


def whole(ends, profile="paper", seeds=1):
    """Whole trainings that end at these accuracies, half a point higher with each seed."""
    groups = {
        name: tuple(type(spec)(spec.experiment, spec.settings, seed) for spec in specs[:1] for seed in range(seeds))
        for name, specs in settings.whole_training(profile).items()
    }
    count = {"paper": 45, "reduced": 5}[profile]
    make = lambda name, spec: training(spec, [0.3] * (count - 1) + [ends[name] + 0.005 * spec.seed])
    return evidence(groups, make, profile)


ENDS = {"serial": 0.541, "agd1": 0.542, "agd2": 0.538, "agd3": 0.539}


def test_ends_of_training_need_two_seeds():
    one = dict(fig1.measure_whole_training(whole(ENDS)))
    assert [verdict(f"fig1b/{n}", one[n]) for n in ("alexnet-54", "final-accuracy-kept")] == ["inconclusive"] * 2
    found = dict(fig1.measure_whole_training(whole(ENDS, seeds=8)))
    assert found["alexnet-54"].values[0] == pytest.approx(54.2 + 1.75)  # of the row furthest from 54
    assert found["final-accuracy-kept"].values[0] == pytest.approx(-0.3)
    assert verdict("fig1b/final-accuracy-kept", found["final-accuracy-kept"]) == "reproduced"
    assert verdict("fig1b/same-iterations", found["same-iterations"]) == "reproduced"


@pytest.mark.parametrize("late", ["agd1", "agd2", "agd3"])
def test_one_approach_that_falls_behind_is_found(late):
    found = dict(fig1.measure_whole_training(whole(ENDS | {late: 0.5}, seeds=3)))
    assert verdict("fig1b/final-accuracy-kept", found["final-accuracy-kept"]) == "not reproduced"
    assert verdict("fig1b/same-iterations", found["same-iterations"]) == "not reproduced"
    assert found["no-warm-start"].values[0] == pytest.approx(2 / 3)


def test_a_whole_training_on_mnist_is_a_proxy():
    ends = dict.fromkeys(ENDS, 0.98)
    found = dict(fig1.measure_whole_training(whole(ends, "reduced", 3)))
    assert all(value.proxy for value in found.values())
    assert found["same-iterations"].values == (1.0,)


# The algorithms


@pytest.fixture(scope="module")
def properties(committed):
    return Evidence(committed, algorithms.runs("paper"), "paper")


def test_threads_count_as_buffers_do(properties):
    found = dict(algorithms.measure_delayed_processes(properties))["resources"]
    assert found.values == (1, 2, 3, 1, 2, 3)
    fewer = algorithms.telling(properties, "workers", {"delay 3/lanes": 1})
    assert verdict("alg-agd/resources", dict(algorithms.measure_delayed_processes(fewer))["resources"]) == (
        "not reproduced"
    )


def test_weights_that_never_differed_show_no_broadcast(properties):
    same = algorithms.telling(properties, "workers", {"synchronous/drawn apart": 0.0})
    found = dict(algorithms.measure_synchronous_processes(same))["replicas-equal"]
    assert verdict("alg-sgd/replicas-equal", found) == "inconclusive"


def test_gradients_of_two_ages_are_not_of_constant_staleness(properties):
    odd = algorithms.telling(properties, "properties", {"delayed/age of applied gradients": [1.0, 0.0, 3.0]})
    found = dict(algorithms.measure_delayed(odd))["staleness-constant"]
    assert found.values == (1.0, 0.0, 1.0)
    assert verdict("alg-agd/staleness-constant", found) == "not reproduced"


def test_timed_sums_are_compared_on_a_log_scale(properties):
    run = properties.run("workers")
    ratios = [2.0, 4.0, 8.0]
    found = edited(properties, lambda _: forged(run, {"weights over bias": ratios}), "workers")
    seen = dict(algorithms.measure_timed_sums(found))["bias-first"]
    assert seen.values[0] == pytest.approx(np.log(4))
    assert seen.high[0] - seen.values[0] == pytest.approx(4.3027 * np.log(2) / math.sqrt(3), rel=1e-4)
    assert seen.n == 3


TOLD = {
    "properties": {
        "algorithm_1/gradient check": 0.01,
        "algorithm_1/relu": 0.02,
        "algorithm_1/order of algorithm 1": [6, 3, 1],
        "algorithm_1/order of autograd": [5, 4],
        "synchronous/gradient difference": 0.03,
        "synchronous/serial difference": 0.02,
        "partition/difference of mini-batches": 3,
        "partition/shared samples": 4,
        "layer_wise/sequential difference": 0.05,
        "layer_wise/order difference": 0.06,
        "algorithm_1/error in place": 0.9,
        "algorithm_1/error on a copy": 0.2,
        "layer_wise/reductions per update and tensor": 2.0,
        "delayed/age of applied gradients": [2.0, 2.0, 6.0],
        "delayed/zero delay difference": 0.07,
        "delayed/moved while idle": 0.08,
        "delayed/largest stable rate": [4.0, 3.0, 2.0, 1.0],
    },
    "workers": {
        "synchronous/begun apart": 0.1,
        "synchronous/ended apart": 0.3,
        "synchronous/reductions per update": 2.0,
        "synchronous/gradient buffers": 3,
        "synchronous/sums outside the gradient buffers": 4,
        "synchronous/started before backward ended": 1,
        "delay 1/gradient buffers": 5,
        "delay 2/sums outside the gradient buffers": 2,
        "delay 3/lanes": 9,
        "delay 2/begun apart": 0.4,
        "delay 3/ended apart": 0.6,
    },
    "layers": {"caffe_alexnet tensors": 5},
}
FOUND = {
    "gradient-check": (0.01,),
    "relu": (0.02,),
    "last-to-first": (1.0,),  # the smallest step down
    "equals-serial": (0.03,),  # the larger
    "equal-split": (3.0,),
    "disjoint": (4.0,),
    "one-reduction": (2.0,),
    "in-place": (6.0,),  # buffers beside the gradient's own, and sums outside
    "after-use": (0.0,),
    "reduce-cost": (1, 2, 3, 4, 5, 6),
    "equals-sequential": (0.05,),
    "order-independent": (0.06,),
    "copy-needed": (0.7,),
    "reductions": (10.0,),
    "delay-exact": (2.0, 2.0, 6.0),
    "zero-delay-is-sgd": (0.07,),
    "first-iterations-idle": (0.08,),
    "staleness-constant": (2.0, 1.0, 2.0),
    "stability": (4.0, 3.0, 2.0, 1.0),
    "resources": (4, 4, 3, 1, 2, 9),
    "small-delay": (4 / 9,),  # on 2 devices none, on 4 a delay of one, on 8 all
}


def test_each_quantity_is_what_the_runs_say(properties):
    found = properties
    for group, said in TOLD.items():
        found = algorithms.telling(found, group, said)
    seen = {}
    for artifact in algorithms.ARTIFACTS:
        for measure in artifact.measures:
            seen |= {(artifact.id, name): value.values for name, value in measure(found)}
    assert seen.pop(("matex_agd/alg-sgd", "replicas-equal")) == (0.3,)
    assert seen.pop(("matex_agd/alg-agd", "replicas-equal")) == (0.6,)
    by_name = {name: values for (_, name), values in seen.items()}
    assert {name: by_name[name] for name in FOUND} == {name: pytest.approx(values) for name, values in FOUND.items()}
