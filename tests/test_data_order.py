"""Batch orders: which examples stand in batch number n."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.data import counter
from suite.data.order import (
    Balanced,
    ByClass,
    FixedCycle,
    LeftOut,
    Order,
    Partitioned,
    SharedPool,
    Shuffled,
    SingleClass,
    WithReplacement,
)

SIZES = st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))
LABELS = torch.arange(240) % 7  # classes of unequal size: 35 examples of classes 0 and 1, 34 of the others


def orders() -> list[Order]:
    return [
        FixedCycle(103, 10, seed=3),
        Shuffled(103, 10, seed=3),
        WithReplacement(103, 10, seed=3),
        Partitioned(103, 4, 10, seed=3),
        ByClass(LABELS, 4, 10, seed=3, skew=0.5),
        SharedPool(FixedCycle(103, 10, seed=3), 4),
        SingleClass(LABELS, 5, seed=3),
        Balanced(LABELS, 14, seed=3, batches=10),
        LeftOut(Partitioned(103, 4, 10, seed=3), [2, 0], 3, 5),
    ]


@pytest.mark.parametrize("order", orders(), ids=lambda order: type(order).__name__)
def test_random_access_equals_sequential(order: Order) -> None:
    numbers, workers = torch.arange(40), torch.arange(40) % 4
    together = order.indices(numbers, workers)
    assert together.shape == (40, order.batch)
    assert together.dtype == torch.int64
    fresh = {type(other): other for other in orders()}[type(order)]
    for n in (37, 3, 22, 0, 39):  # a fresh order asked in any sequence
        assert torch.equal(fresh.indices(numbers[n : n + 1], workers[n : n + 1])[0], together[n])


@given(SIZES, st.integers(0, 2**63))
@settings(deadline=None, max_examples=60)
def test_fixed_cycle_has_the_period_of_an_epoch_and_visits_everything(size: tuple[int, int], seed: int) -> None:
    examples, batch = size
    order = FixedCycle(examples, batch, seed)
    period = math.ceil(examples / batch)
    assert order.batches_per_epoch == period
    drawn = order.indices(torch.arange(3 * period))
    assert torch.equal(drawn[:period], drawn[period : 2 * period])
    stream = drawn[:period].flatten()
    assert sorted(stream[:examples].tolist()) == list(range(examples))  # each example once ...
    assert torch.equal(stream[examples:], stream[: period * batch - examples])  # ... then the first ones again
    assert all(len(set(row.tolist())) == batch for row in drawn)
    # every batch is another one, so none returns earlier
    assert len({tuple(row.tolist()) for row in drawn[:period]}) == period


def test_fixed_cycle_permutes_by_seed_and_not_at_all_without_one() -> None:
    numbers = torch.arange(10)
    first, second = (FixedCycle(100, 10, seed).indices(numbers) for seed in (1, 2))
    assert not torch.equal(first, second)
    assert torch.equal(first, FixedCycle(100, 10, 1).indices(numbers))
    assert torch.equal(FixedCycle(100, 10, None).indices(numbers).flatten(), torch.arange(100))


def test_shuffled_draws_a_permutation_per_epoch_and_forgets_none_that_it_needs() -> None:
    order = Shuffled(50, 10, seed=4)
    epochs = order.indices(torch.arange(5 * 12)).view(12, 50)
    assert all(sorted(row.tolist()) == list(range(50)) for row in epochs)
    assert len({tuple(row.tolist()) for row in epochs}) == 12
    assert torch.equal(order.indices(torch.tensor([0, 1])).flatten(), epochs[0, :20])  # long since dropped


def test_with_replacement_is_uniform_and_repeats_examples_within_a_batch() -> None:
    drawn = WithReplacement(10, 100, seed=0).indices(torch.arange(1000))
    counts = drawn.flatten().bincount(minlength=10).double()
    # 9 degrees of freedom: chi-square exceeds 45 with probability 9e-7 under uniform drawing
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 45
    assert all(len(set(row.tolist())) < 100 for row in drawn[:5])


@given(st.integers(1, 60), st.integers(1, 6), st.integers(1, 8), st.sampled_from([None, 5]))
@settings(deadline=None, max_examples=60)
def test_partitions_are_disjoint_contiguous_and_cover(
    examples: int, workers: int, batch: int, seed: int | None
) -> None:
    if examples // workers < batch:
        with pytest.raises(ValueError, match="choose 1"):
            Partitioned(examples, workers, batch, seed)
        return
    order = Partitioned(examples, workers, batch, seed)
    seen: list[int] = []
    for worker in range(workers):
        numbers = torch.arange(order.batches_per_epoch)
        part = sorted(set(order.indices(numbers, torch.full_like(numbers, worker)).flatten().tolist()))
        assert part == list(range(part[0], part[-1] + 1))
        assert len(part) in (examples // workers, -(-examples // workers))
        seen += part
    assert seen == list(range(examples))


def test_shared_pool_hands_the_common_order_round() -> None:
    common = FixedCycle(120, 10, seed=2)
    pool = SharedPool(FixedCycle(120, 10, seed=2), 3)
    numbers = torch.arange(4).repeat_interleave(3)
    assert torch.equal(pool.indices(numbers, torch.arange(3).repeat(4)), common.indices(torch.arange(12)))
    assert pool.batches_per_epoch == 4


def test_shards_by_class_hold_fewer_classes_the_more_the_data_stay_sorted() -> None:
    """240 examples of 7 classes in 4 shards: each example once; at skew 1 a shard of 60 reaches over at most 3."""
    classes = []
    for skew in (0.0, 0.5, 1.0):
        order = ByClass(LABELS, 4, 10, seed=3, skew=skew)
        epoch = [order.indices(torch.arange(6), torch.full((6,), worker)).ravel() for worker in range(4)]
        assert sorted(torch.cat(epoch).tolist()) == list(range(240))
        counts = torch.stack([torch.bincount(LABELS[part], minlength=7) for part in epoch]).double()
        classes.append(float((counts / counts.sum(1, keepdim=True)).amax(1).mean()))
    mixed, half, sorted_ = classes  # share of the most frequent class of a shard, 1 / 7 where all are alike
    assert mixed < 0.25 < half < sorted_
    assert sorted_ > 0.5
    assert max(len(set(LABELS[part].tolist())) for part in epoch) <= 3


def test_single_class_batches_hold_one_class_each_and_share_nothing() -> None:
    drawn = SingleClass(LABELS, 10, seed=1, batches=14).indices(torch.arange(28))
    assert torch.equal(LABELS[drawn], (torch.arange(28) % 7)[:, None].expand(28, 10))
    assert len(set(drawn[:14].flatten().tolist())) == 140
    assert torch.equal(drawn[:14], drawn[14:])


def test_balanced_batches_list_every_class_in_the_same_sequence() -> None:
    drawn = Balanced(LABELS, 21, seed=1, batches=10).indices(torch.arange(10))
    assert torch.equal(LABELS[drawn], torch.arange(7).repeat_interleave(3).expand(10, 21))
    assert len(set(drawn.flatten().tolist())) == 210


def test_batches_are_left_out_of_the_epochs_that_are_named_and_of_no_others() -> None:
    """Batch n of five has the pictures 2 n and 2 n + 1."""
    order = LeftOut(FixedCycle(10, 2, seed=None), [4, 0], 1, 3)
    drawn = order.indices(torch.arange(5 + 2 * 3 + 7))[:, 0] // 2
    assert drawn.tolist() == [0, 1, 2, 3, 4, 1, 2, 3, 1, 2, 3, 0, 1, 2, 3, 4, 0, 1]
    pool = Shuffled(10, 2, seed=1)  # an epoch keeps its own permutation
    assert torch.equal(LeftOut(pool, [4, 0], 1, 3).indices(torch.arange(8, 11)), pool.indices(torch.arange(11, 14)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LeftOut(FixedCycle(10, 2, 0), [5], 0, 1), r"leave out batches \[5\] of 5"),
        (lambda: LeftOut(FixedCycle(10, 2, 0), [1, 1], 0, 1), "of 5 in epochs 0 to 1"),
        (lambda: LeftOut(FixedCycle(10, 2, 0), range(5), 0, 1), "of 5 in epochs 0 to 1"),
        (lambda: LeftOut(FixedCycle(10, 2, 0), [1], 2, 1), "in epochs 2 to 1"),
        (lambda: FixedCycle(10, 11, 0), "batch=11 does not fit 10 examples"),
        (lambda: Shuffled(0, 1, 0), "examples=0"),
        (lambda: Partitioned(3, 4, 1, 0), "workers=4"),
        (lambda: ByClass(LABELS, 2, 1, 0, skew=1.5), "skew=1.5"),
        (lambda: Balanced(LABELS, 20, 0, 2), "batch=20 cannot hold 7 classes"),
        (lambda: Balanced(LABELS, 70, 0, 4), "35 examples and the batches need 40"),
        (lambda: SingleClass(LABELS, 36, 0), "35 examples and the batches need 36"),
        (lambda: SingleClass(LABELS, 4, 0, 0), "at least one batch"),
    ],
)
def test_what_cannot_be_ordered_is_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_orders_run_where_no_value_can_be_read() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    made = [order for order in orders() if not isinstance(order, Shuffled | WithReplacement)]  # they read on the CPU
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        numbers = mode.from_tensor(torch.arange(6))
        workers = mode.from_tensor(torch.arange(6) % 4)
        for order in made:
            assert order.indices(numbers, workers).shape == (6, order.batch)
    elsewhere = torch.arange(6, device="meta")  # where there is nothing to read
    assert WithReplacement(103, 10, seed=3).indices(elsewhere, elsewhere).shape == (6, 10)


@pytest.mark.parametrize("batch", [1, 4, 100, 300])
def test_batches_drawn_many_at_a_time_are_those_drawn_alone(batch: int) -> None:
    """Small batches come out of larger draws: any batch of any worker, in any order, is the counter's."""
    order = WithReplacement(103, batch, seed=3)
    numbers, workers = torch.tensor([0, 300, 5, 63, 64, 5]), torch.tensor([1, 0, 0, 1, 1, 2])
    place = torch.arange(batch)
    alone = counter.below(103, 3, workers[:, None], numbers[:, None], place)
    assert torch.equal(order.indices(numbers, workers), alone)
    assert torch.equal(order.indices(numbers.flip(0), workers.flip(0)), alone.flip(0))
    assert torch.equal(order.indices(numbers), order.indices(numbers, 0 * workers))


def split_mix(x: int) -> int:
    """One output of SplitMix64 from state x, in Python's integers."""
    z = (x + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


@given(st.integers(-(2**70), 2**70), st.integers(0, 2**62), st.integers(0, 2**62))
@settings(deadline=None)
def test_counter_equals_unbounded_integer_arithmetic(seed: int, first: int, second: int) -> None:
    state = split_mix(seed % 2**64)
    for coordinate in (first, second):
        state = split_mix(state ^ coordinate)
    assert int(counter.bits(seed, torch.tensor(first), torch.tensor(second))) == state >> 11


def test_split_mix_reproduces_the_published_sequence() -> None:
    # first output of the reference generator seeded with 0
    assert split_mix(0) == 0xE220A8397B1DCDAF
