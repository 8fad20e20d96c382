"""Fig. 5's and Fig. 6's measures on runs of the paper's sizes: known answers, and worlds in which claims fall."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fabricated_isgd_trainings import evidence, training
from matplotlib.figure import Figure

from paper_figures.isgd import PAPER, fig5, fig6, readings
from suite.claims.judge import judge
from suite.papers.artifact import Missing
from suite.papers.catalogue import entries
from suite.papers.counterfeits import COUNTERFEITS, GENUINE, edited, forged

CLAIMS = {claim.id: claim for claim in entries("isgd")}
FLOORS = {"mnist": 0.0085, "cifar10": 0.225}  # errors
WITH_WORLDS = [
    *("fig5a/slightly-faster", "fig5a/sgd-dent", "fig5a/isgd-at-least-sgd", "fig5d/isgd-lower"),
    *("fig5b/isgd-above-sgd", "fig5b/expected-top", "fig5b/gain", "fig5e/isgd-lower"),
    *("fig6a/extreme-batch-slower", "fig6b/extreme-batch-slower"),
]


def settled(name, spec):
    """An error that falls to its floor over a third of the run and ripples, faster or slower by seed and method."""
    draw = np.random.default_rng([spec.seed, name == "isgd", spec.settings["batch"]])
    updates, every = spec.settings["updates"], spec.settings["evaluate"]["every"]
    at = np.unique([*range(0, updates + 1, every), updates]) / updates
    floor = FLOORS[spec.settings["data"]["name"]]
    fall = np.exp(-30 * (1 + 0.1 * draw.normal()) * at)
    error = floor + (0.9 - floor) * fall + 0.02 * floor * draw.normal(size=len(at)) * (at > 0)
    return training(spec, test_error=error, train_error=0.5 * error)


def given(artifact):
    return evidence(PAPER.artifact(artifact).runs("paper"), settled)


def measured(claim, found):
    for measure in PAPER.artifact(claim.artifact).measures:
        try:
            quantities = dict(measure(found))
        except Missing:
            continue
        if claim.quantity in quantities:
            return quantities[claim.quantity]
    raise AssertionError(f"{claim.id} is not measured")


@pytest.mark.parametrize("name", WITH_WORLDS)
def test_each_claim_can_be_lost_and_won(name):
    claim = CLAIMS[f"isgd/{name}"]
    for worlds, wanted in ((COUNTERFEITS, "not reproduced"), (GENUINE, "reproduced")):
        for world in worlds[claim.id]:
            found = measured(claim, world(given(claim.artifact)))
            assert judge(claim, found, "paper").verdict == wanted, (world.__name__, found)


def stretched(found, group, times):
    """The tests of a group at so many times the updates."""

    def later(run):
        table = run.curve("evaluations")
        return forged(run, evaluations=table.assign(update=times * table["update"]))

    return edited(found, later, group)


def test_twice_the_updates_are_twice_the_updates():
    once = dict(fig5.measure_speed(given("isgd/fig5a")))["slightly-faster"]
    twice = dict(fig5.measure_speed(stretched(given("isgd/fig5a"), "sgd", 2.0)))["slightly-faster"]
    assert twice.values[0] == pytest.approx(once.values[0] + math.log(2))
    assert twice.n == 10


def test_fig6_compares_with_the_better_of_the_two_batches_below():
    found = given("isgd/fig6a")
    before = dict(fig6.measure_mnist(found))["extreme-batch-slower"]
    assert before.n == 3
    assert not before.proxy
    alone = dict(fig6.measure_mnist(stretched(found, "b64", 9.0)))["extreme-batch-slower"]
    assert alone.values == before.values  # one card is not compared with
    slower = dict(fig6.measure_mnist(stretched(found, "b3000", 2.0)))["extreme-batch-slower"]
    assert slower.values[0] == pytest.approx(before.values[0] + math.log(2))


def test_a_seed_of_fig6_that_does_not_get_there_leaves_the_ratio_open():
    found = given("isgd/fig6a")
    lost = lambda run: forged(run, evaluations=run.curve("evaluations").assign(test_error=0.5))
    part = edited(found, lambda run: lost(run) if run.spec.seed else run, "b3000")
    step = dict(fig6.measure_mnist(part))["extreme-batch-slower"]
    assert (step.low, step.high, step.n) == ((-math.inf,), (math.inf,), 3)
    assert math.isfinite(step.values[0])
    assert step.note.endswith(", inf, inf")


@pytest.mark.parametrize("runs", ["measure_mnist", "measure_cifar"])
def test_an_accuracy_that_is_not_reached_is_missing(runs):
    found = given("isgd/fig6a" if runs == "measure_mnist" else "isgd/fig6b")
    table = lambda run: run.curve("evaluations")
    high = edited(found, lambda run: forged(run, evaluations=table(run).assign(test_error=0.5)))
    with pytest.raises(Missing, match="a seed with which every batch size reaches"):
        list(getattr(fig6, runs)(high))


def test_staying_above_begins_after_the_last_test_below():
    (spec,) = [s for s in PAPER.artifact("isgd/fig5b").runs("paper")["sgd"] if s.seed == 0]
    error = np.full(121, 0.2)
    error[[0, 1, 2, 40]] = 0.3
    assert fig5.stays_from(training(spec, test_error=error), 0.25) == 41 * spec.settings["evaluate"]["every"]
    error[-1] = 0.3
    with pytest.raises(Missing, match="75%"):
        fig5.stays_from(training(spec, test_error=error), 0.25)


def test_training_error_is_compared_over_the_second_half():
    found = given("isgd/fig5d")

    def early(run):
        table = run.curve("evaluations")
        return forged(run, evaluations=table.assign(train_error=table["train_error"] + (table["update"] < 5000)))

    assert readings.error_leads(found.runs("sgd"), found.runs("isgd")) == readings.error_leads(
        edited(found, early, "sgd").runs("sgd"), found.runs("isgd")
    )


@pytest.mark.parametrize(
    ("name", "scale", "printed"),
    [("fig5a", "linear", 0), ("fig5b", "linear", 1), ("fig5d", "log", 0), ("fig5e", "log", 0)],
)
def test_both_methods_are_drawn_with_what_is_printed(name, scale, printed):
    artifact, figure = PAPER.artifact(f"isgd/{name}"), Figure()
    found = given(artifact.id)
    artifact.draw(found, figure)
    (axes,) = figure.axes
    assert axes.get_yscale() == scale
    assert [text.get_text() for text in axes.get_legend().get_texts()][:2] == ["SGD", "ISGD"]
    assert sum("printed" in text.get_text() for text in axes.texts) == printed
    table = artifact.frame(found)
    assert set(table["method"]) == {"SGD", "ISGD"}
    assert table["seed"].nunique() == 10
