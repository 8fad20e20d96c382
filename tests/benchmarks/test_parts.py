"""An update's parts add up to it, each is there, and what is slowed down shows in its own part."""

from __future__ import annotations

import time

import pytest

from benchmarks import ours, parts
from benchmarks.workloads import TRANSLATION, Workload, named
from suite.spec import RunSpec
from suite.training.numerics import choose
from suite.training.optimizers import InPlace
from suite.training.problem import Classification

LOOP = choose(RunSpec("train"), "cpu", 1)
SMALL = [named("LeNet/MNIST, M=16"), Workload("words", "translation", "", 2)]


@pytest.mark.parametrize("workload", SMALL, ids=lambda workload: workload.name)
def test_the_parts_are_all_there_and_add_up_to_the_update(workload, monkeypatch):
    for size in TRANSLATION:
        monkeypatch.setitem(TRANSLATION, size, 50)
    (found,) = parts.timed(ours.updates_of(workload, LOOP), 1)
    assert all(found[part] > 0 for part in parts.PARTS)
    assert sum(found[part] for part in parts.PARTS) == pytest.approx(found[parts.WHOLE])


@pytest.mark.parametrize(
    ("owner", "method", "part"), [(Classification, "fetch", "examples"), (InPlace, "advance", "step")]
)
def test_what_is_slowed_down_shows_in_its_own_part(owner, method, part, monkeypatch):
    at_once = getattr(owner, method)

    def slow(*given):
        time.sleep(0.2)
        return at_once(*given)

    monkeypatch.setattr(owner, method, slow)
    (found,) = parts.timed(ours.updates_of(named("LeNet/MNIST, M=16"), LOOP), 1)
    assert found[part] >= 0.2
    assert getattr(owner, method) is slow, "the clocks are taken off again"
