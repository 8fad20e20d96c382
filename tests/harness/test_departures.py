"""Departures of a training from what a paper prints, each at the edge of what still counts as the printed thing."""

from __future__ import annotations

import pytest

from suite.claims.estimate import REDUCED, STAND_IN
from suite.papers.grades import departures
from suite.papers.printed_settings import Printed, PrintedExperiment, describe
from suite.spec import RunSpec

OURS = {
    "data": {"name": "mnist", "transform": "scale", "labels": "digits"},
    "model": {"name": "caffe_lenet"},
    "descent": {"rule": "caffe", "momentum": 0.9, "decay": 0.0},
    "rate": 0.1,
    "batch": 50,
    "epochs": 100,
}


def spec(seed=0, **changes):
    return RunSpec("toy/train", OURS | changes, seed)


def printed(name="group", **fields):
    """An experiment that prints its length, of 100 epochs, and these fields; a value may be a Printed of its own."""
    made = {key: v if isinstance(v, Printed) else Printed("1", (v,)) for key, v in ({"epochs": 100} | fields).items()}
    return PrintedExperiment(name, made)


def found(experiment, **changes):
    return list(departures(describe(spec(**changes)), experiment))


@pytest.mark.parametrize(
    ("epochs", "expected"),
    [(99, []), (98.9, [(REDUCED, "98.9 of 100 epochs")]), (101, []), (101.1, [(STAND_IN, "101.1 epochs for 100")])],
)
def test_a_length_within_a_hundredth_is_the_printed_one(epochs, expected):
    assert found(printed(), epochs=epochs) == expected


HALVED = Printed("1", ([[50, 0.5], [80, 0.25]],))


def dropping(*turns, epochs=100, updates=1000):
    return {"updates": updates, "epochs": epochs, "drops": [list(turn) for turn in turns]}


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        (dropping((500, 0.5), (800, 0.25)), []),
        (dropping((510, 0.5), (790, 0.25)), []),  # an epoch later, an epoch earlier
        (dropping((515, 0.5), (800, 0.25)), ["drops [(52, 0.5), (80, 0.25)] for [(50, 0.5), (80, 0.25)]"]),
        (dropping((500, 0.5), (785, 0.25)), ["drops [(50, 0.5), (78, 0.25)] for [(50, 0.5), (80, 0.25)]"]),
        (dropping((500, 0.5), (900, 0.25)), ["drops [(50, 0.5), (90, 0.25)] for [(50, 0.5), (80, 0.25)]"]),
        (dropping((500, 0.5), (800, 0.2)), ["drops [(50, 0.5), (80, 0.2)] for [(50, 0.5), (80, 0.25)]"]),
        (dropping((500, 0.5)), ["drops [(50, 0.5)] for [(50, 0.5), (80, 0.25)]"]),
        (dropping((200, 0.5), (400, 0.25), epochs=40), ["40 of 100 epochs"]),  # told by its length
        (dropping((625, 0.5), epochs=80), ["80 of 100 epochs"]),  # ends where the second one would come
        (dropping((600, 0.5), epochs=60), ["60 of 100 epochs", "drops [(36, 0.5)] for [(50, 0.5)]"]),
        (dropping(epochs=50), ["50 of 100 epochs"]),
        (dropping(epochs=51), ["51 of 100 epochs", "drops [] for [(50, 0.5)]"]),
    ],
)
def test_drops_of_the_rate_come_within_an_epoch_as_far_as_the_run_goes(changes, reasons):
    assert [reason for _, reason in found(printed(drops=HALVED), **changes)] == reasons


def test_a_rate_that_hangs_on_the_mean_loss_is_no_schedule_of_epochs():
    by_loss = printed(drops=Printed("1", (((2.0, 0.1),),), by_loss=True))
    falling = {"name": "isgd", "thresholds": [2.0], "factors": [1.0, 0.1]}
    assert found(by_loss, algorithm=falling) == []
    assert found(by_loss) == [(STAND_IN, "drops [] for [(2.0, 0.1)] by mean loss")]
    higher = falling | {"thresholds": [2.5]}
    assert found(by_loss, algorithm=higher) == [(STAND_IN, "drops [(2.5, 0.1)] for [(2.0, 0.1)] by mean loss")]
