"""The task engine: the bits of the rule it overlaps, the dependencies between its tasks, and how an error ends it."""

from __future__ import annotations

import threading
import time

import pytest
import torch
from crossbow_worlds import assignment

from reference_impls.crossbow import SMA
from suite.communication.collectives import Local
from suite.model_averaging.engine import Engine, Learners
from suite.model_averaging.tuner import tune
from suite.models import classifier, initialise
from suite.training.flat import FlatModule
from suite.training.gradients.backend import AutogradGradients, Functional
from suite.training.gradients.native import Native
from suite.training.optimizers import CaffeSGD
from suite.training.problem import Classification, QuadraticProblem

RATE = torch.tensor(0.05)


def network(kind, k: int, momentum: float = 0.9) -> Learners:
    """Learners of a small network on random pictures, four to a batch."""
    module = classifier("digits_lenet")
    initialise(module, 3)
    draw = torch.Generator().manual_seed(4)
    pixels = torch.randint(256, (64, *module.input_shape), generator=draw, dtype=torch.uint8)
    labels = torch.randint(module.classes, (64,), generator=draw)
    made = Classification(FlatModule(module, channels_last=True), pixels, labels, lambda x: x.float() / 256)
    algorithm = SMA(CaffeSGD(momentum), Local(k))
    examples = lambda numbers: (numbers[:, None] * 4 + torch.arange(4)) % 64
    return Learners(algorithm, made.flat.point(), kind(made), examples)


@pytest.mark.parametrize("kind", [AutogradGradients, pytest.param(Native, marks=pytest.mark.compiler)])
@pytest.mark.parametrize(("policy", "overlap"), [("first-come", True), ("round-robin", True), ("first-come", False)])
def test_weights_are_those_of_the_recorded_assignment_to_the_bit(kind, policy, overlap):
    engine, rule = Engine(network(kind, 3), 2, policy, overlap=overlap), network(kind, 3)
    tasks = engine.run(7, RATE)
    read = assignment(tasks, 3)
    for numbers in read:
        rule.step(RATE, numbers)
    ours = engine.learners
    assert (ours.t, ours.taken) == (7, 21)
    for name in ("replicas", "memory", "centre", "previous"):
        assert torch.equal(getattr(ours.state, name), getattr(rule.state, name)), name
    assert len(engine.free) <= 2 < ours.k
    if policy == "round-robin":
        assert read == [tuple(range(3 * i, 3 * i + 3)) for i in range(7)]


class Asleep(Functional):
    """Even batches take three times as long as odd ones; processors are not needed for either."""

    def __call__(self, points, buffers, batches):
        time.sleep(0.01 if batches[0][0][0, 0] else 0.03)
        return super().__call__(points, buffers, batches)


def asleep(kind, k: int = 2) -> Learners:
    rows = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    made = QuadraticProblem(rows, torch.ones(1, dtype=torch.float64))
    start = torch.ones(1, dtype=torch.float64)
    return Learners(SMA(CaffeSGD(), Local(k), alpha=0.5), start, kind(made), lambda numbers: numbers[:, None] % 2)


def test_learning_goes_on_beside_the_average_of_the_iteration_before_and_no_dependency_is_broken():
    """Batch 0 takes until batch 2 has begun: learner 1 goes on, and waits for the average with its gradient."""
    begun = threading.Event()

    class Held(Functional):
        def of_examples(self, points, buffers, examples):
            number = int(examples[0][0])
            if number == 2:
                begun.set()
            assert number or begun.wait(60), "a task of the next iteration waits for the average"
            return super().of_examples(points, buffers, [rows % 2 for rows in examples])

    learners = asleep(Held)
    learners.examples = lambda numbers: numbers[:, None]
    tasks = Engine(learners, 2).run(6, RATE)
    by = {(t.kind, t.iteration, t.learner): t for t in tasks}
    (late,) = {t.learner for t in tasks if t.batch == 2}
    assert len(tasks) == len(by) == 6 * 5
    for i in range(1, 6):
        assert by["global", i, -1].start >= max(by["local", i, j].end for j in range(2))
        for j in range(2):
            assert by["learn", i, j].start >= by["local", i - 1, j].end
            assert by["local", i, j].start >= max(by["learn", i, j].end, by["global", i - 1, -1].end)
    assert by["learn", 1, late].start < by["global", 0, -1].start


def test_a_barrier_begins_no_task_before_the_average():
    tasks = Engine(asleep(Asleep), 2, overlap=False).run(6, RATE)
    done = {task.iteration: task.end for task in tasks if task.kind == "global"}
    assert all(task.start >= done[task.iteration - 1] for task in tasks if task.kind == "learn" and task.iteration)


class Broken(Asleep):
    def __call__(self, points, buffers, batches):
        if batches[0][0][0, 0]:
            raise RuntimeError("no gradient today")
        return super().__call__(points, buffers, batches)


def test_an_error_in_a_task_is_raised_and_lets_the_others_go():
    with pytest.raises(RuntimeError, match="no gradient today"):
        Engine(asleep(Broken), 2).run(50, RATE)


def test_the_tuner_changes_the_number_of_learners_while_they_train():
    """Each of two adds its own rate, on a clock that an iteration moves by one."""
    engine = Engine(asleep(Functional, 1), 4)

    def rate() -> float:
        before = engine.learners.taken
        engine.run(4, RATE)
        return (engine.learners.taken - before) / 4

    history = tune(engine.learners, rate, readings=1, most=2)
    assert [reading.asked for reading in history][-1] == engine.learners.k == 2
    assert engine.learners.taken == 4 * 1 + 4 * 2


def test_a_throughput_that_never_settles_is_an_error():
    learners = asleep(Functional, 1)
    with pytest.raises(ValueError, match="has not settled after 1000 readings"):
        tune(learners, lambda: 2.0**learners.k)
