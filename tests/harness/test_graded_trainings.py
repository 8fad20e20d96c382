"""Grades of made-up trainings: against several printed experiments, machines and kinds of run."""

from __future__ import annotations

import pandas as pd
import pytest
from test_departures import printed, spec

from suite.claims.estimate import EXACT, MODELLED, REDUCED, STAND_IN, WHOLE
from suite.experiment import Experiment
from suite.papers import grades
from suite.papers.grades import Grade, Grading, Rests, best_test, machine_of
from suite.papers.printed_settings import Basis, Printed, PrintedSettings
from suite.runs.run import Outcome, encode, verified
from suite.spec import RunSpec


@pytest.fixture
def table(monkeypatch):
    """Makes a paper's table of printed settings the one that is read."""

    def made(*experiments, machine=None, exact=(), **entry):
        by_name = {each.name: each for each in experiments}
        settings = PrintedSettings(by_name, {"fig1": Basis(experiments, machine, **entry)}, dict(exact))
        monkeypatch.setattr(grades, "settings", lambda paper: {"toy": settings}[paper])

    return made


def graded(*runs, experiments=None):
    return Grading("toy", experiments or {}).grade("toy/fig1/claim", Rests(runs))


def read(made=None, machine="here", best=None):
    curves = {} if best is None else {"evaluations": {"test_error": [1 - best]}}
    return run({"machine": {"cpu": machine}}, made or spec(), **curves)


def test_a_run_is_held_against_the_experiment_that_it_is_nearest_to(table):
    table(printed("far", network="vgg"), printed("short", epochs=200), printed("same"))
    assert graded(read()) == Grade(WHOLE, "", True)
    table(printed("far", network="vgg"), printed("short", epochs=200))
    assert graded(read()) == Grade(REDUCED, "100 of 200 epochs", False)


def test_less_of_two_things_is_nearer_than_another_of_one(table):
    table(
        printed("another", network="vgg", epochs=200),
        printed("less", epochs=200, data=Printed("1", ("mnist",)), sample=10_000),
    )
    made = spec(data={"name": "mnist", "subset": 10}, sample=10)
    assert graded(read(made)) == Grade(REDUCED, "10 of 60,000 images", False)


def test_of_two_experiments_with_like_departures_the_one_with_fewer_counts(table):
    table(printed("two", epochs=200, sample=10_000), printed("one", epochs=300))
    assert graded(read(spec(sample=10))).because == "100 of 300 epochs"


def test_without_a_printed_experiment_a_training_stands_in(table):
    table()
    assert graded(read()) == Grade(STAND_IN, "the paper prints no experiment", False)


def test_every_kind_of_training_has_the_printed_number_of_seeds(table):
    table(printed(seeds=Printed("1", (2,)), rate=Printed("1", (0.1, 0.2))))
    assert graded(read(spec(0)), read(spec(1))).rests_on == WHOLE
    several = [spec(0), spec(1), spec(2), spec(0, rate=0.2)]
    assert graded(*map(read, several)) == Grade(REDUCED, "1 of 2 seeds", False)


@pytest.mark.parametrize(
    ("sizes", "because", "of_four"),
    [
        ((1, 8, 64), "", ""),
        ((2, 64), "batches 2 to 64 of 1 to 64", "batches 8 to 256 of 4 to 256"),
        ((1, 63), "batches 1 to 63 of 1 to 64", "batches 4 to 252 of 4 to 256"),
    ],
)
def test_a_range_must_be_covered_from_end_to_end(table, sizes, because, of_four):
    table(printed(batch=Printed("1", ends=(1, 64))))
    assert graded(*(read(spec(batch=size)) for size in sizes)).because == because
    table(printed(batch=Printed("1", ends=(4, 256), total=True)))
    assert graded(*(read(spec(batch=size, workers=4)) for size in sizes)).because == of_four


def test_any_of_the_printed_machines_gives_its_own_seconds(table):
    table(printed(), machine=Printed("1", ("POWER7", "K80")))
    made, timed = RunSpec("toy/times", {"batch": 3}), {"toy/times": Experiment(lambda: None, timed=True)}
    seconds = lambda machine: graded(read(made, machine), experiments=timed)
    assert seconds("NVIDIA Tesla k80 24 GB") == Grade(WHOLE, "", True)
    assert seconds("here") == Grade(STAND_IN, "seconds of here for POWER7 or K80", False)
    assert graded(read(machine="here")).rests_on == WHOLE
    table(printed())
    assert seconds("here").because == "seconds of here for a machine not printed"


@pytest.mark.parametrize(
    ("about", "grade"),
    [
        ({"clock": "virtual"}, Grade(MODELLED, "virtual time of toy/times", False)),
        ({"clock": "none"}, Grade(EXACT, "", True)),
        ({}, Grade(STAND_IN, "nobody says what toy/times computes", False)),
    ],
)
def test_what_learns_nothing_is_what_its_experiment_declares(table, about, grade):
    table(printed())
    run = read(RunSpec("toy/times", {"batch": 3}))
    assert graded(run, experiments={"toy/times": Experiment(lambda: None, **about)}) == grade


def test_a_measure_that_applies_a_cost_model_is_named_in_the_table(table):
    table(printed(), modelled="Eq. 19")
    assert graded() == Grade(MODELLED, "Eq. 19", False)


def test_an_exact_run_counts_only_for_a_claim_that_names_its_experiments(table):
    exact = {"exact": {"toy/train": "arithmetic"}}
    table(printed(epochs=200), **exact)
    assert graded(read()) == Grade(EXACT, "", True)
    times = {"toy/times": Experiment(lambda: None, clock="virtual")}
    assert graded(read(), read(RunSpec("toy/times", {"batch": 3})), experiments=times).rests_on == MODELLED
    table(printed(epochs=200), named=True, **exact)
    assert graded(read()) == Grade(REDUCED, "100 of 200 epochs", False)


# --- what a stored run says of itself


TRAINING = RunSpec("toy/train")


def run(environment=None, made=TRAINING, **curves):
    tables = {name: pd.DataFrame(columns) for name, columns in curves.items()}
    return verified(made.id, encode(made, environment or {}, Outcome("finished", {}, tables)))


def test_the_best_test_of_any_table_is_how_far_a_training_came():
    made = run(evaluations={"test_error": [0.5, 0.25]}, models={"centre_error": [0.75, 0.125]}, other={"x": [0.0]})
    assert best_test(made) == 0.875
    assert best_test(run(models={"centre_error": [0.75]})) == 0.25
    assert best_test(run(other={"x": [0.0]})) is None


def test_a_card_computed_a_run_before_the_processor_beside_it():
    card, processor = {"device": {"name": "K80"}}, {"machine": {"cpu": "POWER7"}}
    assert machine_of(run(card | processor)) == "K80"
    assert machine_of(run({"device": {"device": "cpu"}, **processor})) == "POWER7"
    assert machine_of(run()) == "unknown"
