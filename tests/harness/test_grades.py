"""Grades: what a number rests on follows from specifications, the printed settings and the code behind it."""

from __future__ import annotations

from collections import defaultdict
from math import ceil

import pandas as pd
import pytest

from paper_figures.crossbow.settings import lenet
from paper_figures.isgd.fig1 import IID
from suite.claims.estimate import REDUCED, STAND_IN, WHOLE
from suite.data.catalogue import DATASETS
from suite.papers.catalogue import PAPERS, paper
from suite.papers.grades import Grade, Grading, Rests, _together, departures
from suite.papers.printed_settings import SCALES, Described, describe, missing, settings
from suite.runner.cost import TRAIN
from suite.runs.run import Outcome, Run, encode, verified
from suite.spec import RunSpec

HERE = "Some processor"


def graded(claim: str, *specs: RunSpec, machine: str = HERE) -> Grade:
    return graded_runs(claim, *(stored(spec, machine) for spec in specs))


def graded_runs(claim: str, *runs: Run) -> Grade:
    name = claim.partition("/")[0]
    return Grading(name, {"train": TRAIN, **paper(name).experiments}).grade(claim, Rests(runs))


def stored(spec: RunSpec, machine: str = HERE, **tables: pd.DataFrame) -> Run:
    return verified(spec.id, encode(spec, {"machine": {"cpu": machine}}, Outcome("finished", {}, tables)))


def rudra(
    n: int = 1, batch: int = 4, learners: int = 30, epochs: int = 140, images: int = 50_000, **changes
) -> RunSpec:
    """One of Table 2's rows as section 4.2 prints it."""
    each = batch * (learners // max(n, 1))
    updates = round(epochs * images / each)
    rate = 0.001 / n if n else 0.001 * (learners * batch / 128) ** 0.5
    made = {
        "data": {"name": "cifar10", "transform": "mean-image"},
        "model": {"name": "caffe_cifar_full"},
        "algorithm": {"name": "rudra", "workers": learners, "n": n},
        "descent": {"rule": "caffe", "momentum": 0.9, "decay": 0.004, "multipliers": True},
        "rate": rate,
        "drops": [[round(updates * at / 140), factor] for at, factor in ((120, 0.1), (130, 0.01))],
        "batch": batch,
        "workers": learners,
        "updates": updates,
        "evaluate": {"every": updates // 10},
    }
    return RunSpec("rudra/train", made | changes)


@pytest.mark.parametrize("n", [0, 1, 30])
def test_a_run_at_the_paper_s_settings_is_as_printed(n):
    claim = "rudra/table3/r04-test-error" if n == 0 else "rudra/table2/r01-test-error"
    assert graded(claim, rudra(n)) == Grade(WHOLE, "", True)


def test_runs_that_lend_a_spread_have_no_say_but_are_behind_the_number():
    """Hardsync in Table 2 would be a stand-in: it is none of its rows."""
    row, other = stored(rudra(1)), stored(rudra(0, batch=128, learners=1))
    claim = "rudra/table2/r01-test-error"
    assert graded_runs(claim, row, other).rests_on == STAND_IN
    lent = Rests((row, other), beside=frozenset({other.id}))
    assert Grading("rudra", paper("rudra").experiments).grade(claim, lent).rests_on == WHOLE
    assert list(lent.began) == [row.id]
    assert lent.digest != Rests((row,)).digest


CIFAR = {"name": "cifar10", "transform": "mean-image"}


@pytest.mark.parametrize(
    ("changed", "grade", "because"),
    [
        (rudra(epochs=8), REDUCED, "8 of 140 epochs"),
        (rudra(epochs=160), STAND_IN, "160 epochs for 140"),
        (rudra(data=CIFAR | {"subset": 10_000}, images=10_000), REDUCED, "10,000 of 50,000 images"),
        (rudra(data=CIFAR | {"name": "digits"}), STAND_IN, "digits for cifar10"),
        (rudra(data=CIFAR | {"transform": "scale"}), STAND_IN, "preparation scale for mean-image"),
        (rudra(model={"name": "caffe_cifar_quick"}), STAND_IN, "caffe_cifar_quick for caffe_cifar_full"),
        (rudra(rate=0.002), STAND_IN, "rate 0.002 for 0.001 x 1 / n"),
        (rudra(batch=5), STAND_IN, "batch 5 for 4 or 8 or 16 or 32 or 64 or 128"),
        (rudra(learners=3), STAND_IN, "workers 3 for 1 or 2 or 4 or 10 or 18 or 30"),
        (rudra(descent={"rule": "caffe", "momentum": 0.5}), STAND_IN, "momentum 0.5 for 0.9"),
        (rudra(drops=[]), STAND_IN, "drops [] for [(120, 0.1), (130, 0.01)]"),
        (rudra(evaluate={"every": 1000, "test_examples": 2000}), REDUCED, "2,000 of 10,000 test examples"),
    ],
)
def test_each_departure_lowers_the_grade(changed, grade, because):
    assert graded("rudra/table2/r01-test-error", changed) == Grade(grade, because, False)


def test_a_quantity_is_as_good_as_the_worst_run_it_reads():
    good, short, other = rudra(), rudra(30, epochs=8), rudra(model={"name": "digits_lenet"})
    assert graded("rudra/table2/staleness-irrelevant", good, short).rests_on == REDUCED
    assert (
        graded("rudra/table2/staleness-irrelevant", short, other, good).because == "digits_lenet for caffe_cifar_full"
    )


def test_a_claim_that_speaks_of_a_smaller_size_decides_at_it():
    short = rudra(30, 128, epochs=8, rate=0.001)
    assert graded("rudra/fig5/n30-diverges", short) == Grade(REDUCED, "8 of 140 epochs", True)
    assert not graded("rudra/fig5/n30-lower", short).decides


def sweep(batch: int, seed: int, **changes) -> RunSpec:
    made = {
        "data": {"name": "mnist", "labels": "digits", "transform": "standardise-global"},
        "model": {"name": "lenet_small"},
        "descent": {"rule": "torch", "decay": 1e-4},
        "rate": 0.01,
        "batch": batch,
        "share": 0.2,
        "sample": None,
        "growth": 0.0,
        "every": 1,
        "limit": 100_000,
    }
    return RunSpec("inverse_law/sweep", made | changes, seed)


@pytest.mark.parametrize(
    ("specs", "because"),
    [
        ([sweep(2**k, s, sample=500) for k in range(11) for s in range(10)], "500 of 12,000 test examples"),
        ([sweep(2**k, s, growth=0.01) for k in range(11) for s in range(10)], "tested on a grid that grows by 1%"),
        ([sweep(2**k, s, every=100) for k in range(11) for s in range(10)], "tested every 100 updates for 1"),
    ],
)
def test_fewer_or_rarer_tests_reduce_the_law_s_searches(specs, because):
    assert graded("inverse_law/fig1a/misfit-mnist_small-lr0p01", *specs) == Grade(REDUCED, because, False)


def reasons(claim: str, *specs: RunSpec) -> set[str]:
    """Every departure of runs from the one experiment that a claim names."""
    (printed,) = settings(claim.partition("/")[0]).basis(claim).experiments
    ours = [describe(spec) for spec in specs]
    each = [reason for run in ours for _, reason in departures(run, printed)]
    return {*each, *(reason for _, reason in _together(ours, printed))}


def test_a_part_of_a_data_set_shortens():
    from paper_figures.inverse_law.fig2 import panel_runs

    whole, sittings = (
        [s for s in panel_runs(1.0, profile)["panel"] if s.settings["words"] == 100]
        for profile in ("paper", "reduced")
    )
    claim = "inverse_law/fig2d/law"
    assert "14,112 of 1,961,119 examples" not in reasons(claim, *whole)
    assert graded(claim, *sittings) == Grade(REDUCED, "14,112 of 1,961,119 examples", False)
    assert graded(claim, *panel_runs(1.0, "reduced")["captions"]).rests_on == STAND_IN


def test_a_claim_on_every_experiment_needs_them_all():
    claim = "inverse_law/fig1b/alpha-grows"
    assert settings("inverse_law").basis(claim).every
    medium = {"model": {"name": "lenet_medium"}, "rate": 0.05}
    found = graded(claim, *[sweep(2**k, s, **medium) for k in range(11) for s in range(10)])
    assert found == Grade(
        REDUCED, f"1 of {len(settings('inverse_law').basis(claim).experiments)} printed experiments", False
    )


def falling(printed, epochs):
    """The drops that a schedule prints for so many epochs, and the settings of one that hangs on the mean loss."""
    if printed and printed.periodic:
        every, factor = printed.periodic
        return [(every * k, factor**k) for k in range(1, ceil(epochs / every))], {}
    drops = printed.values[0] if printed else []
    if printed and printed.by_loss:
        return [], {"thresholds": [at for at, _ in drops], "factors": [1.0, *(factor for _, factor in drops)]}
    return drops, {}


def built(experiment) -> RunSpec | None:
    """A specification with exactly what an experiment prints; None where a value cannot be put in one."""
    printed = defaultdict(lambda: None, experiment.fields)
    value = lambda name, other=None: printed[name].values[0] if printed[name] and printed[name].values else other
    ends = printed["batch"].ends if printed["batch"] else None
    batch, workers = value("batch", ends[0] if ends else 50), value("workers", 1)
    splitting = value("splitting")
    if printed["rate"] and printed["rate"].times:
        rate = value("rate") * SCALES[printed["rate"].times](batch, workers, splitting or 0)
    else:
        rate = value("rate", 0.1)
    name = value("data")
    images = DATASETS[name].sizes["train"]
    each = batch * (workers // (splitting or 1))
    epochs = value("epochs", 200)
    updates = value("updates", round(epochs * images / each))
    drops, falls = falling(printed["drops"], updates * each / images)
    made = {
        "data": {"name": name, "transform": value("preparation", "scale"), "labels": value("labels", "digits")},
        "model": {"name": value("network", "own")},
        "algorithm": {"name": "rudra", "n": splitting} if splitting is not None else {"name": "sgd", **falls},
        "descent": {"rule": value("rule", "caffe"), "momentum": value("momentum", 0.9), "decay": value("decay", 0.0)},
        "rate": rate,
        "batch": batch,
        "workers": workers,
        "updates": updates,
        "drops": [[round(at * images / each), factor] for at, factor in drops],
        "share": 0.2,
        "every": 1,
    }
    if printed["warmstart"]:
        before = round(value("warmstart") * images / (batch * workers))
        made["warmstart"] = {"updates": before, "algorithm": {"n": 0}}
    return RunSpec("train", made)


EXPERIMENTS = [
    pytest.param(experiment, id=f"{name}-{experiment.name}")
    for name in PAPERS
    for experiment in settings(name).experiments.values()
    if experiment.trains and not missing(experiment)
]


@pytest.mark.parametrize("printed", EXPERIMENTS)
def test_what_every_experiment_prints_departs_from_it_in_nothing(printed):
    assert list(departures(describe(built(printed)), printed)) == []


@pytest.mark.parametrize(
    ("best", "grade", "because"),
    [(0.9921, WHOLE, ""), (0.9889, REDUCED, "ends at 98.9% for 99%"), (None, REDUCED, "no test accuracy for 99%")],
)
def test_a_training_until_an_accuracy_is_as_long_as_it_takes_to_get_there(best, grade, because):
    claim, spec = "crossbow/lenet/s-sgd-16", lenet("paper")["sma 16"][0]
    script = {"rate": 0.001, "batch": 1, "descent": {**spec.settings["descent"], "momentum": 0.0}}
    spec = RunSpec(spec.experiment, {**spec.settings, **script}, spec.seed)
    tables = {} if best is None else {"evaluations": pd.DataFrame({"test_error": [1 - best]})}
    found = graded_runs(claim, stored(spec, **tables))
    assert (found.rests_on, found.because) == (grade, because)


def test_what_the_table_calls_exact_are_experiments():
    for name in PAPERS:
        assert set(settings(name).exact) <= set(paper(name).experiments), name


@pytest.mark.parametrize(
    ("claim", "spec", "told"),
    [
        ("rudra/table2/r01-test-error", rudra(), "6 of 8, not decay, seeds"),
        ("isgd/fig1a/all-done", None, "1 of 8, not rate, momentum, decay, drops, length, seeds, preparation"),
    ],
)
def test_a_grade_counts_the_settings_that_are_printed(claim, spec, told):
    assert graded(claim, spec or IID.runs("paper")["iid"][0]).printed == told


def test_descriptions_count_epochs_as_the_papers_do():
    assert describe(rudra(4, 128, 30)).epochs == pytest.approx(140, abs=0.1)  # 30 // 4 gradients an update
    assert isinstance(describe(rudra()), Described)
    assert describe(rudra()).drops == ((pytest.approx(120, abs=0.1), 0.1), (pytest.approx(130, abs=0.1), 0.01))


def test_an_epoch_of_a_cycle_of_ten_batches_is_one_of_them_each():
    """ISGD's Fig. 1 trains on 10,000 of CIFAR-10's pictures and counts how often it has seen them."""
    (spec,) = IID.runs("paper")["iid"]
    assert describe(spec).epochs == 2200
    claim = "isgd/fig1a/all-done"
    assert graded(claim, spec) == Grade(WHOLE, "", True)
