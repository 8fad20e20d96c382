"""The search for zeta: what it counts as a gain, what it chooses, and what decides."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fabricated_isgd_trainings import evidence, training

from paper_figures.isgd import settings, zeta
from paper_figures.isgd.zeta import GRID, Treatment
from suite.claims.judge import judge
from suite.papers.catalogue import entries
from suite.papers.counterfeits import COUNTERFEITS, GENUINE

BEST = Treatment(30.0, 2.0, 5)


def searched(name, spec):
    """SGD at a loss of 0.2 nats; ISGD half of it where it is best and above it elsewhere; 1,000 rates diverge."""
    updates = spec.settings["updates"]
    if name == "search sgd":
        return training(spec, losses=np.full(updates, 0.2))
    if name.startswith("zeta 1000,"):
        return training(spec, losses=np.full(updates, np.nan), status="diverged")
    seed_moves = 0.01 * (spec.seed - 100)
    losses = np.full(updates, (0.1 if name == BEST.group else 0.25) + seed_moves)
    chasing = np.zeros(updates)
    chasing[-600:], losses[-600:] = 1, 50.0  # chases are no batches, whatever their losses
    return training(spec, losses=losses, chasing=chasing)


@pytest.fixture
def search():
    return evidence(zeta.search("paper"), searched)


def found(measure, given):
    return dict(measure(given))


def test_the_search_covers_the_printed_values_and_a_thousandfold_on_seeds_of_its_own():
    deciding = {s.seed for specs in settings.mnist_pairs("paper").values() for s in specs}
    groups = zeta.search("paper")
    assert not deciding & {s.seed for specs in groups.values() for s in specs}
    assert {each.zeta for each in GRID} >= {0.1, 1000.0}
    assert {each.margin for each in GRID} >= {2.0, 3.0}
    assert 5 in {each.stop for each in GRID}
    assert len({s.id for specs in groups.values() for s in specs}) == 2 * (len(GRID) + 1)


def test_the_treatment_with_the_lowest_training_loss_is_chosen(search):
    quantities = found(zeta.measure_choice, search)
    assert quantities["choice"].values == BEST
    best = dict(zip(sorted({each.zeta for each in GRID}), quantities["best-gain"].values, strict=True))
    assert best[30.0] == pytest.approx((math.log(0.2 / 0.1) + math.log(0.2 / 0.11)) / 2)
    assert best[1.0] == pytest.approx((math.log(0.2 / 0.25) + math.log(0.2 / 0.26)) / 2)
    assert best[1000.0] == -math.inf


def test_a_row_of_the_search_counts_batches_and_not_chases(search):
    table = zeta.frame(search)
    assert len(table) == 2 * len(GRID)
    row = table[(table["zeta"] == 30) & (table["margin"] == 2) & (table["stop"] == 5) & (table["seed"] == 100)]
    assert row["gain"].item() == pytest.approx(math.log(2))
    assert row["chases"].item() == pytest.approx(600 / 2345)


def decided(sooner, lower):
    """SGD is at 99% from update 5,000 on; ISGD ``sooner`` by that factor, its training error ``lower`` by that."""

    def make(name, spec):
        treated = name == "chosen"
        at, speed = np.arange(0, 10_001, 100), sooner if treated else 1
        errors = 0.0089 + 0.89 * np.exp(-np.log(890 / 1.1) * at * speed / (5000 + 100 * (spec.seed % 2) * treated))
        return training(spec, test_error=errors, train_error=np.full(101, 0.004 - treated * lower))

    return make


@pytest.mark.parametrize(("sooner", "lower"), [(2.0, 0.001), (0.6, -0.002)])
def test_the_chosen_one_is_compared_with_sgd_on_other_seeds(monkeypatch, sooner, lower):
    monkeypatch.setattr(zeta, "CHOSEN", BEST)
    groups = {**settings.mnist_pairs("paper"), **zeta.chosen("paper")}
    algorithm = groups["chosen"][0].settings["algorithm"]
    assert (algorithm["zeta"], algorithm["margin"], algorithm["stop"]) == (0.3, 2.0, 5)
    assert [s.seed for s in groups["chosen"]] == [s.seed for s in groups["sgd"]]
    given = evidence(groups, decided(sooner, lower))
    quantities = found(zeta.measure_speed, given) | found(zeta.measure_training_error, given)
    assert quantities["faster"].values[0] == pytest.approx(math.log(sooner), abs=0.03)
    assert quantities["fewer-seconds"].values == pytest.approx(quantities["faster"].values)
    assert quantities["lower-training-error"].values == pytest.approx((lower,))
    assert quantities["faster"].n == 10


@pytest.mark.parametrize("name", ["isgd/zeta/faster", "isgd/zeta/lower-training-error"])
def test_what_decides_can_be_lost_and_won(monkeypatch, name):
    monkeypatch.setattr(zeta, "CHOSEN", BEST)
    claim = next(claim for claim in entries("isgd") if claim.id == name)
    given = evidence(zeta.runs("paper"), decided(1.0, 0.0))
    for worlds, wanted in ((COUNTERFEITS, "not reproduced"), (GENUINE, "reproduced")):
        (world,) = worlds[name]
        measure = zeta.measure_speed if claim.quantity == "faster" else zeta.measure_training_error
        ours = found(measure, world(given))[claim.quantity]
        assert judge(claim, ours, "paper").verdict == wanted
