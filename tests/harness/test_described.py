"""A training in the papers' words, from its specification alone."""

from __future__ import annotations

import pytest

from suite.papers.described import Described, describe
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
    "warmstart": {"updates": 60, "algorithm": {"n": 0}},
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
        total=100,
        dropout=False,
        tested=None,
        sample=500,
        share=0.2,
        growth=0.05,
        every=7,
        seed=3,
        warmstart=1.0,  # 60 updates of ten gradients each
    )


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
