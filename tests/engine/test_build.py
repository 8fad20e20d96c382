"""From plain settings to what a run is made of: orders and how workers share them, subsets, what is refused."""

from __future__ import annotations

import pytest
import torch
from engine_cases import digits, problem

from suite.data import images
from suite.data.order import FixedCycle, LeftOut
from suite.spec import RunSpec
from suite.training.build import assemble, make_order
from suite.training.numerics import choose

EXECUTION = choose(RunSpec("train"), "cpu", 1)
TARGETS = torch.arange(24) % 3
WORKERS = torch.arange(3)


def test_workers_read_the_same_batch_parts_of_one_or_batches_of_a_common_pool():
    """Of three workers the sixth batch each: of their own, of six times three examples, and 15 to 17 of all."""
    numbers = torch.full((3,), 5)
    named = [{"kind": "fixed-cycle", **({"share": share} if share else {})} for share in ("", "own", "split", "pool")]
    unnamed, own, split, pool = (make_order(how, TARGETS, 2, 3, 7).indices(numbers, WORKERS) for how in named)
    pairs, sixes = FixedCycle(24, 2, 7), FixedCycle(24, 6, 7)
    assert torch.equal(own, pairs.indices(numbers))
    assert torch.equal(unnamed, own)
    assert torch.equal(split.flatten(), sixes.indices(numbers[:1])[0])
    assert torch.equal(pool, pairs.indices(torch.arange(15, 18)))
    without = {"batches": [1, 4], "since": 0, "until": 9}
    shortened = make_order({"kind": "fixed-cycle", "share": "pool", "without": without}, TARGETS, 2, 3, 7)
    assert torch.equal(shortened.indices(numbers, WORKERS), LeftOut(pairs, **without).indices(torch.arange(15, 18)))


@pytest.mark.parametrize("order", [{"kind": "sorted"}, {"kind": "shuffled", "share": "all"}], ids=str)
def test_an_order_or_a_way_to_share_it_that_does_not_exist_is_refused(order: dict[str, str]):
    with pytest.raises(ValueError, match=r"no order is called 'sorted'; there are .*|share='all' must be one of own"):
        make_order(order, TARGETS, 2, 3, 7)


def test_without_a_subset_the_stored_pictures_are_trained_on_by_one_worker():
    made, stored = assemble(digits(0).settings, 0, EXECUTION, None), images.load_images("digits", "train", size=28)
    assert torch.equal(made.problem.inputs, stored.inputs)
    assert torch.equal(made.problem.targets, stored.targets)
    assert made.algorithm.collective.workers == 1


def test_a_subset_is_the_same_for_all_seeds_and_keeps_labels_beside_their_pictures():
    part = digits(0, data={"name": "digits", "transform": "scale", "size": 28, "subset": 60})
    one, other = (assemble(part.settings, seed, EXECUTION, None) for seed in (0, 1))
    assert torch.equal(one.problem.inputs, other.problem.inputs)
    assert not torch.equal(one.x0, other.x0)
    assert len(one.problem.inputs) == len(one.problem.targets) == 60
    stored = images.load_images("digits", "train", size=28)
    pairs = [
        {(picture.numpy().tobytes(), int(label)) for picture, label in zip(inputs, targets, strict=True)}
        for inputs, targets in ((one.problem.inputs, one.problem.targets), (stored.inputs, stored.targets))
    ]
    assert pairs[0] < pairs[1]
    assert not torch.equal(one.problem.inputs, stored.inputs[:60]), "the first ones may be of few classes"
    assert torch.equal(one.test_inputs, images.load_images("digits", "test", size=28).inputs)


@pytest.mark.parametrize("channels_last", [True, False])
def test_a_batch_lies_as_the_weights_of_convolutions_do(channels_last: bool):
    inputs, _ = problem("tiny_bn", channels_last=channels_last).fetch(torch.arange(3))
    assert inputs.is_contiguous(memory_format=torch.channels_last) is channels_last
