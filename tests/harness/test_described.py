"""A training in the papers' words, from its specification alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.papers.described import Described, describe, learns
from suite.spec import RunSpec

FULL = {
    "data": {"name": "mnist", "subset": 6_000, "labels": "digits", "transform": "scale"},
    "model": {"name": "caffe_lenet"},
    "algorithm": {"name": "rudra", "n": 4},
    "descent": {"rule": "caffe", "momentum": 0.9, "decay": 0.004},
    "rate": 0.01,
    "drops": [[50, 0.1]],
    "batch": 10,
    "workers": 10,
    "updates": 300,
    "evaluate": {"every": 10, "test_examples": 500},
    "share": 0.2,
    "growth": 0.05,
    "every": 7,
}


def told(*leaving, needed=(), **changes):
    settings = {name: value for name, value in (FULL | changes).items() if name not in leaving}
    return describe(RunSpec("toy/train", settings, 3), needed)


def test_every_setting_has_its_place():
    assert told() == Described(
        data="mnist",
        images=60_000,
        subset=6_000,
        labels="digits",
        preparation="scale",
        network="caffe_lenet",
        rule="caffe",
        batch=10,
        workers=10,
        splitting=4,
        rate=0.01,
        momentum=0.9,
        decay=0.004,
        epochs=1.0,  # 300 updates of two gradients each, of ten examples, over 6,000 of them
        updates=300,
        drops=((pytest.approx(50 / 300), 0.1),),
        falls=(),
        dropout=False,
        tested=None,
        sample=500,
        share=0.2,
        growth=0.05,
        every=7,
        seed=3,
    )


def test_a_specification_that_says_nothing_is_described_as_one_worker_and_nothing_else():
    empty = describe(RunSpec("toy/train"))
    assert (empty.workers, empty.growth, empty.drops, empty.seed) == (1, 0.0, (), 0)
    others = {
        name: value
        for name, value in vars(empty).items()
        if name not in ("workers", "growth", "drops", "falls", "seed")
    }
    assert set(others.values()) == {None}
    assert empty.total is None


def test_examples_of_all_workers_together():
    assert told().total == 100
    assert replace(told(), batch=None).total is None


@pytest.mark.parametrize(
    ("leaving", "changes", "epochs"),
    [
        ((), {"data": {"name": "mnist"}}, 0.1),  # without a subset, of all images
        ((), {"algorithm": {"name": "rudra", "n": 10}}, 0.5),
        ((), {"algorithm": {"name": "rudra", "n": 0}}, 5.0),  # all of them in each update
        ((), {"algorithm": {"name": "sgd", "n": 4}}, 5.0),  # n is Rudra's alone
        ((), {"order": {"batches": 20}}, 30.0),  # of ten examples each, the only ones that are trained on
        ((), {"epochs": 17}, 17),  # what is said is not computed
        (("updates",), {}, None),
        (("batch",), {}, None),
        (("batch",), {"words": 20}, 2.0),
        (("data",), {"corpus": "elsewhere"}, None),
    ],
)
def test_epochs_are_counted_over_what_is_learnt_from(leaving, changes, epochs):
    assert told(*leaving, **changes).epochs == (None if epochs is None else pytest.approx(epochs))


@pytest.mark.parametrize(
    ("leaving", "changes", "drops"),
    [
        ((), {"drops": [[100, 0.5], [300, 0.1]]}, [(1 / 3, 0.5), (1.0, 0.1)]),
        (("updates",), {"epochs": 3}, []),
        (("batch",), {}, []),
        (("drops",), {}, []),
    ],
)
def test_drops_are_told_by_epochs_where_those_are_known(leaving, changes, drops):
    found = told(*leaving, **changes).drops
    assert found == tuple((pytest.approx(epoch), factor) for epoch, factor in drops)


def test_a_rate_that_hangs_on_the_loss_a_corpus_of_tests_and_dropout_are_told():
    falling = {"name": "isgd", "thresholds": [2.0, 1.2], "factors": [1.0, 0.1, 0.01]}
    assert told(algorithm=falling).falls == ((2.0, 0.1), (1.2, 0.01))
    assert told(test_corpus="newstest2013").tested == "newstest2013"
    assert [told(model={"name": name}).dropout for name in ("caffe_alexnet", "nobody's")] == [True, None]


def test_the_data_set_is_the_specification_s_own_or_the_experiment_s_first():
    assert told(needed=("cifar10",)).data == "mnist"
    assert told("data", needed=("cifar10", "mnist")).data == "cifar10"
    assert told("data", needed=("cifar10", "mnist")).images == 50_000
    assert told("data", corpus="phrases", needed=("cifar10",)).data == "phrases"
    assert told("data").data is None
    assert told(data={"name": "nobody's"}).images is None


def test_sentences_are_a_part_as_a_subset_is():
    assert told("data", corpus="phrases", sentences=90).subset == 90
    assert told(sentences=90).subset == 6_000


def test_workers_are_as_many_as_the_largest_number_of_learners():
    learners = [[0, 2], [10, 8], [20, 4]]
    assert told("workers", learners=learners).workers == 8
    assert told(learners=learners).workers == 10
    assert told("workers", learners=[1, 8, 4]).workers == 8
    assert told("workers").workers == 1


def test_a_network_is_known_by_its_name_alone():
    assert told(model="vgg").network == "vgg"
    assert told(model={"hidden": 3}).network is None


def test_test_images_are_told_wherever_they_are_set():
    assert told(evaluate={"examples": 90}).sample == 90
    assert told(evaluate={"every": 3}, sample=40).sample == 40
    assert told(evaluate={"test_examples": 90}, sample=40).sample == 90
    assert told(evaluate={"every": 3}).sample is None


def test_what_a_problem_says_counts_unless_the_run_says_otherwise():
    found = describe(
        RunSpec("toy/train", {"problem": {"data": {"name": "mnist"}, "batch": 4, "rate": 1.0}, "batch": 8})
    )
    assert (found.data, found.batch, found.rate) == ("mnist", 8, 1.0)


@pytest.mark.parametrize(
    ("settings", "data", "expected"),
    [
        ({"data": {"name": "mnist"}, "updates": 3}, (), True),
        ({"corpus": "phrases", "epochs": 3}, (), True),
        ({"problem": {"data": {"name": "mnist"}}, "limit": 3}, (), True),
        ({"updates": 3}, ("mnist",), True),
        ({"updates": 3}, (), False),
        ({"data": {"name": "mnist"}}, (), False),
        ({}, ("mnist",), False),
    ],
)
def test_a_run_learns_that_has_data_and_a_length(settings, data, expected):
    assert learns(RunSpec("toy/train", settings), data) is expected
